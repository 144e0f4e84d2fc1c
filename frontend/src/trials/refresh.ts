/** The usual length of a display's frame, from the times at which its frames came. */

/** From so many frames on, the usual one is known. */
const FRAMES_MIN = 5;
/** What is taken where no frame could be counted: most displays have 60 Hz. */
export const USUAL_MS = 1000 / 60;

/** The median of gaps between frames, in milliseconds to two places; null if too few came to know it. */
export function refreshOf(gaps_ms: readonly number[]): number | null {
  if (gaps_ms.length < FRAMES_MIN) return null;
  const sorted = [...gaps_ms].sort((a, b) => a - b);
  return Math.round(sorted[Math.floor(sorted.length / 2)]! * 100) / 100;
}

/**
 * Counts the frames of a page that lies still: so many at least, and for so long, as a page that has just come is busy.
 * A hidden page has none: then nothing comes until it is seen.
 */
export function measureRefresh(frames = 20, time_ms = 500): Promise<number | null> {
  return new Promise((resolve) => {
    const gaps_ms: number[] = [];
    let first_ms: number | null = null;
    let last_ms: number | null = null;
    const tick = (now_ms: number): void => {
      if (last_ms !== null) gaps_ms.push(now_ms - last_ms);
      first_ms ??= now_ms;
      last_ms = now_ms;
      if (gaps_ms.length < frames || now_ms - first_ms < time_ms) requestAnimationFrame(tick);
      else resolve(refreshOf(gaps_ms));
    };
    requestAnimationFrame(tick);
  });
}

/** A time as whole frames of the display, at least one; 0 for no time at all. */
export function framesOf(time_ms: number, refresh_ms: number): number {
  return time_ms === 0 ? 0 : Math.max(1, Math.round(time_ms / refresh_ms));
}
