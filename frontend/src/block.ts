/** Reading a block of the wire: what is still to be answered, and which pictures that needs. */
import type { Block, Example, Media, State, Trial } from "./model";

/** Trials that wait for an answer: not before `next`, and not answered into the outbox by an earlier page. */
export function openTrials(state: State, isAnswered: (trial: string) => boolean): Trial[] {
  const trials = state.block?.trials ?? [];
  return trials
    .filter((trial) => trial.position >= state.next && !isAnswered(trial.id))
    .sort((a, b) => a.position - b.position);
}

/** Every picture that the remaining trials and their reservoirs show. */
export function picturesOf(block: Block, trials: Trial[]): Media[] {
  const own = trials.flatMap((trial) => [trial.content.image, trial.content.explanation]);
  const wanted = new Set(trials.flatMap((trial) => trial.content.reservoir ?? []));
  const tiles = block.examples
    .filter((example) => wanted.has(example.trial))
    .flatMap((example) => [example.image, example.explanation]);
  return [...own, ...tiles].filter((media): media is Media => media !== null);
}

/** The examples with these trial ids, in training order. */
export function examplesFor(block: Block, ids: string[]): Example[] {
  const wanted = new Set(ids);
  return block.examples.filter((example) => wanted.has(example.trial));
}
