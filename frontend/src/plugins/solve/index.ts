import { ParameterType, type JsPsych, type JsPsychPlugin, type TrialType } from "jspsych";
import type { SolveTrial } from "../../server/model";
import { CannotShow, type Kind } from "../kind";
import { PRESS_DATA, SHOWN_PARAMETERS } from "../press";
import { CANNOT_SAY, Solving, type Task } from "./solving";

const info = {
  name: "legible-solve",
  version: "0.1.0",
  parameters: {
    ...SHOWN_PARAMETERS,
    /** The picture, as the wire describes it. */
    image: { type: ParameterType.OBJECT, default: undefined },
    /** How many cells a side of the grid has on which the region is marked. */
    grid: { type: ParameterType.INT, default: 28 },
    /** The answers with the keys that choose them, in their order; `cannot_say` is the one without a region. */
    choices: { type: ParameterType.OBJECT, array: true, default: undefined },
    /** What an earlier page kept of this trial, and how this one keeps it. */
    draft: { type: ParameterType.OBJECT, default: { text: null, keep: () => undefined } },
  },
  data: PRESS_DATA,
} as const;

type Info = typeof info;

/** A task: one of several answers and the region of the picture that shows it, or "cannot say". No feedback. */
export class SolvePlugin implements JsPsychPlugin<Info> {
  static info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  trial(display: HTMLElement, trial: TrialType<Info>): void {
    this.show(display, trial as unknown as Task);
  }

  /** Takes one of the answers, each as likely as the others, and marks the cell in the middle for it. */
  simulate(given: TrialType<Info>, mode: "data-only" | "visual", _options: unknown, onLoad: () => void): void {
    const task = given as unknown as Task;
    const { randomInt, sampleExGaussian } = this.jsPsych.randomization;
    const index = randomInt(0, task.choices.length - 1);
    const choice = task.choices[index]!.value;
    const rt_ms = Math.round(sampleExGaussian(3000, 800, 1 / 2000, true));
    if (mode === "data-only") {
      const middle = Math.floor(task.grid / 2) * (task.grid + 1);
      const region = choice === CANNOT_SAY ? null : [middle];
      onLoad();
      return this.jsPsych.finishTrial({ value: { choice, region }, rt_ms, shown_ms: rt_ms, context: {} });
    }
    const solving = this.show(this.jsPsych.getDisplayElement(), task);
    onLoad();
    const { pluginAPI } = this.jsPsych;
    const at_ms = task.presentation.course.fixation_ms + 100;
    const mark = new KeyboardEvent("keydown", { key: " " });
    if (choice !== CANNOT_SAY) pluginAPI.setTimeout(() => solving.plate.element.dispatchEvent(mark), at_ms);
    pluginAPI.clickTarget(solving.element.querySelectorAll(".choice input")[index]!, at_ms + 50);
    pluginAPI.clickTarget(solving.element.querySelector(".sending .button")!, at_ms + 100);
  }

  private show(display: HTMLElement, task: Task): Solving {
    const solving = new Solving(
      task,
      (solved) => this.jsPsych.finishTrial({ ...solved }),
      (act, delay_ms) => this.jsPsych.pluginAPI.setTimeout(act, delay_ms),
    );
    solving.show(display);
    const { solve } = task.words;
    task.announce(`${solve.saw}. ${solve.question}`);
    return solving;
  }
}

export const solve: Kind<SolveTrial> = {
  plugin: SolvePlugin,
  place: (words, number, count) => words.solve.place(number, count),
  parameters({ kind, content: { image, grid, choices } }, { draft }) {
    if (image === null) throw new CannotShow(kind, "a task to be solved has a picture, this one has none");
    return { image, grid, choices, draft };
  },
};
