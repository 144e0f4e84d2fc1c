/** One block of trials as a jsPsych timeline: what is still to be answered, preloaded, in order. */
import { initJsPsych } from "jspsych";
import { examplesFor, openTrials } from "./block";
import type { Desk } from "../frame/page-context";
import { h } from "../frame/dom";
import type { AnyTrial, Block, State } from "../server/model";
import { loadQuietly, startPage, untoldPage } from "../pages/block";
import { UNTIL_ANSWER, type Presentation } from "../plugins/exposure";
import type { Answered, Kind, PluginClass, Shown } from "../plugins/kind";
import { kindOf } from "../plugins/kinds";
import { shareDone, showProgress } from "../frame/progress";
import { measureRefresh } from "./refresh";
import { seen, unseen, type Unseen } from "./next-unanswered";
import { untoldOf } from "./feedback-pending";

export { loadKinds } from "../plugins/kinds";

/**
 * Runs what is left of the block; resolves when all its answers are stored, or when `stop` was called. Rejects with
 * `CannotShow`, before anything is shown, if one of its trials is of a kind that the page lacks.
 */
export async function runBlock(desk: Desk, state: State, stop: AbortSignal): Promise<void> {
  let now: State | null = await begin(desk, state, stop);
  // What the server hands out one at a time comes after each answer, and the blank between two trials covers that.
  while (now !== null) now = await goOn(desk, now, stop);
  if (stop.aborted) return;
  desk.shell.show(h("section", { class: "wait" }, h("p", {}, desk.words.saving)));
  await desk.outbox.flush();
}

/** From the block's page to the last trial that the server has handed out. Returns what the next ones go on from. */
async function begin(desk: Desk, state: State, stop: AbortSignal): Promise<State | null> {
  const block = state.block;
  const trials = openTrials(state, (id) => desk.outbox.holds(id));
  if (block === null) return null;
  const first = await unseen(desk, state);
  const shown = first === null ? trials : [first.trial, ...trials];
  if (shown.length === 0) return null;
  const kinds = await Promise.all(shown.map((trial) => kindOf(trial)));
  const place = { desk, state, block, first, stop };
  const descriptions = shown.map((trial, index) => description(place, trial, kinds[index]!));
  stop.addEventListener("abort", () => desk.fullscreen.leave(), { once: true });
  if (state.study.presentation.fullscreen) await desk.fullscreen.offer(stop);
  const measured = measure(desk);
  const untold = await untoldOf(block);
  const ahead = { ...place, trials, shown, asking: await askingOf(block), untold };
  await startPage(ahead);
  if (isStaged(state)) await Promise.race([measured, new Promise((resolve) => setTimeout(resolve, MEASURE_MS))]);
  const told = untold === null ? 0 : shown.indexOf(untold.first);
  if (untold !== null && told > 0) {
    await runTrials(desk, descriptions.slice(0, told), stop);
    await untoldPage(ahead, untold);
  }
  await runTrials(desk, descriptions.slice(Math.max(0, told)), stop);
  if (stop.aborted) return null;
  return over(desk, state, shown);
}

/** What goes on after these trials: the state, if the block has more; null: the block is done. */
function over(desk: Desk, state: State, shown: AnyTrial[]): State | null {
  if (shown.at(-1)?.position === (state.total ?? 0) - 1) desk.fullscreen.leave();
  return state.block!.later.length > 0 ? state : null;
}

/** The trials that follow in a block of which the server hands out some at a time; null if none follow. */
async function goOn(desk: Desk, before: State, stop: AbortSignal): Promise<State | null> {
  const state = await handedOut(desk, before, stop);
  const block = state?.block ?? null;
  if (stop.aborted || state === null || block === null) return null;
  const trials = openTrials(state, (id) => desk.outbox.holds(id));
  if (trials.length === 0) return null;
  const kinds = await Promise.all(trials.map((trial) => kindOf(trial)));
  const place = { desk, state, block, first: null, stop };
  await runTrials(
    desk,
    trials.map((trial, index) => description(place, trial, kinds[index]!)),
    stop,
  );
  return stop.aborted ? null : over(desk, state, trials);
}

