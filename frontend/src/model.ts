/** Readable names for the wire's types; the only module that reads the generated `wire.ts`. */
import type { components } from "./wire";

type Schemas = components["schemas"];

export type Media = Schemas["Media"];
export type Choice = Schemas["Choice"];
export type Question = Schemas["Question"];
export type Page = Schemas["Page"];
export type Example = Schemas["Example"];
export type Exit = Schemas["Exit"];
export type Context = Schemas["ResponseContextRequest"];
export type ResponseItem = Schemas["ResponseItemRequest"];
export type Recorded = Schemas["Recorded"];
export type EventItem = Schemas["EventItemRequest"];
export type Ended = Schemas["Ended"];
export type ErrorBody = Schemas["Error"];

// Written by hand until the schema has a component for each kind; then each becomes `Schemas["LearnTrial"]` and so on.

/** A part of a text; `shade` is how dark the grey behind it is, 0 to 1; null and 0 are no grey. */
export interface Token {
  text: string;
  shade: number | null;
}

/** A text in pieces, in order; joined they are the text. */
export interface Text {
  tokens: Token[];
}

/** One half of a pair: a picture or a text, and what explains it. */
export interface Side {
  image: Media | null;
  mark: Media | null;
  text: Text | null;
  sentence: string | null;
}

export interface RatingQuestion {
  id: string;
  text: string;
  low: string;
  high: string;
  pair: [Side, Side] | null;
}

interface TrialOf<Kind extends string, Content> {
  id: string;
  position: number;
  kind: Kind;
  phase: "train" | "test";
  content: Content;
}

export type LearnTrial = TrialOf<
  "learn",
  { image: Media | null; explanation: Media | null; text?: Text | null; label: string | null; choices: Choice[] }
>;
/** `prompt` comes only from studies that were opened before instructed checks had a kind of their own. */
export type PredictTrial = TrialOf<
  "predict",
  {
    image: Media | null;
    explanation: Media | null;
    text?: Text | null;
    choices: Choice[];
    reservoir: string[];
    prompt?: string | null;
  }
>;
export type InstructedTrial = TrialOf<"instructed", { prompt: string; choices: Choice[]; reservoir?: string[] }>;
export type ReviewTrial = TrialOf<
  "review",
  { image: Media | null; mark: Media | null; text: Text | null; answer: string; choices: Choice[] }
>;
export type SolveTrial = TrialOf<"solve", { image: Media; grid: number; choices: Choice[] }>;
export type RateTrial = TrialOf<
  "rate",
  {
    label: string | null;
    image: Media | null;
    mark: Media | null;
    text: Text | null;
    sentence: string | null;
    questions: RatingQuestion[];
  }
>;

/** Every kind of trial that the server's core sends. */
export type Trial = LearnTrial | PredictTrial | InstructedTrial | ReviewTrial | SolveTrial | RateTrial;
/** A trial of any kind, a lab's own too. */
export type AnyTrial = TrialOf<string, object>;

export type Block = Omit<Schemas["Block"], "trials"> & { trials: AnyTrial[] };
/** `words` replaces phrases of the interface, by the keys of `words/overridable.json`. */
export type Study = Schemas["StudyFacts"] & { words?: Record<string, string> };
export type State = Omit<Schemas["SessionState"], "block" | "study"> & { block: Block | null; study: Study };
export type Step = State["step"];
export type Joined = Omit<Schemas["Joined"], "session"> & { session: State };

/** What is worth recording around the answers. */
export type EventKind =
  | "focus_lost"
  | "focus_gained"
  | "reservoir_opened"
  | "reservoir_closed"
  | "tile_enlarged"
  | "reload"
  | "offline"
  | "online"
  | "resized"
  | "paste"
  | "media_retry"
  | "media_failed"
  | "cannot_show";

/** What a gate page hands back: answers by question id, or the gate's own fields. */
export type Value = Record<string, unknown>;
