import { ParameterType } from "jspsych";
import { keys, printed } from "../../frame/keys";
import type { Choice, InstructedTrial } from "../../server/model";
import { CHOICE_PARAMETERS, choicePlugin, type Choosing } from "../choose";
import { UNTIL_ANSWER } from "../exposure";
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

type Parameters = Choosing & { prompt: string };

/** An instructed check: a sentence says what to press. It stands on the board of a test trial, its places empty. */
export const InstructedPlugin = choicePlugin<Parameters>(info, (trial) => ({
  stimulus: stimulus({}, trial),
  question: () => withKeys(trial.prompt, trial.choices),
  are_keys: true,
}));

/** The server's sentence names a study's key; the person may have chosen another for it. The value stays. */
function withKeys(prompt: string, choices: Choice[]): string {
  const study = choices.map((choice) => choice.key);
  const mine = keys.for(study);
  return prompt.replace(/(?<![\p{L}\p{N}])[\p{L}\p{N}](?![\p{L}\p{N}])/gu, (key) => {
    const index = study.findIndex((own) => printed(own) === key);
    return index < 0 ? key : printed(mine[index]!);
  });
}

export const instructed: Kind<InstructedTrial> = {
  plugin: InstructedPlugin,
  asks_key: true,
  parameters({ content: { prompt, choices } }, { study, examples }) {
    // There is no stimulus that could be fixated or covered: the sentence stays until the answer.
    return { prompt, choices, examples, reservoir: study.reservoir, presentation: UNTIL_ANSWER };
  },
};
