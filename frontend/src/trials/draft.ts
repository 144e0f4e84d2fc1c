/** What a person has begun on the trial that is shown, kept so that a reload loses nothing of it. */
import type { Storage } from "../server/storage";

const NOTE = "draft";

interface Kept {
  trial: string;
  text: string;
}

export class Draft {
  /** What is still to be written; null: all is. */
  private waiting: string | null = null;
  private isWriting = false;

  private constructor(
    private readonly storage: Storage,
    private kept: Kept | null,
  ) {}

  /** Opens with what an earlier page left behind. */
  static async open(storage: Storage): Promise<Draft> {
    const note = await storage.read(NOTE).catch(() => null);
    return new Draft(storage, JSON.parse(note ?? "null") as Kept | null);
  }

  /** What was begun of a trial; null: nothing. */
  of(trial: string): string | null {
    return this.kept?.trial === trial ? this.kept.text : null;
  }

  /** Keeps the newest text of a trial; what was begun before is over. */
  keep(trial: string, text: string): void {
    this.note({ trial, text });
  }

  /** The trial is answered, or the person has left. */
  drop(): void {
    if (this.kept !== null) this.note(null);
  }

  /** Whether closing the page would lose something. */
  get isAtRisk(): boolean {
    return this.kept !== null && !this.storage.survivesReload;
  }

  private note(kept: Kept | null): void {
    this.kept = kept;
    this.waiting = JSON.stringify(kept);
    if (!this.isWriting) void this.write();
  }

  /** One write at a time, the newest text each: a brush changes it with every frame. */
  private async write(): Promise<void> {
    this.isWriting = true;
    while (this.waiting !== null) {
      const text = this.waiting;
      this.waiting = null;
      // A full disk must not stop the study: it is still in memory.
      await this.storage.write(NOTE, text).catch(() => undefined);
    }
    this.isWriting = false;
  }
}
