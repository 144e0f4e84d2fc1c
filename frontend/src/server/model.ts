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
export type Pay = Schemas["Pay"];
export type Told = Schemas["Told"];
export type Kept = Schemas["Kept"];
export type CheckResult = Schemas["CheckResult"];
export type Feedback = Schemas["Feedback"];
export type ErrorBody = Schemas["Error"];

export type Token = Schemas["Token"];
export type Text = Schemas["Text"];
export type Side = Schemas["Side"];
export type RateQuestion = Schemas["RateQuestion"];
export type LearnTrial = Schemas["LearnTrial"];
/** `prompt` comes only from studies that were opened before instructed checks had a kind of their own. */
export type PredictTrial = Schemas["PredictTrial"];
export type InstructedTrial = Schemas["InstructedTrial"];
export type ReviewTrial = Schemas["ReviewTrial"];
export type SolveTrial = Schemas["SolveTrial"];
export type RateTrial = Schemas["RateTrial"];
export type DecideTrial = Schemas["DecideTrial"];

/** Every kind of trial that the server's core sends. */
export type Trial =
  | LearnTrial
  | PredictTrial
  | InstructedTrial
  | ReviewTrial
  | SolveTrial
  | RateTrial
  | DecideTrial;
/** A trial of any kind, a lab's own too. */
export interface AnyTrial {
  id: string;
  position: number;
  kind: string;
  phase: Trial["phase"];
  content: object;
}

export type Block = Omit<Schemas["Block"], "trials"> & { trials: AnyTrial[] };
/** `words` replaces phrases of the interface, by its paths. */
export type Study = Schemas["StudyFacts"];
export type State = Omit<Schemas["SessionState"], "block"> & { block: Block | null };
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
  | "cannot_show"
  | "display"
  | "revealed"
  | "fullscreen_entered"
  | "fullscreen_left"
  | "fullscreen_refused";

/** What a gate page hands back: answers by question id, or the gate's own fields. */
export type Value = Record<string, unknown>;
