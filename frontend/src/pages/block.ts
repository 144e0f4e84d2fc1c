import { picturesOf } from "../trials/block";
import type { Desk } from "../frame/page-context";
import { button, h } from "../frame/dom";
import type { AnyTrial, Block, State } from "../server/model";
import { minutesLeft, showProgress } from "../frame/progress";
import type { Untold } from "../trials/feedback-pending";

/** What lies before the person. */
export interface Ahead {
  desk: Desk;
  state: State;
  block: Block;
  /** To be answered, in order. */
  trials: AnyTrial[];
  /** These, and before them what was answered and is shown again. */
  shown: AnyTrial[];
  /** The ids of trials that show nothing to look at, and the names of such kinds. */
  asking: ReadonlySet<string>;
  /** From which trial on no answer is revealed; null: the block reveals none. */
  untold: Untold | null;
  stop: AbortSignal;
}

/** Before a block, and after a reload in the middle of one: what comes next, while its pictures load. */
export async function startPage(ahead: Ahead): Promise<void> {
  const { desk, state, block, trials, shown, untold, stop } = ahead;
  const loaded = h("p", { class: "loading", role: "status" });
  const isFresh = trials[0]?.position === block.first;
  // Whoever comes back before the first test trial has to know that no answer is told from here on.
  const page = isFresh
    ? fresh(ahead, loaded)
    : untold !== null && shown[0] === untold.first
      ? withoutAnswers(ahead, untold, loaded)
      : back(ahead, loaded);
  page.start.disabled = true;
  for (;;) {
    desk.shell.show(page.section);
    const media = picturesOf(block, shown);
    const { failed } = await desk.pictures.load(media, (done, total) => {
      loaded.textContent = done < total ? desk.words.loading(done, total) : "";
    });
    if (stop.aborted || failed.length === 0) break;
    await askToRetry(desk, state, failed.length, stop);
    if (stop.aborted) return;
  }
  if (stop.aborted) return;
  page.start.disabled = false;
  page.start.focus({ preventScroll: true });
  if (opensTrial(state)) page.start.click();
  await page.pressed;
}

let isOpened = false;

/** Whether a researcher's preview was opened for one trial: then the first of these pages is not waited at. */
function opensTrial({ study }: State): boolean {
  const isFor = study.origin === "preview" && new URLSearchParams(location.search).get("at") === "trial";
  const opens = isFor && !isOpened;
  isOpened ||= isFor;
  return opens;
}

/** Loads what these trials show while the page is blank; false if the person was asked to try again meanwhile. */
export async function loadQuietly(desk: Desk, state: State, trials: AnyTrial[], stop: AbortSignal): Promise<boolean> {
  for (let isQuiet = true; ; isQuiet = false) {
    const { failed } = await desk.pictures.load(picturesOf(state.block!, trials));
    if (stop.aborted || failed.length === 0) return isQuiet;
    await askToRetry(desk, state, failed.length, stop);
    if (stop.aborted) return false;
  }
}

/** Between the trials whose answers are revealed and those that follow without. */
export async function untoldPage(ahead: Ahead, untold: Untold): Promise<void> {
  if (ahead.stop.aborted) return;
  const { section, start, pressed } = withoutAnswers(ahead, untold, null);
  ahead.desk.shell.show(section);
  start.focus({ preventScroll: true });
  await pressed;
}

interface Waiting {
  section: HTMLElement;
  start: HTMLButtonElement;
  /** Resolves also when the page is called off. */
  pressed: Promise<void>;
}

function fresh(ahead: Ahead, loaded: HTMLElement): Waiting {
  const { desk, state, block, trials } = ahead;
  const { words } = desk;
  const said = [block.index > 0 ? pause(desk, state, block) : null, plan(ahead, trials)];
  const title = words.block.title(block.index + 1, block.count);
  return waiting(ahead, "block", [title, words.block.start], said, loaded);
}

