/** What pages and trials work with; made once in `main.ts`. */
import type { Api } from "../server/api";
import type { Draft } from "../trials/draft";
import type { EventLog } from "../server/events";
import type { FullScreen } from "./fullscreen";
import type { Pictures } from "../server/media";
import type { State } from "../server/model";
import type { Outbox } from "../server/outbox";
import type { Shell } from "./shell";
import type { Storage } from "../server/storage";
import type { Words } from "../words";

export interface Desk {
  api: Api;
  outbox: Outbox;
  events: EventLog;
  pictures: Pictures;
  shell: Shell;
  storage: Storage;
  /** What is begun of the trial that is shown. */
  draft: Draft;
  words: Words;
  /** Reloads since the last answer; goes with the next one. */
  reloads: number;
  fullscreen: FullScreen;
  /** Length of a frame of the display, measured before the first trials; null: not known. */
  refresh_ms: number | null;
}

/** What a page says on top when it comes again: why, and which answers it was about. */
export interface Notice {
  text: string;
  fields: Record<string, string>;
}

export interface GateView {
  desk: Desk;
  state: State;
  page: NonNullable<State["page"]>;
  notice: Notice | null;
}
