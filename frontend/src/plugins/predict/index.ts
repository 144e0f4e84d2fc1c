import { ParameterType, type JsPsych, type JsPsychPlugin, type TrialType } from "jspsych";
import { h } from "../../dom";
import type { Choice, EventKind, Example, Study } from "../../model";
import { Reservoir } from "../../reservoir";
import { Board, type Pressed, type Shown } from "../board";

const info = {
  name: "legible-predict",
  version: "0.1.0",
  parameters: {
    /** The picture, as the wire describes it; null where a check asks about none. */
    image: { type: ParameterType.OBJECT, default: null },
    /** An explanation, where the study shows one in tests too; usually null. */
    explanation: { type: ParameterType.OBJECT, default: null },
    /** The question; null is the usual one. */
    prompt: { type: ParameterType.STRING, default: null },
    /** The answers with the keys that give them, in the order of the buttons. */
    choices: { type: ParameterType.OBJECT, array: true, default: undefined },
    /** The training examples that may be consulted, in training order. */
    examples: { type: ParameterType.OBJECT, array: true, default: [] },
    /** Whether the examples stand there always, on request, or not at all. */
    reservoir: {
      type: ParameterType.SELECT,
      options: ["always", "on_request", "off"],
      default: "on_request",
    },
    /** Explanation beside the picture, or in its place. */
    display: { type: ParameterType.SELECT, options: ["beside", "overlay"], default: "beside" },
    /** Width and height of a picture in CSS pixels. */
    picture_px: { type: ParameterType.INT, default: 320 },
    /** Milliseconds from onset until the answers become active. */
    min_view_ms: { type: ParameterType.INT, default: 0 },
    /** The words of the interface. */
    words: { type: ParameterType.OBJECT, default: undefined },
    /** Turns a picture of the wire into a decoded element. */
    picture: { type: ParameterType.FUNCTION, default: undefined },
    /** Says something to screen readers. */
    announce: { type: ParameterType.FUNCTION, default: () => undefined },
    /** Records an event: kind and data. */
    log: { type: ParameterType.FUNCTION, default: () => undefined },
  },
  data: {
    /** What is sent as the response's value: `{choice}`. */
    value: { type: ParameterType.OBJECT },
    /** Milliseconds from onset (the animation frame that first paints the picture) to the press. */
    rt_ms: { type: ParameterType.INT },
    /** Milliseconds from onset until the picture was taken away. */
    shown_ms: { type: ParameterType.INT },
    /** How it was pressed and how well it was shown, as the wire's `context`. */
    context: { type: ParameterType.OBJECT },
  },
} as const;

type Info = typeof info;
export type PredictTrial = Shown & {
  prompt: string | null;
  choices: Choice[];
  examples: Example[];
  reservoir: Study["reservoir"];
  log: (kind: EventKind, data?: Record<string, unknown>) => void;
};

/** A test trial: the picture, the question, the answers; below them the examples seen so far. No feedback. */
export class PredictPlugin implements JsPsychPlugin<Info> {
  static info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  trial(display: HTMLElement, trial: TrialType<Info>): void {
    this.show(display, trial as unknown as PredictTrial);
  }

  simulate(
    given: TrialType<Info>,
    mode: "data-only" | "visual",
    _options: unknown,
    onLoad: () => void,
  ): void {
    const trial = given as unknown as PredictTrial;
    const rt_ms = Math.round(
      trial.min_view_ms + this.jsPsych.randomization.sampleExGaussian(700, 150, 1 / 500, true),
    );
    const index = this.jsPsych.randomization.randomInt(0, trial.choices.length - 1);
    if (mode === "data-only") {
      onLoad();
      const value = { choice: trial.choices[index]?.value };
      this.jsPsych.finishTrial({ value, rt_ms, shown_ms: rt_ms, context: {} });
      return;
    }
    const display = this.jsPsych.getDisplayElement();
    this.show(display, trial);
    onLoad();
    const button = display.querySelectorAll(".answer")[index];
    // One frame passes before the clock starts, and the button is active only from then on.
    if (button) this.jsPsych.pluginAPI.clickTarget(button, rt_ms + 100);
  }

  private show(display: HTMLElement, trial: PredictTrial): void {
    const { trial: says } = trial.words;
    const question = trial.prompt ?? says.question;
    const reservoir = reservoirFor(trial);
    const board = new Board(
      {
        ...trial,
        ask: h("p", { class: "ask" }, question),
        answers: trial.choices.map((choice) => ({ ...choice, printed: choice.key.toUpperCase() })),
        below: reservoir?.element ?? null,
        ready: says.ready,
      },
      (pressed) => this.jsPsych.finishTrial(result(pressed, reservoir)),
      (act, delay_ms) => this.jsPsych.pluginAPI.setTimeout(act, delay_ms),
    );
    board.show(display);
    trial.announce(`${says.saw.test}. ${question}`);
  }
}

function reservoirFor(trial: PredictTrial): Reservoir | null {
  if (trial.reservoir === "off" || trial.examples.length === 0) return null;
  return new Reservoir({ ...trial, mode: trial.reservoir });
}

function result(pressed: Pressed, reservoir: Reservoir | null): Record<string, unknown> {
  const context = reservoir ? { ...pressed.context, reservoir_ms: reservoir.finish() } : pressed.context;
  return {
    value: { choice: pressed.answer.value },
    rt_ms: pressed.rt_ms,
    shown_ms: pressed.shown_ms,
    context,
  };
}
