/** When a stimulus was first on the screen, for how long, and how the display's frames came meanwhile. */

/** A longer gap is no loss of frames: a hidden tab gets none at all. */
const HIDDEN_MS = 1000;
/** A frame that takes this many times the usual one was seen late, whatever the display's rate. */
const LATE = 1.5;
/** From so many frames on, the usual one is known. */
const FRAMES_MIN = 5;
/** A trial of half an hour keeps no more gaps than these. */
const FRAMES_MAX = 1000;

export class Exposure {
  /**
   * Start of the first frame that can show the stimulus, on the page's clock; null before. What is put into the page
   * is painted at the end of a frame and shown with the next one, so this is the frame after the one that painted it.
   */
  onset_ms: number | null = null;
  private readonly gaps_ms: number[] = [];
  private frame = 0;
  private last_ms = 0;

  start(onOnset: () => void): void {
    const inserted_ms = performance.now();
    this.frame = requestAnimationFrame(() => {
      this.frame = requestAnimationFrame((now_ms) => {
        this.onset_ms = Math.max(now_ms, inserted_ms);
        this.last_ms = now_ms;
        this.frame = requestAnimationFrame(this.tick);
        onOnset();
      });
    });
  }

  /** Milliseconds from onset to an event; events carry the moment of the press, not of its handling. */
  since(event: Event): number {
    const now_ms = performance.now();
    const onset_ms = this.onset_ms ?? now_ms;
    const at_ms = event.timeStamp >= onset_ms && event.timeStamp <= now_ms ? event.timeStamp : now_ms;
    return Math.max(0, Math.round(at_ms - onset_ms));
  }

  /** Ends the exposure and returns its length. */
  stop(): number {
    cancelAnimationFrame(this.frame);
    const now_ms = performance.now();
    return Math.max(0, Math.round(now_ms - (this.onset_ms ?? now_ms)));
  }

  /** The usual length of a frame, in milliseconds to two places; null if too few came to know it. */
  get refresh_ms(): number | null {
    if (this.gaps_ms.length < FRAMES_MIN) return null;
    const sorted = [...this.gaps_ms].sort((a, b) => a - b);
    return Math.round(sorted[Math.floor(sorted.length / 2)]! * 100) / 100;
  }

  /** Frames that were due and did not come, by the display's own rate. */
  get dropped_frames(): number {
    const usual_ms = this.refresh_ms;
    if (usual_ms === null || usual_ms === 0) return 0;
    const late = this.gaps_ms.filter((gap_ms) => gap_ms > LATE * usual_ms && gap_ms < HIDDEN_MS);
    return late.reduce((sum, gap_ms) => sum + Math.round(gap_ms / usual_ms) - 1, 0);
  }

  private readonly tick = (now_ms: number): void => {
    if (this.gaps_ms.length < FRAMES_MAX) this.gaps_ms.push(now_ms - this.last_ms);
    this.last_ms = now_ms;
    this.frame = requestAnimationFrame(this.tick);
  };
}
