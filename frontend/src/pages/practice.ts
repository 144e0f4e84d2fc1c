import type { Desk, GateView } from "../desk";
import { button, h } from "../dom";
import type { Media, Question, Value } from "../model";
import { Board } from "../plugins/board";
import { stimulus } from "../plugins/stimulus";
import { actions, sheet } from "./reading";

/** Examples to look at, then pictures to predict one by one, exactly as in the trials; judged all at once. */
export async function practicePage(view: GateView): Promise<Value> {
  const { desk, page } = view;
  const asked = page.questions.filter((question) => question.kind === "predict");
  const media = page.questions
    .map((question) => question.image)
    .filter((image): image is Media => image !== null);
  const ready = desk.pictures.load(media);
  await examples(view);
  await ready;
  const value: Value = {};
  for (const [index, question] of asked.entries()) {
    desk.shell.line(desk.words.practice.count(index + 1, asked.length));
    value[question.id] = await ask(view, question);
  }
  desk.shell.line("");
  desk.shell.show(h("section", { class: "wait" }, h("p", {}, desk.words.sending)));
  return value;
}

export function exampleCard(desk: Desk, question: Question): HTMLElement {
  return h(
    "figure",
    { class: "example" },
    question.image ? desk.pictures.element(question.image) : null,
    h(
      "figcaption",
      {},
      `${question.prompt || desk.words.trial.label} `,
      h("strong", {}, question.label ?? ""),
    ),
  );
}

function examples(view: GateView): Promise<void> {
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
        actions(button(words.practice.start, () => resolve(), "primary")),
      ),
    );
  });
}

async function ask(view: GateView, question: Question): Promise<string> {
  const { desk, state } = view;
  const stage = h("div", { class: "stage" });
  desk.shell.show(stage);
  await new Promise((resolve) => setTimeout(resolve, state.study.gap_ms));
  const { display, picture_px } = state.study;
  const given = { display, legend: null, words: desk.words, picture: (media: Media) => desk.pictures.element(media) };
  return new Promise((resolve) => {
    const board = new Board(
      {
        stimulus: stimulus({ image: question.image }, given),
        picture_px,
        min_view_ms: 0,
        words: desk.words,
        announce: (text) => desk.shell.announce(text),
        ask: h("p", { class: "ask" }, question.prompt || desk.words.trial.question),
        answers: question.choices ?? [],
        beside: null,
        ready: desk.words.trial.ready,
      },
      (pressed) => resolve(pressed.answer.value),
    );
    board.show(stage);
  });
}
