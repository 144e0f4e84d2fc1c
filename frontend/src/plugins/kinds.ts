/** The one table of kinds: how a trial of the wire becomes a jsPsych description. */
import * as own from "virtual:legible-plugins";
import type { AnyTrial, Trial } from "../server/model";
import { CannotShow, type Kind } from "./kind";

type Load<T extends AnyTrial> = () => Promise<Kind<T>>;
type Core = { [Name in Trial["kind"]]: Load<Extract<Trial, { kind: Name }>> };

/**
 * The kinds that the server's core sends, each a file of its own that is loaded when it is needed. The build reads the
 * names from this literal.
 */
export const KINDS: Core = {
  learn: () => import("./learn").then(({ learn }) => learn),
  predict: () => import("./predict").then(({ predict }) => predict),
  instructed: () => import("./instructed").then(({ instructed }) => instructed),
  review: () => import("./review").then(({ review }) => review),
  solve: () => import("./solve").then(({ solve }) => solve),
  rate: () => import("./rate").then(({ rate }) => rate),
  decide: () => import("./decide").then(({ decide }) => decide),
};

/** A lab may give its kinds as they are, or as functions that load them. */
const TABLE: Readonly<Record<string, Kind | Load<never>>> = { ...own.kinds, ...KINDS };

/** The kind of a trial; rejects with `CannotShow` for one that the page has no plugin for. */
export async function kindOf(trial: AnyTrial): Promise<Kind> {
  const kind = Object.hasOwn(TABLE, trial.kind) ? TABLE[trial.kind] : null;
  if (kind) return typeof kind === "function" ? (kind() as Promise<Kind>) : kind;
  const why = `no plugin shows trials of the kind "${trial.kind}": see "A trial kind" in docs/adding.md`;
  throw new CannotShow(trial.kind, why);
}

/** Loads all kinds, so that no trial waits for one later. */
export async function loadKinds(): Promise<void> {
  await Promise.all(Object.values(TABLE).map((kind) => (typeof kind === "function" ? kind() : null)));
}