/** After this long without the next trial the page says that it is waiting. */
const QUIET_MS = 1500;

/**
 * The block with what the server hands out next, its pictures decoded; null if the session goes on otherwise. Takes the
 * time between two trials, in which the page is blank, and longer only if the network does.
 */
async function handedOut(desk: Desk, before: State, stop: AbortSignal): Promise<State | null> {
  const { study } = before;
  const blank = (): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, study.gap_ms));
  let gap = blank();
  const quiet = setTimeout(() => {
    if (!stop.aborted) desk.shell.show(h("section", { class: "wait" }, h("p", {}, desk.words.sending)));
  }, study.gap_ms + QUIET_MS);
  await desk.outbox.flush();
  const outcome = stop.aborted ? null : await desk.api.state();
  // What the server says otherwise is asked for again, and acted on, where the session is steered.
  const state = outcome?.ok && outcome.value.block?.index === before.block!.index ? outcome.value : null;
  const trials = state === null ? [] : openTrials(state, (id) => desk.outbox.holds(id));
  const isLoaded = state === null || (await loadQuietly(desk, state, trials, stop));
  clearTimeout(quiet);
  if (stop.aborted || state === null) return null;
  if (!isLoaded || desk.shell.holds(".wait")) {
    // Something was to be read: the picture comes after a blank all the same.
    desk.shell.show(h("div", { class: "stage" }));
    gap = blank();
  }
  await gap;
  return state;
}

/** Whether the study counts frames to put something there and take it away; else trials need not know their length. */
function isStaged({ study: { presentation } }: State): boolean {
  return presentation.fixation_ms > 0 || presentation.exposure_ms !== null;
}

/** A display that cannot be measured in this time holds nobody up. */
const MEASURE_MS = 2000;

/** How long a frame of the display takes, once for each page that is opened. Nobody comes here before the consent. */
async function measure(desk: Desk): Promise<void> {
  if (desk.refresh_ms !== null) return;
  const refresh_ms = await measureRefresh();
  // A short block may be over before; the next one measures as well.
  if (refresh_ms === null || desk.refresh_ms !== null) return;
  desk.refresh_ms = refresh_ms;
  desk.events.add("display", { refresh_ms });
}

type Description = { type: PluginClass; [parameter: string]: unknown };

async function runTrials(desk: Desk, descriptions: Description[], stop: AbortSignal): Promise<void> {
  if (stop.aborted) return;
  const stage = h("div", { class: "stage", role: "group" });
  // jsPsych focuses the stage at each trial; where the page is taller than the window that would scroll it.
  stage.focus = () => HTMLElement.prototype.focus.call(stage, { preventScroll: true });
  desk.shell.show(stage);
  const jsPsych = initJsPsych({
    display_element: stage,
    // jsPsych makes the stage a tab stop; focus may be put there, but nobody should have to tab through it.
    on_trial_start: () => (stage.tabIndex = -1),
  });
  const abort = (): void => jsPsych.abortExperiment();
  stop.addEventListener("abort", abort, { once: true });
  await jsPsych.run(descriptions);
  // What comes after may be called off without it.
  stop.removeEventListener("abort", abort);
}

/** Where a trial stands. `first`: what comes first only to be revealed, since its answer is stored. */
interface Place {
  desk: Desk;
  state: State;
  block: Block;
  first: Unseen | null;
  stop: AbortSignal;
}

