/** Trials that end with one press on the board: the data they hand back, and how they simulate themselves. */
import { ParameterType, type JsPsych } from "jspsych";
import type { Context, Value } from "../server/model";
import type { Pressed } from "./board";
import type { Answered } from "./kind";
import { UNTIL_ANSWER, type Presentation } from "./exposure";

/** What every plugin hands to the page: `info.data`. */
export const PRESS_DATA = {
  /** What is sent as the response's value. */
  value: { type: ParameterType.OBJECT },
  /** Milliseconds from onset (the animation frame that first paints the stimulus) to the press. */
  rt_ms: { type: ParameterType.INT },
  /** Milliseconds from onset until the stimulus was taken away. */
  shown_ms: { type: ParameterType.INT },
  /** How it was pressed and how well it was shown, as the wire's `context`. */
  context: { type: ParameterType.OBJECT },
} as const;

/** The parameters that the board needs, for `info.parameters`; the page fills them in for every plugin. */
export const SHOWN_PARAMETERS = {
  /** Explanation beside the picture, or in its place. */
  display: { type: ParameterType.SELECT, options: ["beside", "overlay"], default: "beside" },
  /** What the colours of explanations mean, as the wire says it; null if they mean nothing. */
  legend: { type: ParameterType.OBJECT, default: null },
  /** Width and height of a picture in CSS pixels. */
  picture_px: { type: ParameterType.INT, default: 320 },
  /** Milliseconds from onset until the answers become active. */
  min_view_ms: { type: ParameterType.INT, default: 0 },
  /** Fixation mark, exposure and mask: `course`, `refresh_ms`, `seed`. */
  presentation: { type: ParameterType.OBJECT, default: UNTIL_ANSWER },
  /** The words of the interface. */
  words: { type: ParameterType.OBJECT, default: undefined },
  /** Turns a picture of the wire into a decoded element. */
  picture: { type: ParameterType.FUNCTION, default: undefined },
  /** Says something to screen readers. */
  announce: { type: ParameterType.FUNCTION, default: () => undefined },
  /** Records an event: kind and data. */
  log: { type: ParameterType.FUNCTION, default: () => undefined },
} as const;

/** The data of a trial that ended with a press. */
export function dataOf(pressed: Pressed, value: Value, more: Context = {}): Answered {
  const { rt_ms, shown_ms, context } = pressed;
  return { value, rt_ms, shown_ms, context: { ...context, ...more } };
}

export interface SimulatedPress {
  /** Milliseconds: mean and SD of the normal part of an ex-Gaussian time, mean of its tail; after `min_view_ms`. */
  mean_ms: number;
  sd_ms: number;
  tail_ms: number;
  min_view_ms: number;
  presentation: Presentation;
  /** Which button, counted from 0, and the value that it stands for. */
  index: number;
  value: Value;
  /** Shows the trial; not called for data only. */
  show: (display: HTMLElement) => void;
}

/** jsPsych's `simulate` for such a trial: data at once, or the real page and a click. */
export function simulatePress(
  jsPsych: JsPsych,
  mode: "data-only" | "visual",
  press: SimulatedPress,
  onLoad: () => void,
): void {
  const { mean_ms, sd_ms, tail_ms, index, value } = press;
  const drawn_ms = jsPsych.randomization.sampleExGaussian(mean_ms, sd_ms, 1 / tail_ms, true);
  const rt_ms = Math.round(press.min_view_ms + drawn_ms);
  if (mode === "data-only") {
    onLoad();
    jsPsych.finishTrial({ value, rt_ms, shown_ms: rt_ms, context: {} });
    return;
  }
  const display = jsPsych.getDisplayElement();
  press.show(display);
  onLoad();
  const button = display.querySelectorAll(".answer")[index];
  // Some frames pass before the clock starts, and the button is active only from then on.
  if (button) jsPsych.pluginAPI.clickTarget(button, press.presentation.course.fixation_ms + rt_ms + 100);
}
