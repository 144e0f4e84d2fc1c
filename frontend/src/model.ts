/** Readable names for the wire's types; the only module that reads the generated `wire.ts`. */
import type { components } from "./wire";

type Schemas = components["schemas"];

export type Media = Schemas["Media"];
export type Choice = Schemas["Choice"];
export type Question = Schemas["Question"];
export type Page = Schemas["Page"];
export type Trial = Schemas["Trial"];
export type Example = Schemas["Example"];
export type Block = Schemas["Block"];
export type Exit = Schemas["Exit"];
export type Study = Schemas["StudyFacts"];
export type State = Schemas["SessionState"];
export type Step = State["step"];
export type Joined = Schemas["Joined"];
export type Context = Schemas["ResponseContextRequest"];
export type ResponseItem = Schemas["ResponseItemRequest"];
export type Recorded = Schemas["Recorded"];
export type EventItem = Schemas["EventItemRequest"];
export type Ended = Schemas["Ended"];
export type ErrorBody = Schemas["Error"];

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
  | "media_failed";

/** What a gate page hands back: answers by question id, or the gate's own fields. */
export type Value = Record<string, unknown>;
