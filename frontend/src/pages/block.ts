import { picturesOf } from "../block";
import type { Desk } from "../desk";
import { button, h } from "../dom";
import type { AnyTrial, Block, State } from "../model";
import { minutesLeft, showProgress } from "../progress";

/**
 * Before a block, and after a reload in the middle of one: what comes next, while its pictures load. `trials` are to be
 * answered; `shown` are these and what was answered and is shown again. `asking` are the ids of trials that show
 * nothing to look at.
 */
export async function startPage(
  desk: Desk,
  state: State,
  block: Block,
  trials: AnyTrial[],
  shown: AnyTrial[],
  asking: ReadonlySet<string>,
  stop: AbortSignal,
): Promise<void> {
  const loaded = h("p", { class: "loading", role: "status" });
  const next = plan(desk, trials, asking);
  const { section, pressed, start } = layout(desk, state, block, trials.length > 0 ? trials : shown, next, loaded, stop);
  const part = desk.words.part(block.index + 1, block.count);
  showProgress(desk, state, trials[0]?.position ?? state.next, part);
  for (;;) {
    desk.shell.show(section);
    const media = picturesOf(block, shown);
    const { failed } = await desk.pictures.load(media, (done, total) => {
      loaded.textContent = done < total ? desk.words.loading(done, total) : "";
    });
    if (stop.aborted || failed.length === 0) break;
    await askToRetry(desk, state, failed.length, stop);
    if (stop.aborted) return;
  }
  if (stop.aborted) return;
  start.disabled = false;
  start.focus({ preventScroll: true });
  await pressed;
}

function layout(
  desk: Desk,
  state: State,
  block: Block,
  trials: AnyTrial[],
  next: HTMLElement,
  loaded: HTMLElement,
  stop: AbortSignal,
) {
  const { words } = desk;
  const isFresh = trials.length === block.trials.length;
  let start!: HTMLButtonElement;
  const pressed = new Promise<void>((resolve) => {
    start = button(isFresh ? words.block.start : words.block.go_on, () => resolve(), "primary");
    stop.addEventListener("abort", () => resolve(), { once: true });
  });
  start.disabled = true;
  const section = h(
    "section",
    { class: "sheet short", "data-page": "block" },
    h("h1", {}, isFresh ? words.block.title(block.index + 1, block.count) : words.block.back_title),
    isFresh && block.index > 0 ? pause(desk, state, block) : null,
    isFresh
      ? next
      : h("p", {}, words.block.back((trials[0]?.position ?? 0) + 1, state.total ?? 0)),
    h("div", { class: "actions" }, start, loaded),
  );
  return { section, pressed, start };
}

/** Between two blocks: how much is done, how long the rest takes, and that nobody has to hurry. */
function pause(desk: Desk, state: State, block: Block): HTMLElement {
  const { words } = desk;
  const left = minutesLeft(state);
  const time = left === null ? "" : ` ${words.block.left(left)}`;
  return h("p", {}, `${words.block.done(block.index, block.count)}${time} ${words.block.pause}`);
}

function plan(desk: Desk, trials: AnyTrial[], asking: ReadonlySet<string>): HTMLElement {
  const { words } = desk;
  const shown = trials.filter((trial) => !asking.has(trial.id));
  const asks = trials.length - shown.length;
  const count = (phase: AnyTrial["phase"]): number => shown.filter((trial) => trial.phase === phase).length;
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

function askToRetry(desk: Desk, state: State, failed: number, stop: AbortSignal): Promise<void> {
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
