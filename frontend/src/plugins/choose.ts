/** Trials that are answered by one of several buttons: a question, the choices, the examples that may be consulted. */
import { ParameterType, type JsPsych } from "jspsych";
import { h } from "../dom";
import type { Choice, Example, Study } from "../model";
import { Reservoir } from "../reservoir";
import { Board } from "./board";
import type { Shown } from "./kind";
import { dataOf, SHOWN_PARAMETERS, simulatePress } from "./press";

export const CHOICE_PARAMETERS = {
  ...SHOWN_PARAMETERS,
  /** The answers with the keys that give them, in the order of the buttons. */
  choices: { type: ParameterType.OBJECT, array: true, default: undefined },
  /** The training examples that may be consulted, in training order. */
  examples: { type: ParameterType.OBJECT, array: true, default: [] },
  /** Whether the examples stand there always, on request, or not at all. */
  reservoir: { type: ParameterType.SELECT, options: ["always", "on_request", "off"], default: "on_request" },
} as const;

export interface Choosing extends Shown {
  choices: Choice[];
  examples: Example[];
  reservoir: Study["reservoir"];
}

/** Shows the trial and ends it with `{choice}`. `stimulus` is made by `stimulus()`. */
export function showChoices(
  jsPsych: JsPsych,
  display: HTMLElement,
  trial: Choosing,
  asked: { stimulus: HTMLElement; question: string },
): void {
  const reservoir = reservoirFor(trial);
  const board = new Board(
    {
      ...trial,
      stimulus: asked.stimulus,
      ask: h("p", { class: "ask" }, asked.question),
      answers: trial.choices.map((choice) => ({ ...choice, printed: choice.key.toUpperCase() })),
      below: reservoir?.element ?? null,
      ready: trial.words.trial.ready,
    },
    (pressed) => {
      const more = reservoir ? { reservoir_ms: reservoir.finish() } : {};
      jsPsych.finishTrial(dataOf(pressed, { choice: pressed.answer.value }, more));
    },
    (act, delay_ms) => jsPsych.pluginAPI.setTimeout(act, delay_ms),
  );
  board.show(display);
}

/** Presses one of the choices, each as likely as the others. */
export function simulateChoices(
  jsPsych: JsPsych,
  mode: "data-only" | "visual",
  trial: Choosing,
  show: (display: HTMLElement) => void,
  onLoad: () => void,
): void {
  const index = jsPsych.randomization.randomInt(0, trial.choices.length - 1);
  const value = { choice: trial.choices[index]?.value };
  const times = { mean_ms: 700, sd_ms: 150, tail_ms: 500, min_view_ms: trial.min_view_ms };
  simulatePress(jsPsych, mode, { ...times, index, value, show }, onLoad);
}

function reservoirFor(trial: Choosing): Reservoir | null {
  if (trial.reservoir === "off" || trial.examples.length === 0) return null;
  return new Reservoir({ ...trial, mode: trial.reservoir });
}
