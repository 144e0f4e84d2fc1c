/**
 * Plates for colour vision: a question about the screen, then one plate after the other. Each answer is kept as it is
 * given, so that a page that is loaded again goes on after it; nothing is told of any. The check may be left out at any
 * time.
 */
import type { Desk, GateView } from "../../frame/page-context";
import { button, h } from "../../frame/dom";
import type { Media, Question, Value } from "../../server/model";
import { Board } from "../../plugins/board";
import { stimulus } from "../../plugins/stimulus";
import { showProgress } from "../../frame/progress";
import { makeRoom } from "../../trials/trial-layout";
import { askToRetry } from "../block";
import { confirm } from "../dialogs";
import { questionForm } from "./form";
import { sheet } from "./reading";

/** Two rows of answers, as the server reckons them for the smallest window; the plate has no caption. */
const ANSWERS_PX = 132;
/** What is sent for a check that was left out. */
const LEFT_OUT: Value = {};

export async function platesPage(view: GateView): Promise<Value> {
  const { desk, state } = view;
  const leave = new AbortController();
  const left = new Promise<null>((resolve) => leave.signal.addEventListener("abort", () => resolve(null)));
  makeRoom({ ...state.study, answers_px: ANSWERS_PX, display: "overlay" });
  document.documentElement.style.setProperty("--caption", "0px");
  try {
    return (await Promise.race([answered(view, leave), left])) ?? LEFT_OUT;
  } finally {
    desk.shell.offer(null);
    makeRoom(state.study);
    document.documentElement.style.removeProperty("--caption");
    showProgress(desk, state);
    desk.shell.show(h("section", { class: "wait" }, h("p", {}, desk.words.sending)));
  }
}

async function leaveOut(desk: Desk, leave: AbortController): Promise<void> {
  const { leave_title, leave_text, leave_confirm, leave_stay } = desk.words.plates;
  if (await confirm(leave_title, leave_text, leave_confirm, leave_stay)) leave.abort();
}

async function answered(view: GateView, leave: AbortController): Promise<Value> {
  const { desk, page, state } = view;
  const { words } = desk;
  const stop = leave.signal;
  const tool = { text: words.plates.leave_out, press: () => void leaveOut(desk, leave) };
  const value: Value = { ...page.kept };
  const about = page.questions.filter((question) => question.image === null);
  const plates = page.questions.filter((question) => question.image !== null);
  const keeper = new Keeper(view);
  const pictures = plates.map((question) => question.image).filter((image): image is Media => image !== null);
  const loading = desk.pictures.load(pictures);
  if (about.some((question) => !(question.id in value))) {
    Object.assign(value, await introduction(view, about, button(tool.text, tool.press, "link")));
    for (const question of about) keeper.keep(question.id, String(value[question.id]));
  }
  desk.shell.show(h("section", { class: "wait" }, h("p", {}, words.sending)));
  for (let { failed } = await loading; failed.length > 0 && !stop.aborted; { failed } = await desk.pictures.load(pictures))
    await askToRetry(desk, state, failed.length, stop);
  desk.shell.offer(tool);
  for (const [index, question] of plates.entries()) {
    if (question.id in value) continue;
    if (stop.aborted || keeper.isRefused) break;
    desk.shell.line(words.plates.count(index + 1, plates.length));
    value[question.id] = await ask(view, question);
    keeper.keep(question.id, String(value[question.id]));
  }
  await keeper.done();
  return value;
}

/** Sends single answers while the next plate is looked at. What the server refuses, it refuses of the whole page too. */
class Keeper {
  isRefused = false;
  private readonly sent: Promise<void>[] = [];

  constructor(private readonly view: GateView) {}

  keep(question: string, choice: string): void {
    const { desk, page } = this.view;
    const sent = desk.api.keep(page.kind, page.digest, question, choice).then((outcome) => {
      this.isRefused ||= !outcome.ok;
    });
    this.sent.push(sent);
  }

  async done(): Promise<void> {
    await Promise.all(this.sent);
  }
}

function introduction(view: GateView, about: Question[], leave: HTMLElement): Promise<Value> {
  const { desk, notice } = view;
  return new Promise((resolve) => {
    const form = questionForm(about, desk.words, desk.words.plates.start, notice?.fields ?? {}, resolve);
    form.querySelector(".actions")?.append(leave);
    desk.shell.show(sheet(view, form));
  });
}

async function ask(view: GateView, question: Question): Promise<string> {
  const { desk, state } = view;
  const { trial } = desk.words;
  desk.shell.show(h("div", { class: "stage plates" }));
  await new Promise((resolve) => setTimeout(resolve, state.study.gap_ms));
  const given = {
    display: "overlay" as const,
    legend: null,
    words: desk.words,
    picture: (media: Media) => desk.pictures.element(media),
  };
  return new Promise((resolve) => {
    const board = new Board(
      {
        stimulus: stimulus({ image: question.image }, given),
        picture_px: state.study.picture_px,
        min_view_ms: 0,
        words: desk.words,
        announce: (said) => desk.shell.announce(said),
        ask: h("p", { class: "ask" }, question.prompt),
        // A digit's key is the digit: it need not be printed twice.
        answers: (question.choices ?? []).map((choice) =>
          choice.key === choice.text ? { ...choice, printed: "" } : choice,
        ),
        beside: null,
        ready: trial.ready,
      },
      (pressed) => resolve(pressed.answer.value),
    );
    const stage = document.querySelector<HTMLElement>(".stage");
    // The check was left out in the gap.
    if (stage === null) return;
    board.show(stage);
    desk.shell.announce(question.prompt);
  });
}
