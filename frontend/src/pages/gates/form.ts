/** Questions as a form: radio buttons, numbers, text; says what is missing in words and goes there. */
import { button, h } from "../../frame/dom";
import type { Question, Value } from "../../server/model";
import type { Words } from "../../words";

interface Field {
  question: Question;
  element: HTMLElement;
  read: () => unknown;
  complain: (text: string) => void;
  focus: () => void;
}

const LONGEST_TEXT = 5_000;

export function questionForm(
  questions: Question[],
  words: Words,
  submit: string,
  given: Record<string, string>,
  onValue: (value: Value) => void,
): HTMLFormElement {
  const fields = questions.map((question) => fieldFor(question, words));
  const summary = h("p", { class: "summary", role: "alert" });
  const send = button(submit, () => undefined, "primary");
  send.type = "submit";
  const form = h(
    "form",
    {
      class: "questions",
      novalidate: true,
      submit: (event) => {
        event.preventDefault();
        const wrong = fields.filter((field) => !check(field, words));
        summary.textContent = wrong.length > 0 ? words.form.missing(wrong.length) : "";
        if (wrong.length > 0) return wrong[0]?.focus();
        send.disabled = true;
        onValue(valueOf(fields));
      },
    },
    ...fields.map((field) => field.element),
    summary,
    h("div", { class: "actions" }, send),
  );
  for (const field of fields) field.complain(given[field.question.id] ?? "");
  return form;
}

function valueOf(fields: Field[]): Value {
  const answered = fields.map((field) => [field.question.id, field.read()] as const);
  return Object.fromEntries(answered.filter(([, value]) => value !== null));
}

function check(field: Field, words: Words): boolean {
  const { question } = field;
  const value = field.read();
  const complaint =
    value === null
      ? question.required
        ? words.form.required
        : ""
      : question.kind === "number" && !fits(value, question)
        ? words.form.number(question.min, question.max)
        : "";
  field.complain(complaint);
  return complaint === "";
}

function fits(value: unknown, question: Question): boolean {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) return false;
  return value >= (question.min ?? -Infinity) && value <= (question.max ?? Infinity);
}

function fieldFor(question: Question, words: Words): Field {
  if (question.kind === "number") return numberField(question, words);
  if (question.kind === "text") return textField(question, words);
  return choiceField(question, words);
}

function choiceField(question: Question, words: Words): Field {
  const complaint = complaintFor(question);
  const inputs = (question.choices ?? []).map((choice) =>
    h("input", { type: "radio", name: question.id, value: choice.value, "aria-describedby": complaint.id }),
  );
  const element = h(
    "fieldset",
    { class: "question", "data-question": question.id },
    h("legend", {}, prompt(question, words)),
    ...(question.choices ?? []).map((choice, index) =>
      h("label", { class: "option" }, inputs[index], h("span", {}, choice.text)),
    ),
    complaint,
  );
  return {
    question,
    element,
    read: () => inputs.find((input) => input.checked)?.value ?? null,
    complain: (text) => (complaint.textContent = text),
    focus: () => inputs[0]?.focus(),
  };
}

function numberField(question: Question, words: Words): Field {
  const input = h("input", { type: "text", inputmode: "numeric", autocomplete: "off", class: "number" });
  return singleField(question, words, input, () => {
    const text = input.value.trim();
    return text === "" ? null : /^-?\d+$/.test(text) ? Number(text) : text;
  });
}

function textField(question: Question, words: Words): Field {
  const input = h("textarea", { rows: 4, maxlength: question.max_length ?? LONGEST_TEXT });
  return singleField(question, words, input, () => (input.value.trim() === "" ? null : input.value));
}

function singleField(
  question: Question,
  words: Words,
  input: HTMLInputElement | HTMLTextAreaElement,
  read: () => unknown,
): Field {
  const complaint = complaintFor(question);
  input.id = `field-${question.id}`;
  input.setAttribute("aria-describedby", complaint.id);
  const label = h("label", { for: input.id }, prompt(question, words));
  return {
    question,
    element: h("div", { class: "question", "data-question": question.id }, label, input, complaint),
    read,
    complain: (text) => {
      complaint.textContent = text;
      input.setAttribute("aria-invalid", String(text !== ""));
    },
    focus: () => input.focus(),
  };
}

function prompt(question: Question, words: Words): string {
  return question.required ? question.prompt : `${question.prompt} ${words.form.optional}`;
}

function complaintFor(question: Question): HTMLElement {
  return h("p", { class: "complaint", id: `complaint-${question.id}` });
}
