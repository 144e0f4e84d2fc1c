import { ParameterType, type JsPsych, type JsPsychPlugin, type TrialType } from "jspsych";
import { h } from "../../dom";
import { Board, type Pressed, type Shown } from "../board";

const info = {
  name: "legible-learn",
  version: "0.1.0",
  parameters: {
    /** The picture, as the wire describes it. */
    image: { type: ParameterType.OBJECT, default: undefined },
    /** The explanation of the model's answer; null in conditions without one. */
    explanation: { type: ParameterType.OBJECT, default: null },
    /** The model's answer, shown as plain text. */
    label: { type: ParameterType.STRING, default: undefined },
    /** Explanation beside the picture, or in its place. */
    display: { type: ParameterType.SELECT, options: ["beside", "overlay"], default: "beside" },
    /** Width and height of a picture in CSS pixels. */
    picture_px: { type: ParameterType.INT, default: 320 },
    /** Milliseconds from onset until "next" becomes active. */
    min_view_ms: { type: ParameterType.INT, default: 1500 },
    /** The words of the interface. */
    words: { type: ParameterType.OBJECT, default: undefined },
    /** Turns a picture of the wire into a decoded element. */
    picture: { type: ParameterType.FUNCTION, default: undefined },
    /** Says something to screen readers. */
    announce: { type: ParameterType.FUNCTION, default: () => undefined },
  },
  data: {
    /** What is sent as the response's value: `{seen: true}`. */
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
export type LearnTrial = Shown & { label: string };

/** A training trial: the picture, beside it the explanation, the model's answer, and one button to go on. */
export class LearnPlugin implements JsPsychPlugin<Info> {
  static info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  trial(display: HTMLElement, trial: TrialType<Info>): void {
    this.show(display, trial as unknown as LearnTrial);
  }

  simulate(
    given: TrialType<Info>,
    mode: "data-only" | "visual",
    _options: unknown,
    onLoad: () => void,
  ): void {
    const trial = given as unknown as LearnTrial;
    const rt_ms = Math.round(
      trial.min_view_ms + this.jsPsych.randomization.sampleExGaussian(600, 150, 1 / 400, true),
    );
    if (mode === "data-only") {
      onLoad();
      this.jsPsych.finishTrial({ value: { seen: true }, rt_ms, shown_ms: rt_ms, context: {} });
      return;
    }
    const display = this.jsPsych.getDisplayElement();
    this.show(display, trial);
    onLoad();
    const button = display.querySelector(".answer");
    // One frame passes before the clock starts, and the button is active only from then on.
    if (button) this.jsPsych.pluginAPI.clickTarget(button, rt_ms + 100);
  }

  private show(display: HTMLElement, trial: LearnTrial): void {
    const { trial: says } = trial.words;
    const board = new Board(
      {
        ...trial,
        ask: h("p", { class: "ask" }, `${says.label} `, h("strong", { class: "label" }, trial.label)),
        answers: [{ value: "seen", text: says.next, key: " ", printed: says.space }],
        below: null,
        ready: says.ready_next,
      },
      (pressed) => this.jsPsych.finishTrial(result(pressed)),
      (act, delay_ms) => this.jsPsych.pluginAPI.setTimeout(act, delay_ms),
    );
    board.show(display);
    trial.announce(`${says.saw.train}. ${says.label} ${trial.label}`);
  }
}

function result(pressed: Pressed): Record<string, unknown> {
  return {
    value: { seen: true },
    rt_ms: pressed.rt_ms,
    shown_ms: pressed.shown_ms,
    context: pressed.context,
  };
}