function back(ahead: Ahead, loaded: HTMLElement): Waiting {
  const { desk, state, trials, shown } = ahead;
  const { words } = desk;
  const next = trials[0] ?? shown[0];
  const isBegun = next !== undefined && desk.draft.of(next.id) !== null;
  const said = [
    h("p", {}, words.block.back((next?.position ?? 0) + 1, state.total ?? 0)),
    isBegun ? h("p", {}, words.block.begun) : null,
  ];
  return waiting(ahead, "block", [words.block.back_title, words.block.go_on], said, loaded);
}

/** What was, what comes, and that no answer is told any more. */
function withoutAnswers(ahead: Ahead, { first, told }: Untold, loaded: HTMLElement | null): Waiting {
  const { block: words } = ahead.desk.words;
  const left = ahead.trials.filter((trial) => trial.position >= first.position);
  const said = [
    h("p", {}, `${words.told(told)} ${words.untold}`),
    plan(ahead, left),
    h("p", {}, words.pause),
  ];
  const coming = { ...ahead, trials: left };
  return waiting(coming, "untold", [words.untold_title, words.start], said, loaded);
}

function waiting(
  { desk, state, block, trials, stop }: Ahead,
  kind: string,
  [title, press]: [string, string],
  said: (HTMLElement | null)[],
  loaded: HTMLElement | null,
): Waiting {
  let start!: HTMLButtonElement;
  const pressed = new Promise<void>((resolve) => {
    start = button(press, () => resolve(), "primary");
    start.addEventListener("keydown", refuseHeld);
    stop.addEventListener("abort", () => resolve(), { once: true });
  });
  const actions = h("div", { class: "actions" }, start, loaded);
  const section = h("section", { class: "sheet short", "data-page": kind }, h("h1", {}, title), ...said, actions);
  showProgress(desk, state, trials[0]?.position ?? state.next, desk.words.part(block.index + 1, block.count));
  return { section, start, pressed };
}

/** A key that is still held from the trial before would press the button, and the page would not be read. */
function refuseHeld(event: KeyboardEvent): void {
  if (event.repeat && (event.key === "Enter" || event.key === " ")) event.preventDefault();
}

/** Between two blocks: how much is done, how long the rest takes, and that nobody has to hurry. */
function pause(desk: Desk, state: State, block: Block): HTMLElement {
  const { words } = desk;
  const left = minutesLeft(state);
  const time = left === null ? "" : ` ${words.block.left(left)}`;
  return h("p", {}, `${words.block.done(block.index, block.count)}${time} ${words.block.pause}`);
}

function plan({ desk, block, asking }: Ahead, trials: AnyTrial[]): HTMLElement {
  const { words } = desk;
  const coming = [
    ...trials.map(({ id, phase }) => ({ phase, count: 1, isAsking: asking.has(id) })),
    ...block.later.map(({ kind, phase, count }) => ({ phase, count, isAsking: asking.has(kind) })),
  ];
  const sum = (of: typeof coming): number => of.reduce((all, { count }) => all + count, 0);
  const asks = sum(coming.filter(({ isAsking }) => isAsking));
  const count = (phase: AnyTrial["phase"]): number =>
    sum(coming.filter((each) => !each.isAsking && each.phase === phase));
  return h(
    "div",
    {},
    h("p", {}, words.block.plan),
    h(
      "ul",
      {},
      count("train") > 0 && h("li", {}, words.block.train(count("train"))),
      count("test") > 0 && h("li", {}, words.block.test(count("test"))),
      asks > 0 && h("li", {}, words.block.key(asks)),
    ),
  );
}

export function askToRetry(desk: Desk, state: State, failed: number, stop: AbortSignal): Promise<void> {
  const { words } = desk;
  const { contact } = state.study;
  return new Promise((resolve) => {
    stop.addEventListener("abort", () => resolve(), { once: true });
    desk.shell.show(
      h(
        "section",
        { class: "sheet short", role: "alert" },
        h("h1", {}, words.loading_failed_title),
        h("p", {}, words.loading_failed(failed)),
        h("p", {}, contact ? words.trouble.write_to(contact) : words.trouble.write_to_somebody),
        h(
          "div",
          { class: "actions" },
          button(words.try_again, () => resolve(), "primary"),
        ),
      ),
    );
  });
}
