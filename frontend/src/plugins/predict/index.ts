import { ParameterType } from "jspsych";
import type { PredictTrial } from "../../server/model";
import { CHOICE_PARAMETERS, choicePlugin, type Choosing } from "../choose";
import type { Kind } from "../kind";
import { PRESS_DATA } from "../press";
import { stimulus, type Stimulus } from "../stimulus";

const info = {
  name: "legible-predict",
  version: "0.2.0",
  parameters: {
    ...CHOICE_PARAMETERS,
    /** The picture, as the wire describes it; null in a study of texts, or if a check asks about none. */
    image: { type: ParameterType.OBJECT, default: null },
    /** An explanation, if the study shows one in tests too; usually null. */
    explanation: { type: ParameterType.OBJECT, default: null },
    /** The text with its shades; null in a study of pictures. */
    text: { type: ParameterType.OBJECT, default: null },
    /** The question; null is the usual one. */
    prompt: { type: ParameterType.STRING, default: null },
  },
  data: PRESS_DATA,
} as const;

type Parameters = Choosing & Stimulus & { prompt: string | null };

/** A test trial: the picture, the question, the answers; beside them the examples seen so far. No feedback. */
export const PredictPlugin = choicePlugin<Parameters>(info, (trial) => {
  const { trial: says } = trial.words;
  const question = trial.prompt ?? says.question;
  return { stimulus: stimulus(trial, trial), question, spoken: `${says.saw.test}. ${question}` };
});

export const predict: Kind<PredictTrial> = {
  plugin: PredictPlugin,
  parameters({ content }, { study, examples }) {
    const { image, explanation, text = null, prompt = null, choices } = content;
    return { image, explanation, text, prompt, choices, examples, reservoir: study.reservoir };
  },
};
