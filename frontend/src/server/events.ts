/** What happened around the answers (focus lost, examples opened): queued, sent in batches, never in the way. */
import { isPassing, type Outcome } from "./api";
import type { EventItem, EventKind } from "./model";

export interface EventLogOptions {
  send: (events: EventItem[]) => Promise<Outcome<unknown>>;
  delay_ms?: number;
  now_ms?: () => number;
}

const DELAY_MS = 2_000;
const LARGEST_BATCH = 50;
const MOST_KEPT = 500;

/** Times are milliseconds since this page was opened, the same clock as a response's `onset_ms`. */
export class EventLog {
  /** The trial that is on the screen, if any. */
  trial: string | null = null;
  focus_losses = 0;
  private waiting: EventItem[] = [];
  private timer: ReturnType<typeof setTimeout> | null = null;
  private sending = false;

  constructor(private readonly options: EventLogOptions) {}

  add(kind: EventKind, data: Record<string, unknown> = {}): void {
    const at_ms = Math.round((this.options.now_ms ?? (() => performance.now()))());
    this.waiting.push({ id: uuid(), kind, trial: this.trial, at_ms, data });
    if (this.waiting.length > MOST_KEPT) this.waiting.shift();
    this.schedule();
  }

  /** Sends what is waiting; what is not acknowledged stays and goes again with the same ids. */
  async flush(): Promise<void> {
    if (this.sending || this.waiting.length === 0) return;
    this.sending = true;
    const batch = this.waiting.slice(0, LARGEST_BATCH);
    const outcome = await this.options.send(batch);
    this.sending = false;
    // A refusal is final: an event is never worth stopping a session for.
    if (outcome.ok || !isPassing(outcome.problem)) this.forget(batch);
    if (this.waiting.length > 0) this.schedule();
  }

  /** Listens to the window until the page goes. */
  watch(view: Window = window): void {
    let away_since_ms: number | null = null;
    const left = (): void => {
      if (away_since_ms !== null) return;
      away_since_ms = performance.now();
      this.focus_losses += 1;
      this.add("focus_lost");
    };
    const back = (): void => {
      if (away_since_ms === null) return;
      this.add("focus_gained", { away_ms: Math.round(performance.now() - away_since_ms) });
      away_since_ms = null;
    };
    view.addEventListener("blur", left);
    view.addEventListener("focus", back);
    view.document.addEventListener("visibilitychange", () => (view.document.hidden ? left() : back()));
    view.addEventListener("pagehide", () => void this.flush());
    view.addEventListener("offline", () => this.add("offline"));
    view.addEventListener("online", () => this.add("online"));
    this.watchSize(view);
    view.document.addEventListener("paste", (event) => {
      this.add("paste", { characters: event.clipboardData?.getData("text").length ?? 0 });
    });
  }

  private watchSize(view: Window): void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    view.addEventListener("resize", () => {
      clearTimeout(timer);
      timer = setTimeout(
        () => this.add("resized", { width_px: view.innerWidth, height_px: view.innerHeight }),
        300,
      );
    });
  }

  private forget(batch: EventItem[]): void {
    const gone = new Set(batch.map((event) => event.id));
    this.waiting = this.waiting.filter((event) => !gone.has(event.id));
  }

  private schedule(): void {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      void this.flush();
    }, this.options.delay_ms ?? DELAY_MS);
  }
}

/** A random version-4 UUID; `crypto.randomUUID` is missing where the page is not served over https. */
export function uuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
