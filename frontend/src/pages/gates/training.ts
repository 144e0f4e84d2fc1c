/** Rater training: clear explanations to rate one by one; each answer is told at once, the try judged as a whole. */
import type { GateView } from "../../frame/page-context";
import { button, h, keysAreBusy } from "../../frame/dom";
import type { Media, Question, Value } from "../../server/model";
import { UNTIL_ANSWER } from "../../plugins/exposure";
import { Form } from "../../plugins/rate/form";
import { showProgress } from "../../frame/progress";
import { introduction } from "./practice";

export async function trainingPage(view: GateView): Promise<Value> {
  const { desk, page, state } = view;
  const { words } = desk;
  const asked = page.questions.filter((question) => question.kind !== "example");
  const media = page.questions
    .flatMap(({ image, explanation }) => [image, explanation])
    .filter((shown): shown is Media => shown !== null && shown !== undefined);
  const ready = desk.pictures.load(media);
  await introduction(view, words.training.start);
  await ready;
  const value: Value = {};
  for (const [index, question] of asked.entries()) {
    showProgress(desk, state, 0, words.training.count(index + 1, asked.length));
    const { form, choice } = await ask(view, question);
    value[question.id] = await tell(view, question, form, choice);
  }
  showProgress(desk, state);
  desk.shell.show(h("section", { class: "wait" }, h("p", {}, words.sending)));
  return value;
}

/** The page of a rating with one question; resolves with its answer, and the form as it was left. */
async function ask(view: GateView, question: Question): Promise<{ form: Form; choice: string }> {
  const { desk, state } = view;
  const stage = h("div", { class: "stage" });
  desk.shell.show(stage);
  await new Promise((resolve) => setTimeout(resolve, state.study.gap_ms));
  const { image, explanation = null, text, label, prompt, low, high } = question;
  const asked = { id: question.id, text: prompt, low: low ?? "", high: high ?? "", pair: null };
  return new Promise((resolve) => {
    const form: Form = new Form(
      {
        ...{ image, explanation, text, label, sentence: null, questions: [asked] },
        ...{ display: "beside", legend: state.study.legend, picture_px: state.study.picture_px },
        ...{ min_view_ms: 0, presentation: UNTIL_ANSWER, words: desk.words, go_on: desk.words.training.answer },
        picture: (media) => desk.pictures.element(media),
        announce: (said) => desk.shell.announce(said),
        log: () => undefined,
      },
      ({ value }) => resolve({ form, choice: String(value[question.id]) }),
      (act, delay_ms) => void setTimeout(act, delay_ms),
    );
    form.show(stage);
    desk.shell.announce(prompt);
  });
}

/** Which points fit, and why, below the answer; the answer that stands is the one that the server stored first. */
async function tell(view: GateView, question: Question, form: Form, choice: string): Promise<string> {
  const { desk, page } = view;
  const { training } = desk.words;
  const outcome = await desk.api.tell(page.kind, page.digest, question.id, choice);
  // What stands against it, stands against the whole page: the server says so when that is sent.
  if (!outcome.ok) return choice;
  const told = outcome.value;
  const kept = told.choice === choice ? "" : `${training.kept(told.choice)} `;
  const said = kept + (told.correct ? training.fits(told.label) : training.differs(told.label));
  await read(desk.words.trial.next, desk.words.rating.enter, said, form);
  return told.choice;
}

/** Shows a sentence in the place of the form's button, with one to go on. */
function read(next: string, enter: string, said: string, form: Form): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      document.removeEventListener("keydown", onKey, true);
      resolve();
    };
    const go = button(next, done, "primary");
    const onKey = (event: KeyboardEvent): void => {
      if (!go.isConnected) return document.removeEventListener("keydown", onKey, true);
      const isElsewhere = event.target instanceof Element && event.target.matches("button, a");
      if (event.key !== "Enter" || event.repeat || isElsewhere || keysAreBusy(event.target)) return;
      event.preventDefault();
      done();
    };
    go.append(" ", h("kbd", { "aria-hidden": "true" }, enter));
    form.end(h("p", { class: "told", role: "status" }, said), go);
    document.addEventListener("keydown", onKey, true);
    go.focus({ preventScroll: true });
    go.scrollIntoView?.({ block: "nearest" });
  });
}
