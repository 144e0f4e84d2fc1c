/** One block of trials as a jsPsych timeline: what is still to be answered, preloaded, in order. */
import { initJsPsych } from "jspsych";
import { examplesFor, openTrials } from "./block";
import type { Desk } from "./desk";
import { h } from "./dom";
import type { AnyTrial, Block, State } from "./model";
import { startPage, untoldPage } from "./pages/block";
import { UNTIL_ANSWER, type Presentation } from "./plugins/exposure";
import type { Answered, Kind, PluginClass, Shown } from "./plugins/kind";
import { kindOf } from "./plugins/kinds";
import { shareDone, showProgress } from "./progress";
import { measureRefresh } from "./refresh";
import { seen, unseen, type Unseen } from "./unseen";
import { untoldOf } from "./untold";

export { loadKinds } from "./plugins/kinds";

/**
 * Runs what is left of the block; resolves when all its answers are stored, or when `stop` was called. Rejects with
 * `CannotShow`, before anything is shown, if one of its trials is of a kind that the page lacks.
 */
export async function runBlock(desk: Desk, state: State, stop: AbortSignal): Promise<void> {
  const block = state.block;
  const trials = openTrials(state, (id) => desk.outbox.holds(id));
  if (block === null) return;
  const first = await unseen(desk, state);
  const shown = first === null ? trials : [first.trial, ...trials];
  if (shown.length > 0) {
    const kinds = await Promise.all(shown.map((trial) => kindOf(trial)));
    const place = { desk, state, block, first, stop };
    const descriptions = shown.map((trial, index) => description(place, trial, kinds[index]!));
    stop.addEventListener("abort", () => desk.fullscreen.leave(), { once: true });
    if (state.study.presentation.fullscreen) await desk.fullscreen.offer(stop);
    const measured = measure(desk);
    const asking = new Set(shown.filter((_trial, index) => kinds[index]!.asks_key).map((trial) => trial.id));
    const untold = await untoldOf(block);
    const ahead = { ...place, trials, shown, asking, untold };
    await startPage(ahead);
    if (isStaged(state)) await Promise.race([measured, new Promise((resolve) => setTimeout(resolve, MEASURE_MS))]);
    const told = untold === null ? 0 : shown.indexOf(untold.first);
    if (untold !== null && told > 0) {
      await runTrials(desk, descriptions.slice(0, told), stop);
      await untoldPage(ahead, untold);
    }
    await runTrials(desk, descriptions.slice(Math.max(0, told)), stop);
    if (shown.at(-1)?.position === (state.total ?? 0) - 1) desk.fullscreen.leave();
  }
  if (stop.aborted) return;
  desk.shell.show(h("section", { class: "wait" }, h("p", {}, desk.words.saving)));
  await desk.outbox.flush();
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
    void desk.storage.write("reloads", "0").catch(() => undefined);
  };
  return {
    ...parameters(place, trial, kind),
    tell: async (answered: Answered) => {
      await keep(answered);
      return desk.outbox.reply(trial.id);
    },
    told,
    post_trial_gap: state.study.gap_ms,
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

/**
 * The quiet line: what the kind says of its place; else which part, or, if the study has one part only, which of its
 * trials.
 */
function lineOf({ words }: Desk, block: Block, trial: AnyTrial, kind: Kind): string {
  const part = words.part(block.index + 1, block.count);
  const phase = words.phase[trial.phase];
  const alike = block.trials.filter((other) => (kind.place ? other.kind === trial.kind : other.phase === trial.phase));
  const number = alike.filter((other) => other.position <= trial.position).length;
  if (kind.place) {
    const said = kind.place(words, number, alike.length);
    return block.count > 1 ? `${part} · ${said}` : said;
  }
  return block.count > 1 ? `${part} · ${phase}` : `${phase} · ${words.number(number, alike.length)}`;
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
  return { ...shown, ...kind.parameters(trial, { study, examples: examplesFor(block, trial) }), type: kind.plugin };
}

function presentationOf(desk: Desk, state: State, trial: AnyTrial): Presentation {
  const { phases, ...course } = state.study.presentation;
  if (phases === "test" && trial.phase !== "test") return UNTIL_ANSWER;
  // The same mask for everybody at this place of the plan, whatever their condition.
  return { course, refresh_ms: desk.refresh_ms, seed: trial.position };
}
