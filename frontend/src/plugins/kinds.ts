/** The one table of kinds: how a trial of the wire becomes a jsPsych description. */
import * as own from "virtual:legible-plugins";
import type { AnyTrial, Trial } from "../model";
import { instructed } from "./instructed";
import { CannotShow, type Kind } from "./kind";
import { learn } from "./learn";
import { predict } from "./predict";

type Core = { [Name in Trial["kind"]]: Kind<Extract<Trial, { kind: Name }>> | null };

/** The kinds that the server's core sends; null: it has no page yet. The build reads the names from this literal. */
export const KINDS: Core = { learn, predict, instructed, review: null, solve: null, rate: null };

const TABLE: Readonly<Record<string, Kind | null>> = { ...own.kinds, ...KINDS };

/** The kind of a trial; throws `CannotShow` for one that the page has no plugin for. */
export function kindOf(trial: AnyTrial): Kind {
  const kind = Object.hasOwn(TABLE, trial.kind) ? TABLE[trial.kind] : null;
  if (kind) return kind;
  const why = `no plugin shows trials of the kind "${trial.kind}": see "A trial kind" in docs/adding.md`;
  throw new CannotShow(trial.kind, why);
}
