/** How far, and how long it still takes: the bar and the quiet line of every page after the look at the device. */
import type { Desk } from "./page-context";
import type { State } from "../server/model";

/** The share of the session (0-1) that is done once `answered` trials are; null where nothing is counted. */
export function shareDone(state: State, answered = state.next): number | null {
  const { progress, total } = state;
  if (progress === null) return null;
  if (state.step !== "trials" || !total) return progress.done;
  // The state was told with `next` trials answered; the page goes on from there by itself.
  return Math.min(1, progress.done + (progress.trials * (answered - state.next)) / total);
}

/** Minutes that the rest takes, as the study told its people what the whole takes. */
export function minutesLeft(state: State, answered = state.next): number | null {
  const done = shareDone(state, answered);
  return done === null || state.progress === null ? null : (1 - done) * state.progress.minutes;
}

/** `first` says what the page is part of, for instance "Part 2 of 3"; without it the step is named. */
export function showProgress(desk: Desk, state: State, answered = state.next, first = ""): void {
  const { shell, words } = desk;
  const left = minutesLeft(state, answered);
  shell.progress(shareDone(state, answered));
  if (left === null || state.progress === null) return shell.line(first);
  const { step, steps } = state.progress;
  const time = first === "" ? words.left(left) : words.left_short(left);
  shell.line(`${first || words.step(step, steps)} · ${time}`);
}
