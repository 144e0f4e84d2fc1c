/** Trials that are answered by one of several buttons: a question, the choices, the examples that may be consulted. */
import { ParameterType, type JsPsych, type JsPsychPlugin, type PluginInfo, type TrialType } from "jspsych";
import { h } from "../frame/dom";
import type { Choice, Example, Study, Value } from "../server/model";
import { Reservoir } from "../trials/reservoir";
import { Board } from "./board";
import type { PluginClass, Shown } from "./kind";
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

/** What a trial puts on its page beside choices and examples. `stimulus` is made by `stimulus()`. */
export interface Asked {
  stimulus: HTMLElement;
  /** A sentence that names a key is said anew if the person chooses other keys; parts of one stand as they are. */
  question: string | (() => string) | (string | HTMLElement)[];
  /** The buttons say their keys and nothing else. */
  are_keys?: boolean;
  /** What a screen reader says first; else the question. */
  spoken?: string;
  /** What it says when the buttons become active, if that is more than that. */
  ready?: string;
}

/**
 * A jsPsych plugin whose trial ends with a press. `ask` makes the page from the trial's parameters; `valueOf` makes the
 * answer that is sent from the choice, usually `{choice}`.
 */
export function choicePlugin<P extends Choosing>(
  info: PluginInfo,
  ask: (trial: P) => Asked,
  valueOf: (choice: Choice) => Value = ({ value }) => ({ choice: value }),
): PluginClass {
  return class implements JsPsychPlugin<PluginInfo> {
    static info = info;

    constructor(private readonly jsPsych: JsPsych) {}

    trial(display: HTMLElement, trial: TrialType<PluginInfo>): void {
      this.show(display, trial as unknown as P);
    }

    /** Presses one of the choices, each as likely as the others. */
    simulate(
      given: TrialType<PluginInfo>,
      mode: "data-only" | "visual",
      _options: unknown,
      onLoad: () => void,
    ): void {
      const trial = given as unknown as P;
      const index = this.jsPsych.randomization.randomInt(0, trial.choices.length - 1);
      const value = valueOf(trial.choices[index]!);
      const times = { mean_ms: 700, sd_ms: 150, tail_ms: 500, min_view_ms: trial.min_view_ms };
      const { presentation } = trial;
      const show = (display: HTMLElement): void => this.show(display, trial);
      simulatePress(this.jsPsych, mode, { ...times, presentation, index, value, show }, onLoad);
    }

    private show(display: HTMLElement, trial: P): void {
      const asked = ask(trial);
      const { question, are_keys = false } = asked;
      const say = typeof question === "function" ? question : null;
      const sentence = h("p", { class: "ask" }, ...(Array.isArray(question) ? question : [say?.() ?? String(question)]));
      const reservoir = reservoirFor(trial);
      const board = new Board(
        {
          ...trial,
          stimulus: asked.stimulus,
          ask: sentence,
          ...(say === null ? {} : { ask_again: () => (sentence.textContent = say()) }),
          answers: trial.choices.map((choice) => ({ ...choice, is_named_by_key: are_keys })),
          beside: reservoir?.element ?? null,
          ready: asked.ready ?? trial.words.trial.ready,
        },
        (pressed) => {
          const more = reservoir ? { reservoir_ms: reservoir.finish() } : {};
          const choice = trial.choices.find(({ value }) => value === pressed.answer.value)!;
          this.jsPsych.finishTrial(dataOf(pressed, valueOf(choice), more));
        },
        (act, delay_ms) => this.jsPsych.pluginAPI.setTimeout(act, delay_ms),
      );
      board.show(display);
      trial.announce(asked.spoken ?? sentence.textContent);
    }
  };
}

function reservoirFor(trial: Choosing): Reservoir | null {
  if (trial.reservoir === "off" || trial.examples.length === 0) return null;
  return new Reservoir({ ...trial, mode: trial.reservoir });
}
