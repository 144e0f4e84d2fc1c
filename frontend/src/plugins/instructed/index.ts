import { ParameterType, type JsPsych, type JsPsychPlugin, type TrialType } from "jspsych";
import type { InstructedTrial } from "../../model";
import { CHOICE_PARAMETERS, showChoices, simulateChoices, type Choosing } from "../choose";
import type { Kind } from "../kind";
import { PRESS_DATA } from "../press";
import { stimulus } from "../stimulus";

const info = {
  name: "legible-instructed",
  version: "0.1.0",
  parameters: {
    ...CHOICE_PARAMETERS,
    /** What is to be done, for instance which key is to be pressed. */
    prompt: { type: ParameterType.STRING, default: undefined },
  },
  data: PRESS_DATA,
} as const;

type Info = typeof info;
type Parameters = Choosing & { prompt: string };

/** An instructed check: a sentence says what to press. It stands on the board of a test trial, its places empty. */
export class InstructedPlugin implements JsPsychPlugin<Info> {
  static info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  trial(display: HTMLElement, trial: TrialType<Info>): void {
    this.show(display, trial as unknown as Parameters);
  }

  simulate(given: TrialType<Info>, mode: "data-only" | "visual", _options: unknown, onLoad: () => void): void {
    const trial = given as unknown as Parameters;
    simulateChoices(this.jsPsych, mode, trial, (display) => this.show(display, trial), onLoad);
  }

  private show(display: HTMLElement, trial: Parameters): void {
    showChoices(this.jsPsych, display, trial, { stimulus: stimulus({}, trial), question: trial.prompt });
    trial.announce(trial.prompt);
  }
}

export const instructed: Kind<InstructedTrial> = {
  plugin: InstructedPlugin,
  parameters({ content: { prompt, choices } }, { study, examples }) {
    return { prompt, choices, examples, reservoir: study.reservoir };
  },
};
