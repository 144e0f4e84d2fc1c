/** From which trial of a block on no answer is revealed any more. */
import type { AnyTrial, Block } from "../server/model";
import { kindOf } from "../plugins/kinds";

export interface Untold {
  /** The first test trial after the last reveal of the block. */
  first: AnyTrial;
  /** How many answers the block reveals before it. */
  told: number;
}

/** Null if the block reveals nothing, or goes on with training after its last reveal. */
export async function untoldOf(block: Block): Promise<Untold | null> {
  const trials = [...block.trials].sort((a, b) => a.position - b.position);
  // What the page has no plugin for was answered elsewhere, and is only counted here.
  const kinds = await Promise.all(trials.map((trial) => kindOf(trial).catch(() => null)));
  const waits = trials.map((trial, index) => kinds[index]?.waits?.(trial) ?? false);
  const told = waits.filter(Boolean).length;
  const first = trials[waits.lastIndexOf(true) + 1];
  return told > 0 && first?.phase === "test" ? { first, told } : null;
}
