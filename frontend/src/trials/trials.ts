/** The trials, jsPsych and the kinds: loaded while the person reads the first pages, not with them. */
import { backoff_ms, waitOrOnline } from "../server/api";
import type { Desk } from "../frame/page-context";
import { h } from "../frame/dom";
import type { State } from "../server/model";

type Timeline = typeof import("./timeline");

/** A part of the page did not come although it was asked for several times. */
export class CannotLoad extends Error {}

const TRIES = 4;

/** Loads what trials need; several calls load it once. Rejects with `CannotLoad`. */
export async function loadTrials(wait: (delay_ms: number) => Promise<void> = waitOrOnline): Promise<Timeline> {
  const timeline = await patiently(() => import("./timeline"), wait);
  await patiently(() => timeline.loadKinds(), wait);
  return timeline;
}

/** The value of `load`, which is called again, later and later, if it rejects. */
export async function patiently<T>(load: () => Promise<T>, wait: (delay_ms: number) => Promise<void>): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await load();
    } catch (error) {
      if (attempt + 1 === TRIES) throw new CannotLoad(String(error), { cause: error });
      await wait(backoff_ms(attempt));
    }
  }
}

/** `runBlock` of timeline.ts, whose code may still have to come. */
export async function runBlock(desk: Desk, state: State, stop: AbortSignal): Promise<void> {
  let came = false;
  const loading = loadTrials().finally(() => (came = true));
  // Usually it is there already, and nothing is shown in between.
  setTimeout(() => {
    if (!came && !stop.aborted) desk.shell.show(h("section", { class: "wait" }, h("p", {}, desk.words.sending)));
  });
  const timeline = await loading;
  if (!stop.aborted) await timeline.runBlock(desk, state, stop);
}
