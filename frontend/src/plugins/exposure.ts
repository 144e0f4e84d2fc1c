/** When a stimulus was first on the screen, for how long, and how many frames were late meanwhile. */

const FRAME_MS = 1000 / 60;
/** A frame later than this was seen late by the person too, whatever the display's rate. */
const LATE_MS = 1.5 * FRAME_MS;

export class Exposure {
  /** Time of the animation frame that first paints the stimulus, on the page's clock; null before. */
  onset_ms: number | null = null;
  dropped_frames = 0;
  private frame = 0;
  private last_ms = 0;

  start(onOnset: () => void): void {
    this.frame = requestAnimationFrame((now_ms) => {
      this.onset_ms = now_ms;
      this.last_ms = now_ms;
      this.frame = requestAnimationFrame(this.tick);
      onOnset();
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

  private readonly tick = (now_ms: number): void => {
    const gap_ms = now_ms - this.last_ms;
    // A hidden tab gets no frames at all; that is a loss of focus, not of frames.
    if (gap_ms > LATE_MS && gap_ms < 1000) this.dropped_frames += Math.round(gap_ms / FRAME_MS) - 1;
    this.last_ms = now_ms;
    this.frame = requestAnimationFrame(this.tick);
  };
}
