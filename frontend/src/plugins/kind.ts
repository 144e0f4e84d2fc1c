/** What a kind of trial is to the page. The table of all kinds is `kinds.ts`. */
import type { JsPsych, JsPsychPlugin, PluginInfo } from "jspsych";
import type { AnyTrial, Context, EventKind, Example, Feedback, Media, Study, Value } from "../server/model";
import type { Words } from "../words";
import type { Presentation } from "./exposure";

/** Parameters that every plugin gets without asking; it declares to jsPsych those that it reads. */
export interface Shown {
  display: Study["display"];
  /** What the colours of explanations mean; null if they mean nothing, or if there are none. */
  legend: Study["legend"];
  picture_px: number;
  min_view_ms: number;
  presentation: Presentation;
  words: Words;
  /** Turns a picture of the wire into a decoded element. */
  picture: (media: Media) => HTMLImageElement;
  /** Says something to screen readers. */
  announce: (text: string) => void;
  /** Records an event beside the answer. */
  log: (kind: EventKind, data?: Record<string, unknown>) => void;
  /** Stores the answer before the trial is over; resolves with what the server reveals then, null: nothing. */
  tell: (answered: Answered) => Promise<Feedback | null>;
  /** For a trial that was answered before the page was opened anew: what the server revealed. Else null. */
  told: (() => Promise<Feedback | null>) | null;
}

/** What a trial hands back when it is answered. Times in milliseconds, `context` as on the wire. */
export interface Answered {
  value: Value;
  rt_ms: number;
  shown_ms: number;
  context: Context;
}

/** What a kind may know beside its trial. */
export interface TrialView {
  study: Study;
  /** The training examples that the trial's `reservoir` names, in training order. */
  examples: Example[];
  draft: TrialDraft;
}

/** What an earlier page kept of a trial that is not answered yet. */
export interface TrialDraft {
  /** Null: nothing was begun. */
  text: string | null;
  /** Keeps what was begun, so that a reload does not lose it; `text` hands it to the next page. */
  keep: (text: string) => void;
}

/** A jsPsych plugin class. Its data must hold `value`, `rt_ms`, `shown_ms` and `context`, see `press.ts`. */
export interface PluginClass {
  new (jsPsych: JsPsych): JsPsychPlugin<PluginInfo>;
  info: PluginInfo;
}

export interface Kind<T extends AnyTrial = AnyTrial> {
  plugin: PluginClass;
  /** The plugin's own parameters, beside those of `Shown`. Throws `CannotShow` for content that it has no page for. */
  parameters(trial: T, view: TrialView): Record<string, unknown>;
  /** Whether the page of this trial goes on with the server's reply to its answer, by `Shown.tell`. */
  waits?(trial: T): boolean;
  /** What the line above its page says: which of how many of its kind. Absent: the part and what is done in it. */
  place?(words: Words, number: number, count: number): string;
  /** Its page shows nothing to look at and only asks for a key: it is announced as that. */
  asks_key?: true;
}

/** The page has nothing to show a trial or a gate with. Nothing else may be shown in its place. */
export class CannotShow extends Error {
  /** `kind`: the kind of trial, or of page, as the server names it. */
  constructor(
    readonly kind: string,
    why: string,
  ) {
    super(why);
  }
}
