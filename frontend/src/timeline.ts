/** One block of trials as a jsPsych timeline: what is still to be answered, preloaded, in order. */
import { initJsPsych } from "jspsych";
import { examplesFor, openTrials } from "./block";
import type { Desk } from "./desk";
import { h } from "./dom";
import type { AnyTrial, Block, Context, State, Value } from "./model";
import { startPage } from "./pages/block";
import { UNTIL_ANSWER, type Presentation } from "./plugins/exposure";
import type { Kind, PluginClass, Shown } from "./plugins/kind";
import { kindOf } from "./plugins/kinds";
import { shareDone, showProgress } from "./progress";
import { measureRefresh } from "./refresh";

export { loadKinds } from "./plugins/kinds";

/**
 * Runs what is left of the block; resolves when all its answers are stored, or when `stop` was called. Rejects with
 * `CannotShow`, before anything is shown, if one of its trials is of a kind that the page lacks.
 */
export async function runBlock(desk: Desk, state: State, stop: AbortSignal): Promise<void> {
  const block = state.block;
  const trials = openTrials(state, (id) => desk.outbox.holds(id));
  if (block === null) return;
  if (trials.length > 0) {
    const kinds = await Promise.all(trials.map((trial) => kindOf(trial)));
    const descriptions = trials.map((trial, index) => description(desk, state, block, trial, kinds[index]!, stop));
    stop.addEventListener("abort", () => desk.fullscreen.leave(), { once: true });
    if (state.study.presentation.fullscreen) await desk.fullscreen.offer(stop);
    const measured = measure(desk);
    const asking = new Set(trials.filter((_trial, index) => kinds[index]!.asks_key).map((trial) => trial.id));
    await startPage(desk, state, block, trials, asking, stop);
    if (isStaged(state)) await Promise.race([measured, new Promise((resolve) => setTimeout(resolve, MEASURE_MS))]);
    if (!stop.aborted) await runTrials(desk, descriptions, stop);
    if (trials.at(-1)?.position === (state.total ?? 0) - 1) desk.fullscreen.leave();
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
  const stage = h("div", { class: "stage", role: "group" });
  // jsPsych focuses the stage at each trial; where the page is taller than the window that would scroll it.
  stage.focus = () => HTMLElement.prototype.focus.call(stage, { preventScroll: true });
  desk.shell.show(stage);
  const jsPsych = initJsPsych({
    display_element: stage,
    // jsPsych makes the stage a tab stop; focus may be put there, but nobody should have to tab through it.
    on_trial_start: () => (stage.tabIndex = -1),
  });
  stop.addEventListener("abort", () => jsPsych.abortExperiment(), { once: true });
  await jsPsych.run(descriptions);
}

function description(
  desk: Desk,
  state: State,
  block: Block,
  trial: AnyTrial,
  kind: Kind,
  stop: AbortSignal,
): Description {
  let losses_before = 0;
  const place = placeOf(desk, block, trial, kind);
  return {
    ...parameters(desk, state, block, trial, kind),
    post_trial_gap: state.study.gap_ms,
    on_start: () => {
      losses_before = desk.events.focus_losses;
      desk.events.trial = trial.id;
      showProgress(desk, state, trial.position, place);
    },
    on_finish: async (data: { value: Value; rt_ms: number; shown_ms: number; context: Context }) => {
      desk.events.trial = null;
      if (stop.aborted) return;
      const focus_losses = desk.events.focus_losses - losses_before;
      const context = { ...data.context, focus_losses, reloads: desk.reloads };
      desk.reloads = 0;
      desk.shell.progress(shareDone(state, trial.position + 1));
      await desk.outbox.add({
        trial: trial.id,
        value: data.value,
        rt_ms: data.rt_ms,
        shown_ms: data.shown_ms,
        context,
      });
      void desk.storage.write("reloads", "0").catch(() => undefined);
    },
  };
}

/** "Part 2 of 3 · Learning", or what the kind says in place of it. */
function placeOf({ words }: Desk, block: Block, trial: AnyTrial, kind: Kind): string {
  const part = words.part(block.index + 1, block.count);
  if (!kind.place) return `${part} · ${words.phase[trial.phase]}`;
  const alike = block.trials.filter((other) => other.kind === trial.kind);
  const number = alike.filter((other) => other.position <= trial.position).length;
  const said = kind.place(words, number, alike.length);
  return block.count > 1 ? `${part} · ${said}` : said;
}

function parameters(desk: Desk, state: State, block: Block, trial: AnyTrial, kind: Kind): Description {
  const { study } = state;
  const shown: Omit<Shown, "presentation"> & { presentation: () => Presentation } = {
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
