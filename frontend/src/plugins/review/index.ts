import { ParameterType } from "jspsych";
import { h } from "../../frame/dom";
import type { ReviewTrial } from "../../server/model";
import { CHOICE_PARAMETERS, choicePlugin, type Choosing } from "../choose";
import { CannotShow, type Kind } from "../kind";
import { PRESS_DATA } from "../press";
import { besides, type Solution } from "./solution";

const info = {
  name: "legible-review",
  version: "0.1.0",
  parameters: {
    ...CHOICE_PARAMETERS,
    /** The picture, as the wire describes it; null in a study of texts. */
    image: { type: ParameterType.OBJECT, default: null },
    /** The same picture with the outline of a region; null keeps its place empty. */
    mark: { type: ParameterType.OBJECT, default: null },
    /** The text; null in a study of pictures. */
    text: { type: ParameterType.OBJECT, default: null },
    /** The answer that is accepted or rejected, in words. */
    answer: { type: ParameterType.STRING, default: undefined },
  },
  data: PRESS_DATA,
} as const;

const ACCEPT = "accept";
const REJECT = "reject";

type Parameters = Choosing & Solution & { answer: string };

/** An answer to a task, to be accepted or rejected. All of it comes in one frame; no clock, no deadline. */
export const ReviewPlugin = choicePlugin<Parameters>(
  info,
  (trial) => {
    const { review } = trial.words;
    const line = [`${review.answer} `, h("strong", { class: "label" }, trial.answer)];
    const spoken = `${review.answer} ${trial.answer}. ${trial.words.trial.ready}`;
    // Said once the buttons are active, which is at once: two sentences would cut each other off.
    return { stimulus: besides(trial, trial), question: line, spoken: review.saw, ready: spoken };
  },
  (choice) => ({ accept: choice.value === ACCEPT }),
);

export const review: Kind<ReviewTrial> = {
  plugin: ReviewPlugin,
  place: (words, number, count) => words.review.place(number, count),
  parameters({ kind, content: { image, mark, text, answer, choices } }) {
    const odd = choices.find(({ value }) => value !== ACCEPT && value !== REJECT);
    if (odd !== undefined) throw new CannotShow(kind, `"${odd.value}" is neither ${ACCEPT} nor ${REJECT}`);
    // The time to decide is measured: nobody is held up who has decided.
    return { image, mark, text, answer, choices, examples: [], reservoir: "off", min_view_ms: 0 };
  },
};
