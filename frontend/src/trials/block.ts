/** Reading a block of the wire: what is still to be answered, and which pictures that needs. */
import type { AnyTrial, Block, Example, Media, State } from "../server/model";

/** Trials that wait for an answer: not before `next`, and not answered into the outbox by an earlier page. */
export function openTrials(state: State, isAnswered: (trial: string) => boolean): AnyTrial[] {
  const trials = state.block?.trials ?? [];
  return trials
    .filter((trial) => trial.position >= state.next && !isAnswered(trial.id))
    .sort((a, b) => a.position - b.position);
}

/** Every picture that the remaining trials and their reservoirs show, whatever kinds they are. */
export function picturesOf(block: Block, trials: AnyTrial[]): Media[] {
  const wanted = new Set(trials.flatMap((trial) => reservoirOf(trial)));
  const examples = block.examples.filter((example) => wanted.has(example.trial));
  return mediaIn([trials.map((trial) => trial.content), examples]);
}

/** The examples that a trial offers, in training order. */
export function examplesFor(block: Block, trial: AnyTrial): Example[] {
  const wanted = new Set(reservoirOf(trial));
  return block.examples.filter((example) => wanted.has(example.trial));
}

/** The ids of the training trials that may be consulted; kinds without that have none. */
function reservoirOf(trial: AnyTrial): string[] {
  const { reservoir } = trial.content as { reservoir?: string[] };
  return reservoir ?? [];
}

/** Pictures are known by their shape, so that a new kind's are loaded beforehand without being announced anywhere. */
function mediaIn(value: unknown): Media[] {
  if (typeof value !== "object" || value === null) return [];
  return isMedia(value) ? [value] : Object.values(value).flatMap(mediaIn);
}

function isMedia(value: object): value is Media {
  const { url, width_px, height_px } = value as Partial<Media>;
  return typeof url === "string" && typeof width_px === "number" && typeof height_px === "number";
}
