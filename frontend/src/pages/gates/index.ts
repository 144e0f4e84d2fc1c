/** The one table of gates: which page asks what must be passed before the trials, and what its repetition means. */
import * as own from "virtual:legible-plugins";
import { waitOrOnline } from "../../server/api";
import type { Step } from "../../server/model";
import { CannotShow } from "../../plugins/kind";
import { patiently } from "../../trials/trials";
import { consentPage } from "./consent";
import { devicePage } from "./device";
import type { Gate } from "./gate";
import { instructionsPage } from "./instructions";
import { practicePage } from "./practice";
import { questionsPage } from "./questions";
import { quizPage } from "./quiz";

/** Steps of the server that are no gates. */
type Elsewhere = "trials" | "comment" | "finish";

/** The gates that the server's core asks; null: it has no page yet. The build reads the names from this literal. */
export const GATES: Record<Exclude<Step, Elsewhere> | "training", Gate | null> = {
  device: {
    page: devicePage,
    again: "in_its_text",
    before_consent: true,
    // The server tells the platform by this very reason.
    gave_up: "no suitable device",
  },
  consent: { page: consentPage, before_consent: true },
  plates: { page: async (view) => (await patiently(() => import("./plates"), waitOrOnline)).platesPage(view) },
  instructions: { page: instructionsPage },
  quiz: { page: quizPage, again: "not_right" },
  practice: { page: practicePage, again: "not_right" },
  training: { page: async (view) => (await patiently(() => import("./training"), waitOrOnline)).trainingPage(view), again: "not_right" },
  questions: { page: questionsPage },
  // Few studies ask for it: it is loaded by those that do.
  screen: { page: async (view) => (await patiently(() => import("./screen"), waitOrOnline)).screenPage(view) },
};

const TABLE: Readonly<Record<string, Gate | null>> = { ...own.gates, ...GATES };

/** The gate of that name; null if the page has none. */
export function findGate(kind: string): Gate | null {
  return Object.hasOwn(TABLE, kind) ? (TABLE[kind] ?? null) : null;
}

/** The same; throws `CannotShow` if the page has none. */
export function gateOf(kind: string): Gate {
  const gate = findGate(kind);
  if (gate) return gate;
  throw new CannotShow(kind, `no page asks the gate "${kind}": see "A gate" in docs/adding.md`);
}
