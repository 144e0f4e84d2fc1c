import { ParameterType, type JsPsych, type JsPsychPlugin, type TrialType } from "jspsych";
import type { RateTrial } from "../../server/model";
import type { Kind } from "../kind";
import { PRESS_DATA, SHOWN_PARAMETERS } from "../press";
import { Form, type Rated } from "./form";
import { POINTS } from "./scale";

const info = {
  name: "legible-rate",
  version: "0.1.0",
  parameters: {
    ...SHOWN_PARAMETERS,
    /** The picture, as the wire describes it; null in a study of texts. */
    image: { type: ParameterType.OBJECT, default: null },
    /** The explanation that is rated, as a picture. */
    explanation: { type: ParameterType.OBJECT, default: null },
    /** The text with its shades; null in a study of pictures. */
    text: { type: ParameterType.OBJECT, default: null },
    /** The explanation in words, if it is a sentence. */
    sentence: { type: ParameterType.STRING, default: null },
    /** The model's answer, shown as plain text; null if it is not told. */
    label: { type: ParameterType.STRING, default: null },
    /** The questions in their order: id, text, words at both ends, and the two sides of a pair or null. */
    questions: { type: ParameterType.OBJECT, array: true, default: undefined },
    /** Milliseconds from onset until "next" becomes active, if all is answered by then. */
    min_view_ms: { type: ParameterType.INT, default: 1500 },
  },
  data: PRESS_DATA,
} as const;

type Info = typeof info;

/** A rating: an explanation, and questions about it that are answered from 1 to 5. Nothing is right or wrong. */
export class RatePlugin implements JsPsychPlugin<Info> {
  static info = info;

  constructor(private readonly jsPsych: JsPsych) {}

  trial(display: HTMLElement, trial: TrialType<Info>): void {
    this.show(display, trial as unknown as Rated);
  }

  /** Takes a point of each scale, each as likely as the others, with some seconds for each. */
  simulate(given: TrialType<Info>, mode: "data-only" | "visual", _options: unknown, onLoad: () => void): void {
    const trial = given as unknown as Rated;
    const { randomInt, sampleExGaussian } = this.jsPsych.randomization;
    const drawn = trial.questions.map(({ id }) => ({ id, point: randomInt(0, POINTS.length - 1) }));
    let at_ms = trial.min_view_ms;
    if (mode === "data-only") {
      const questions = drawn.map(({ id }) => {
        at_ms += Math.round(sampleExGaussian(2000, 500, 1 / 1500, true));
        return { id, ms: at_ms, changes: 0 };
      });
      const value = Object.fromEntries(drawn.map(({ id, point }) => [id, POINTS[point]]));
      onLoad();
      return this.jsPsych.finishTrial({ value, rt_ms: at_ms, shown_ms: at_ms, context: { questions } });
    }
    const display = this.jsPsych.getDisplayElement();
    this.show(display, trial);
    onLoad();
    at_ms += trial.presentation.course.fixation_ms;
    for (const { id, point } of drawn) {
      const radio = display.querySelectorAll(`[data-question="${id}"] input`)[point]!;
      this.jsPsych.pluginAPI.clickTarget(radio, (at_ms += 100));
    }
    this.jsPsych.pluginAPI.clickTarget(display.querySelector(".button")!, at_ms + 100);
  }

  private show(display: HTMLElement, trial: Rated): void {
    const { trial: says } = trial.words;
    const form = new Form(
      trial,
      (ratings) => this.jsPsych.finishTrial({ ...ratings }),
      (act, delay_ms) => this.jsPsych.pluginAPI.setTimeout(act, delay_ms),
    );
    form.show(display);
    const label = trial.label === null ? "" : ` ${says.label} ${trial.label}`;
    trial.announce(`${says.saw.test}.${label}`);
  }
}

export const rate: Kind<RateTrial> = {
  plugin: RatePlugin,
  place: (words, number, count) => words.rating.place(number, count),
  parameters({ content: { image, mark, text, sentence, label, questions } }) {
    return { image, explanation: mark, text, sentence, label, questions };
  },
};
