import { ParameterType } from "jspsych";
import { h } from "../../frame/dom";
import type { DecideTrial, Media } from "../../server/model";
import { CHOICE_PARAMETERS, choicePlugin, type Choosing } from "../choose";
import { CannotShow, type Kind } from "../kind";
import { PRESS_DATA } from "../press";
import { besides, eachOnce } from "../stimulus";

const info = {
  name: "legible-decide",
  version: "0.1.0",
  parameters: {
    ...CHOICE_PARAMETERS,
    /** Whether this is the first decision about the picture, or the second. */
    step: { type: ParameterType.SELECT, options: ["first", "second"], default: undefined },
    /** The picture, as the wire describes it; the same in both steps. */
    image: { type: ParameterType.OBJECT, default: null },
    /** The explanation of the advice; null keeps its place empty. */
    explanation: { type: ParameterType.OBJECT, default: null },
    /** The person's first decision, as the buttons say it; null in the first step. */
    earlier: { type: ParameterType.STRING, default: null },
    /** What the machine answers, as the buttons say it; null: it is not told. */
    advice: { type: ParameterType.STRING, default: null },
  },
  data: PRESS_DATA,
} as const;

interface Parameters extends Choosing {
  step: "first" | "second";
  image: Media | null;
  explanation: Media | null;
  earlier: string | null;
  advice: string | null;
}

/** A decision about a picture: alone, then once more beside the first one and what the machine answers. */
export const DecidePlugin = choicePlugin<Parameters>(info, (trial) => {
  const { decide, trial: says } = trial.words;
  const { earlier, advice } = decide;
  const named = [[earlier, trial.earlier], [advice, trial.advice]] as const; // prettier-ignore
  const told = named.flatMap(([what, answer]) => (answer === null ? [] : [`${what} ${answer}.`]));
  return {
    stimulus: besides(trial.image, trial.explanation, { ...trial, picture: eachOnce(trial.picture) }),
    question: [said(named, says.question, trial.choices)],
    spoken: [`${decide.saw[trial.step]}.`, ...told, says.question].join(" "),
  };
});

/** What is named, and the question. What could be named takes its room in both steps, so that nothing moves. */
function said(
  named: readonly (readonly [string, string | null])[],
  question: string,
  choices: Parameters["choices"],
): HTMLElement {
  const lines = (answers: readonly (string | null)[]): HTMLElement[] => [
    ...named.flatMap(([what], index) => {
      const answer = answers[index] ?? null;
      return answer === null ? [] : [h("span", { class: "stated-line" }, `${what} `, h("strong", { class: "label" }, answer))];
    }),
    h("span", { class: "stated-line" }, question),
  ];
  const room = choices.map(({ text }) =>
    h("span", { class: "stated-room", "aria-hidden": "true" }, ...lines(named.map(() => text))),
  );
  return h("span", { class: "stated" }, h("span", { class: "stated-now" }, ...lines(named.map(([, answer]) => answer))), ...room);
}

export const decide: Kind<DecideTrial> = {
  plugin: DecidePlugin,
  parameters({ kind, content: { step, image, explanation, earlier, advice, choices } }) {
    if (step !== "first" && step !== "second") throw new CannotShow(kind, `"${step}" is neither step of a decision`);
    return { step, image, explanation, earlier, advice, choices, examples: [], reservoir: "off" };
  },
};
