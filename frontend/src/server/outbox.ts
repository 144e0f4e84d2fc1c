/**
 * Answers on their way to the server. An answer is kept here first, sent in order, may be sent twice (the server
 * knows), and leaves only when the server has said that it is stored or that it is not wanted.
 */
import { backoff_ms, isPassing, waitOrOnline, type Outcome, type Problem } from "./api";
import type { Feedback, Recorded, ResponseItem } from "./model";
import type { Kept, Storage } from "./storage";

export interface OutboxOptions {
  storage: Storage;
  send: (responses: ResponseItem[]) => Promise<Outcome<Recorded>>;
  /** The server holds something else: our copy has been dropped, its state is to be asked for. */
  onConflict: (problem: Problem) => void;
  onCount?: (count: number) => void;
  wait?: (delay_ms: number) => Promise<void>;
}

const LARGEST_BATCH = 50;

export class Outbox {
  private kept: Kept[] = [];
  /** What the server revealed in its reply to each answer that it stored for this page; null: nothing. */
  private readonly stored = new Map<string, Feedback | null>();
  private listeners: { trial: string; hear: (told: Feedback | null) => void }[] = [];
  private sending: Promise<void> | null = null;
  private stopped = false;

  private constructor(private readonly options: OutboxOptions) {}

  /** Opens with whatever an earlier page left behind; nothing is sent before `flush`. */
  static async open(options: OutboxOptions): Promise<Outbox> {
    const outbox = new Outbox(options);
    outbox.kept = await options.storage.load();
    return outbox;
  }

  get count(): number {
    return this.kept.length;
  }

  get survivesReload(): boolean {
    return this.options.storage.survivesReload;
  }

  /** Whether a trial was answered: kept here, or sent by this page, whose last word from the server may be older. */
  holds(trial: string): boolean {
    return this.stored.has(trial) || this.kept.some((kept) => kept.item.trial === trial);
  }

  /**
   * What the server reveals once it has stored the answer to a trial; null: nothing. Never resolves for an answer that
   * is refused: then `onConflict` was called.
   */
  reply(trial: string): Promise<Feedback | null> {
    const told = this.stored.get(trial);
    if (told !== undefined) return Promise.resolve(told);
    return new Promise((hear) => this.listeners.push({ trial, hear }));
  }

  /** Resolves when the answer is kept (not: sent). */
  async add(item: ResponseItem): Promise<void> {
    if (this.holds(item.trial)) return;
    const last = this.kept[this.kept.length - 1];
    const kept = { order: last === undefined ? 1 : last.order + 1, item };
    this.kept.push(kept);
    this.counted();
    // A full disk must not stop the study: the answer is still in memory and on its way.
    await this.options.storage.put(kept).catch(() => undefined);
    void this.flush();
  }

  /** Sends until nothing is left or the server refuses; a second call joins the first. */
  flush(): Promise<void> {
    this.sending ??= this.drain().finally(() => {
      this.sending = null;
    });
    return this.sending;
  }

  /** Sends nothing more from this page, for instance because another tab goes on. */
  stop(): void {
    this.stopped = true;
  }

  async clear(): Promise<void> {
    await this.drop(this.kept.map((kept) => kept.order));
  }

  private async drain(): Promise<void> {
    let largest = LARGEST_BATCH;
    for (let attempt = 0; this.kept.length > 0 && !this.stopped;) {
      const batch = this.kept.slice(0, largest);
      const outcome = await this.options.send(batch.map((kept) => kept.item));
      if (outcome.ok) {
        attempt = 0;
        for (const { item } of batch) this.stored.set(item.trial, outcome.value.feedback[item.trial] ?? null);
        await this.drop(batch.map((kept) => kept.order));
        this.tell();
      } else if (isPassing(outcome.problem)) {
        await (this.options.wait ?? waitOrOnline)(outcome.problem.retry_after_ms ?? backoff_ms(attempt));
        attempt += 1;
      } else if (batch.length > 1 && [400, 413].includes(outcome.problem.status)) {
        // One bad answer must not take the good ones before it along.
        largest = 1;
      } else {
        return await this.yieldToServer(outcome.problem);
      }
    }
  }

  private tell(): void {
    const due = this.listeners.filter(({ trial }) => this.stored.has(trial));
    this.listeners = this.listeners.filter(({ trial }) => !this.stored.has(trial));
    for (const { trial, hear } of due) hear(this.stored.get(trial) ?? null);
  }

  private async yieldToServer(problem: Problem): Promise<void> {
    // Without a session nothing was judged: keep the copy for the page that goes on.
    if (problem.status === 401) this.stopped = true;
    else await this.clear();
    this.options.onConflict(problem);
  }

  private async drop(orders: number[]): Promise<void> {
    const gone = new Set(orders);
    this.kept = this.kept.filter((kept) => !gone.has(kept.order));
    this.counted();
    await this.options.storage.remove(orders).catch(() => undefined);
  }

  private counted(): void {
    this.options.onCount?.(this.kept.length);
  }
}
