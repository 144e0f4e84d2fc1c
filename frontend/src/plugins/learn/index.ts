import { ParameterType, type JsPsych, type JsPsychPlugin, type TrialType } from "jspsych";
import { h } from "../../dom";
import type { LearnTrial } from "../../model";
import { Board } from "../board";
import { CannotShow, type Kind, type Shown } from "../kind";
import { dataOf, PRESS_DATA, SHOWN_PARAMETERS, simulatePress } from "../press";
import { stimulus, type Stimulus } from "../stimulus";

const info = {
  name: "legible-learn",
  version: "0.2.0",
  parameters: {
    ...SHOWN_PARAMETERS,
    /** The picture, as the wire describes it; null in a study of texts. */
    image: { type: ParameterType.OBJECT, default: null },
    /** The explanation of the model's answer; null in conditions without one. */
    explanation: { type: ParameterType.OBJECT, default: null },
    /** The text with its shades; null in a study of pictures. */
    text: { type: ParameterType.OBJECT, default: null },
    /** The model's answer, shown as plain text. */
    label: { type: ParameterType.STRING, default: undefined },
    /** Milliseconds from onset until "next" becomes active. */
    min_view_ms: { type: ParameterType.INT, default: 1500 },
  },
  data: PRESS_DATA,
} as const;

type Info = typeof info;
type Parameters = Shown & Stimulus & { label: string };

/** What is sent: the example was seen. */
const SEEN = { seen: true };

/** A training trial: the picture, beside it the explanation, the model's answer, and one button to go on. */
export class LearnPlugin implements JsPsychPlugin<Info> {
  static info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  trial(display: HTMLElement, trial: TrialType<Info>): void {
    this.show(display, trial as unknown as Parameters);
  }

  simulate(given: TrialType<Info>, mode: "data-only" | "visual", _options: unknown, onLoad: () => void): void {
    const trial = given as unknown as Parameters;
    const times = { mean_ms: 600, sd_ms: 150, tail_ms: 400, min_view_ms: trial.min_view_ms };
    const show = (display: HTMLElement): void => this.show(display, trial);
    simulatePress(this.jsPsych, mode, { ...times, presentation: trial.presentation, index: 0, value: SEEN, show }, onLoad);
  }

  private show(display: HTMLElement, trial: Parameters): void {
    const { trial: says } = trial.words;
    const board = new Board(
      {
        ...trial,
        stimulus: stimulus(trial, trial),
        ask: h("p", { class: "ask" }, `${says.label} `, h("strong", { class: "label" }, trial.label)),
        answers: [{ value: "seen", text: says.next, key: " ", printed: says.space }],
        beside: null,
        ready: says.ready_next,
      },
      (pressed) => this.jsPsych.finishTrial(dataOf(pressed, SEEN)),
      (act, delay_ms) => this.jsPsych.pluginAPI.setTimeout(act, delay_ms),
    );
    board.show(display);
    trial.announce(`${says.saw.train}. ${says.label} ${trial.label}`);
  }
}

export const learn: Kind<LearnTrial> = {
  plugin: LearnPlugin,
  parameters({ kind, content: { image, explanation, text = null, label } }) {
    // A trial without a label asks for a guess first; shown like this it would be an example that says nothing.
    if (label === null) throw new CannotShow(kind, `${kind} without a label: this page does not ask for guesses`);
    return { image, explanation, text, label };
  },
};