function description(place: Place, trial: AnyTrial, kind: Kind): Description {
  const { desk, state, block, first, stop } = place;
  let losses_before = 0;
  const told = first?.trial === trial ? first.told : null;
  const keep = async (answered: Answered): Promise<void> => {
    const focus_losses = desk.events.focus_losses - losses_before;
    const context = { ...answered.context, focus_losses, reloads: desk.reloads };
    desk.reloads = 0;
    desk.shell.progress(shareDone(state, trial.position + 1));
    await desk.outbox.add({ ...answered, trial: trial.id, context });
    desk.draft.drop();
    void desk.storage.write("reloads", "0").catch(() => undefined);
  };
  return {
    ...parameters(place, trial, kind),
    tell: async (answered: Answered) => {
      await keep(answered);
      return desk.outbox.reply(trial.id);
    },
    told,
    // After the last trial that was handed out, the page is blank while the next one comes.
    post_trial_gap: isLastHandedOut(block, trial) ? 0 : state.study.gap_ms,
    on_start: () => {
      losses_before = desk.events.focus_losses;
      desk.events.trial = trial.id;
      showProgress(desk, state, trial.position + (told === null ? 0 : 1), lineOf(desk, block, trial, kind));
    },
    on_finish: async ({ value, rt_ms, shown_ms, context }: Answered) => {
      desk.events.trial = null;
      if (stop.aborted) return;
      if (kind.waits?.(trial)) seen(desk, trial);
      if (!desk.outbox.holds(trial.id) && told === null) await keep({ value, rt_ms, shown_ms, context });
    },
  };
}

function isLastHandedOut(block: Block, trial: AnyTrial): boolean {
  return block.later.length > 0 && block.trials.every(({ position }) => position <= trial.position);
}

/** The ids of the trials, and the names of the kinds to come, that show nothing to look at. */
async function askingOf(block: Block): Promise<Set<string>> {
  const named = [
    ...block.trials.map((trial) => [trial.id, trial] as const),
    ...block.later.map(({ kind }) => [kind, { kind } as AnyTrial] as const),
  ];
  // What the page has no plugin for was answered elsewhere, and is only counted here.
  const kinds = await Promise.all(named.map(([, trial]) => kindOf(trial).catch(() => null)));
  return new Set(named.filter((_, index) => kinds[index]?.asks_key).map(([name]) => name));
}

/**
 * The quiet line: what the kind says of its place; else which part, or, if the study has one part only, which of its
 * trials.
 */
function lineOf({ words }: Desk, block: Block, trial: AnyTrial, kind: Kind): string {
  const part = words.part(block.index + 1, block.count);
  const phase = words.phase[trial.phase];
  const [number, count] = numberOf(block, trial, kind);
  if (kind.place) {
    const said = kind.place(words, number, count);
    return block.count > 1 ? `${part} · ${said}` : said;
  }
  return block.count > 1 ? `${part} · ${phase}` : `${phase} · ${words.number(number, count)}`;
}

/** Which of how many of its kind, or of its phase. Of a block that is handed out in parts: which of all its trials. */
function numberOf(block: Block, trial: AnyTrial, kind: Kind): [number, number] {
  const end = Math.max(...block.trials.map(({ position }) => position)) + 1;
  const whole = end - block.first + block.later.reduce((sum, { count }) => sum + count, 0);
  if (block.trials.length < whole) return [trial.position - block.first + 1, whole];
  const alike = block.trials.filter((other) => (kind.place ? other.kind === trial.kind : other.phase === trial.phase));
  return [alike.filter(({ position }) => position <= trial.position).length, alike.length];
}

function parameters({ desk, state, block }: Place, trial: AnyTrial, kind: Kind): Description {
  const { study } = state;
  const shown: Omit<Shown, "presentation" | "tell" | "told"> & { presentation: () => Presentation } = {
    display: study.display,
    legend: study.legend,
    picture_px: study.picture_px,
    min_view_ms: study.min_view_ms,
    // Asked by jsPsych when the trial begins: by then the display has been measured.
    presentation: () => presentationOf(desk, state, trial),
    words: desk.words,
    picture: (media) => desk.pictures.element(media),
    announce: (text) => desk.shell.announce(text),
    log: desk.events.add.bind(desk.events),
  };
  const draft = { text: desk.draft.of(trial.id), keep: (text: string) => desk.draft.keep(trial.id, text) };
  return { ...shown, ...kind.parameters(trial, { study, examples: examplesFor(block, trial), draft }), type: kind.plugin };
}

function presentationOf(desk: Desk, state: State, trial: AnyTrial): Presentation {
  const { phases, ...course } = state.study.presentation;
  if (phases === "test" && trial.phase !== "test") return UNTIL_ANSWER;
  // The same mask for everybody at this place of the plan, whatever their condition.
  return { course, refresh_ms: desk.refresh_ms, seed: trial.position };
}
