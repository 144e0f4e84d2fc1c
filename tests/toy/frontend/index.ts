/** The toy paradigm's own page: a trial kind and a gate, as a lab would write them, outside frontend/. */
import { ParameterType } from "jspsych";
import {
  actions,
  CHOICE_PARAMETERS,
  choicePlugin,
  PRESS_DATA,
  sheet,
  stimulus,
  button,
  h,
  type AnyTrial,
  type Choice,
  type Choosing,
  type Gate,
  type GateView,
  type Kind,
  type Media,
  type Side,
  type Stimulus,
  type Text,
  type Value,
} from "legible";

const info = {
  name: "toy-sort",
  version: "1.0.0",
  parameters: {
    ...CHOICE_PARAMETERS,
    /** The text that is asked about, with its shades. */
    text: { type: ParameterType.OBJECT, default: undefined },
    /** Two pictures beside each other, each a side of the page's `pair`. */
    pair: { type: ParameterType.OBJECT, array: true, default: undefined },
  },
  data: PRESS_DATA,
} as const;

const SortPlugin = choicePlugin<Choosing & Stimulus>(info, (trial) => ({
  stimulus: stimulus(trial, trial),
  question: "Which pile does the text belong to?",
}));

interface SortTrial extends AnyTrial {
  kind: "sort";
  content: { text: Text; pair: [Media, Media]; choices: Choice[] };
}

const sort: Kind<SortTrial> = {
  plugin: SortPlugin,
  parameters({ content: { text, pair, choices } }) {
    return { text, pair: pair.map(sideOf), choices };
  },
};

function sideOf(image: Media): Side {
  return { image, mark: null, text: null, sentence: null };
}

/** One sentence to agree to; without the tick there is no way on. */
const promise: Gate = {
  again: "not_right",
  page({ desk, page, ...view }: GateView): Promise<Value> {
    const prompt = page.questions[0]?.prompt ?? "I will answer carefully";
    const box = h("input", { type: "checkbox", name: "promise", required: true });
    const next = button(desk.words.next, () => undefined, "primary");
    next.type = "submit";
    return new Promise((resolve) => {
      const submit = (event: Event): void => {
        event.preventDefault();
        if (box.checked) resolve({ promise: true });
        else complaint.textContent = desk.words.form.required;
      };
      const complaint = h("p", { class: "complaint", role: "alert" });
      const label = h("label", { class: "option" }, box, h("span", {}, prompt));
      const form = h("form", { novalidate: true, submit }, label, complaint, actions(next));
      desk.shell.show(sheet({ desk, page, ...view }, form));
    });
  },
};

export const kinds = { sort };
export const gates = { promise };
