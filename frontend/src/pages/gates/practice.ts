import type { Desk, GateView } from "../../frame/page-context";
import { button, h } from "../../frame/dom";
import type { Media, Question, Value } from "../../server/model";
import { Board, type Answer } from "../../plugins/board";
import { stimulus, textBlock } from "../../plugins/stimulus";
import { showProgress } from "../../frame/progress";
import { actions, sheet } from "./reading";

/** Examples to look at, then pictures or texts to sort one by one, exactly as in the trials; each told at once, the try judged as a whole. */
export async function practicePage(view: GateView): Promise<Value> {
  const { desk, page } = view;
  const asked = page.questions.filter((question) => question.kind === "sort");
  const media = page.questions
    .map((question) => question.image)
    .filter((image): image is Media => image !== null);
  const ready = desk.pictures.load(media);
  await introduction(view, desk.words.practice.start);
  await ready;
  const value: Value = {};
  for (const [index, question] of asked.entries()) {
    showProgress(desk, view.state, 0, desk.words.practice.count(index + 1, asked.length));
    const choice = await ask(view, question);
    value[question.id] = await feedback(view, question, choice);
  }
  showProgress(desk, view.state);
  desk.shell.show(h("section", { class: "wait" }, h("p", {}, desk.words.sending)));
  return value;
}

export function exampleCard(desk: Desk, question: Question): HTMLElement {
  return h(
    "figure",
    { class: "example" },
    question.image ? desk.pictures.element(question.image) : null,
    question.text ? textBlock(question.text, desk.words) : null,
    h(
      "figcaption",
      {},
      `${question.prompt || desk.words.trial.label} `,
      h("strong", {}, question.label ?? ""),
    ),
  );
}

/** The gate's own text with its examples, and how many tries are left. */
export function introduction(view: GateView, start: string): Promise<void> {
  const { desk, page, state } = view;
  const { words } = desk;
  const shown = page.questions.filter((question) => question.kind === "example");
  const left = view.notice && state.attempts_left !== null ? words.attempts_left(state.attempts_left) : null;
  return new Promise((resolve) => {
    desk.shell.show(
      sheet(
        view,
        left === null ? null : h("p", { class: "quiet" }, left),
        shown.length > 0 ? h("p", {}, words.practice.examples) : null,
        h("div", { class: "examples" }, ...shown.map((question) => exampleCard(desk, question))),
        actions(button(start, () => resolve(), "primary")),
      ),
    );
  });
}

/** Whether it was right, and the rule's own answer; the answer that stands is the one that the server stored first. */
async function feedback(view: GateView, question: Question, choice: string): Promise<string> {
  const { desk, page } = view;
  const { words } = desk;
  const outcome = await desk.api.tell(page.kind, page.digest, question.id, choice);
  // What stands against it, stands against the whole page: the server says so when that is sent.
  if (!outcome.ok) return choice;
  const told = outcome.value;
  const kept = told.choice === choice ? "" : `${words.practice.kept(told.choice)} `;
  const said = told.correct ? words.practice.right(told.label) : words.practice.wrong(told.label);
  const next = { value: "seen", text: words.trial.next, key: " ", printed: words.trial.space };
  await press(view, question, kept + said, [next], words.trial.ready_next);
  return told.choice;
}

async function ask(view: GateView, question: Question): Promise<string> {
  const { desk, state } = view;
  desk.shell.show(h("div", { class: "stage" }));
  await new Promise((resolve) => setTimeout(resolve, state.study.gap_ms));
  const { trial } = desk.words;
  return press(view, question, question.prompt || trial.question, question.choices ?? [], trial.ready);
}

/** The picture or text on the board of the trials, with a sentence and its buttons; resolves with the one that is pressed. */
function press(
  view: GateView,
  question: Question,
  text: string,
  answers: Answer[],
  ready: string,
): Promise<string> {
  const { desk, state } = view;
  const { display, picture_px } = state.study;
  const given = { display, legend: null, words: desk.words, picture: (media: Media) => desk.pictures.element(media) };
  return new Promise((resolve) => {
    const board = new Board(
      {
        stimulus: stimulus({ image: question.image, text: question.text }, given),
        picture_px,
        min_view_ms: 0,
        words: desk.words,
        announce: (said) => desk.shell.announce(said),
        ask: h("p", { class: "ask" }, text),
        answers,
        beside: null,
        ready,
      },
      (pressed) => resolve(pressed.answer.value),
    );
    board.show(document.querySelector<HTMLElement>(".stage")!);
    desk.shell.announce(text);
  });
}
