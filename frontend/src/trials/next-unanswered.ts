/** The trial whose answer is given and whose reveal was not passed, because the page was opened anew between the two. */
import type { Desk } from "../frame/page-context";
import type { AnyTrial, Feedback, State } from "../server/model";
import { kindOf } from "../plugins/kinds";

/** The name of the note that keeps the last trial whose reveal was passed. */
const NOTE = "revealed";

export interface Unseen {
  trial: AnyTrial;
  told: () => Promise<Feedback | null>;
}

/** Only the newest answer can be meant: no trial comes before the reveal of the one before it was passed. */
export async function unseen(desk: Desk, state: State): Promise<Unseen | null> {
  const { outbox, storage } = desk;
  const trials = state.block?.trials ?? [];
  const answered = trials.filter((trial) => trial.position < state.next || outbox.holds(trial.id));
  const trial = answered.sort((a, b) => a.position - b.position).at(-1);
  // What the page has no plugin for was answered elsewhere: nothing of it can be shown here.
  const kind = trial === undefined ? null : await kindOf(trial).catch(() => null);
  if (trial === undefined || !kind?.waits?.(trial)) return null;
  if ((await storage.read(NOTE).catch(() => null)) === trial.id) return null;
  const { feedback } = state;
  if (feedback?.trial === trial.id) return { trial, told: () => Promise.resolve(feedback) };
  return outbox.holds(trial.id) ? { trial, told: () => outbox.reply(trial.id) } : null;
}

/** Keeps that the reveal of a trial was passed. Without a note it is shown again after a reload, which loses nothing. */
export function seen(desk: Desk, trial: AnyTrial): void {
  void desk.storage.write(NOTE, trial.id).catch(() => undefined);
}
