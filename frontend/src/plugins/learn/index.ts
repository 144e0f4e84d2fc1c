import { ParameterType, type JsPsych, type JsPsychPlugin, type TrialType } from "jspsych";
import { h } from "../../frame/dom";
import type { Choice, Feedback, LearnTrial } from "../../server/model";
import { Board } from "../board";
import type { Answered, Kind, Shown } from "../kind";
import { dataOf, PRESS_DATA, SHOWN_PARAMETERS, simulatePress } from "../press";
import { Reveal } from "../reveal";
import { stimulus, type Stimulus } from "../stimulus";

const info = {
  name: "legible-learn",
  version: "0.3.0",
  parameters: {
    ...SHOWN_PARAMETERS,
    /** The picture, as the wire describes it; null in a study of texts. */
    image: { type: ParameterType.OBJECT, default: null },
    /** The explanation of the model's answer; null in conditions without one. */
    explanation: { type: ParameterType.OBJECT, default: null },
    /** The text with its shades; null in a study of pictures. */
    text: { type: ParameterType.OBJECT, default: null },
    /** The model's answer, shown as plain text; null: the person guesses it first. */
    label: { type: ParameterType.STRING, default: null },
    /** The answers with the keys that give them, in the order of the buttons; for a guess. */
    choices: { type: ParameterType.OBJECT, array: true, default: [] },
    /** Milliseconds from onset until the buttons become active. */
    min_view_ms: { type: ParameterType.INT, default: 1500 },
    /** Stores a guess and resolves with what the server reveals: `label`, `choice`; null: nothing. */
    tell: { type: ParameterType.FUNCTION, default: () => Promise.resolve(null) },
    /** For a guess that was stored before: resolves with what the server revealed. */
    told: { type: ParameterType.FUNCTION, default: null },
  },
  data: PRESS_DATA,
} as const;

type Info = typeof info;
type Parameters = Shown & Stimulus & { label: string | null; choices: Choice[] };

/** What is sent: the example was seen. */
const SEEN = { seen: true };
/** How long a simulated person looks at what is revealed. */
const READING_MS = 300;

/**
 * A training trial: the picture, beside it the explanation, the model's answer, and one button to go on. Without a
 * label it asks for a guess, stores it, and then shows what the server says the model's answer is.
 */
export class LearnPlugin implements JsPsychPlugin<Info> {
  static info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  trial(display: HTMLElement, trial: TrialType<Info>): void {
    this.show(display, trial as unknown as Parameters);
  }

  /** Presses "next"; at a guess one of the answers, each as likely as the others, and then "next". */
  simulate(given: TrialType<Info>, mode: "data-only" | "visual", _options: unknown, onLoad: () => void): void {
    const trial = given as unknown as Parameters;
    const { label, choices, min_view_ms, presentation } = trial;
    const index = label === null ? this.jsPsych.randomization.randomInt(0, choices.length - 1) : 0;
    const value = label === null ? { choice: choices[index]?.value } : SEEN;
    const times = { mean_ms: 600, sd_ms: 150, tail_ms: 400, min_view_ms };
    const press = (button: HTMLElement): void => this.jsPsych.pluginAPI.clickTarget(button, READING_MS);
    const show = (display: HTMLElement): void => this.show(display, trial, press);
    simulatePress(this.jsPsych, mode, { ...times, presentation, index, value, show }, onLoad);
  }

  /** `read` is called with the button that goes on from what was revealed. */
  private show(display: HTMLElement, trial: Parameters, read?: (next: HTMLElement) => void): void {
    if (trial.label === null) this.guess(display, trial, read);
    else this.example(display, trial, trial.label);
  }

  private example(display: HTMLElement, trial: Parameters, label: string): void {
    const { trial: says } = trial.words;
    const board = new Board(
      {
        ...trial,
        stimulus: stimulus(trial, trial),
        ask: h("p", { class: "ask" }, `${says.label} `, h("strong", { class: "label" }, label)),
        answers: [{ value: "seen", text: says.next, key: " ", printed: says.space }],
        beside: null,
        ready: says.ready_next,
      },
      (pressed) => this.jsPsych.finishTrial(dataOf(pressed, SEEN)),
      this.later,
    );
    board.show(display);
    trial.announce(`${says.saw.train}. ${says.label} ${label}`);
  }

  private guess(display: HTMLElement, trial: Parameters, read?: (next: HTMLElement) => void): void {
    const { trial: says } = trial.words;
    const board: Board = new Board(
      {
        ...trial,
        stimulus: stimulus(trial, trial),
        ask: h("p", { class: "ask" }, says.question),
        answers: trial.choices,
        beside: null,
        ready: says.ready,
      },
      (pressed) => {
        const data = dataOf(pressed, { choice: pressed.answer.value });
        void this.reveal(board.element, trial, trial.tell(data), data, read);
      },
      this.later,
    );
    if (trial.told !== null) {
      board.lay(display);
      void this.reveal(board.element, trial, trial.told(), null, read);
      return;
    }
    board.show(display);
    trial.announce(`${says.saw.train}. ${says.question}`);
  }

  /** From the guess to the end of the trial. `data` is null for a guess that was stored before. */
  private async reveal(
    board: HTMLElement,
    trial: Parameters,
    telling: Promise<Feedback | null>,
    data: Answered | null,
    read: (next: HTMLElement) => void = () => undefined,
  ): Promise<void> {
    const finish = (): void => this.jsPsych.finishTrial({ ...data });
    const log = (shown_ms: number): void => {
      trial.log("revealed", { shown_ms });
      finish();
    };
    const reveal = new Reveal(board, trial, log, this.later);
    const told = await telling;
    // Called off meanwhile, for instance because another tab goes on.
    if (!board.isConnected) return;
    if (told === null) return finish();
    reveal.tell(told);
    read(board.querySelector<HTMLElement>(".next")!);
  }

  private readonly later = (act: () => void, delay_ms: number): void => {
    this.jsPsych.pluginAPI.setTimeout(act, delay_ms);
  };
}

export const learn: Kind<LearnTrial> = {
  plugin: LearnPlugin,
  waits: ({ content }) => content.label === null,
  parameters({ content: { image, explanation, text = null, label, choices } }) {
    return { image, explanation, text, label, choices };
  },
};
