/** When a stimulus was first on the screen, for how long and in how many frames; fixation and mask around it. */
import { framesOf, refreshOf, USUAL_MS } from "../trials/refresh";

/** A longer gap is no loss of frames: a hidden tab gets none at all. */
const HIDDEN_MS = 1000;
/** A frame that takes this many times the usual one was seen late, whatever the display's rate. */
const LATE = 1.5;
/** A trial of half an hour keeps no more gaps than these. */
const FRAMES_MAX = 10_000;

export type Sight = "fixation" | "stimulus" | "mask" | "empty";

/** What a trial shows one after the other, in milliseconds. `exposure_ms` null: the stimulus stays. */
export interface Course {
  fixation_ms: number;
  exposure_ms: number | null;
  mask_ms: number;
}

/** How the stimulus of a trial comes and goes. */
export interface Presentation {
  course: Course;
  /** Length of a frame of the display, as measured before the trials; null: not known. */
  refresh_ms: number | null;
  /** The mask follows from it. */
  seed: number;
}

/** The stimulus at once, until the answer. */
export const UNTIL_ANSWER: Presentation = {
  course: { fixation_ms: 0, exposure_ms: null, mask_ms: 0 },
  refresh_ms: null,
  seed: 0,
};

/**
 * Steps through a course by counting the display's frames. What is changed in a frame's callback is painted at the
 * end of that frame and shown with the next one: a stimulus that comes in frame i and goes in frame i + n is seen
 * from the start of frame i + 1 to that of frame i + n + 1, which is n frames.
 */
export class Exposure {
  /** Start of the first frame that can show the stimulus, on the page's clock; null before. */
  onset_ms: number | null = null;
  /** Frames that came while the stimulus was on the screen. */
  frames = 0;
  /** How often the page was hidden between onset and offset. */
  hidden_count = 0;
  private offset_ms: number | null = null;
  private sight: Sight = "stimulus";
  /** Frames since the one that paints what is seen; null before that one. */
  private since_painted: number | null = null;
  private inserted_ms = 0;
  /** A frame that began before the change has been waited for. */
  private has_waited = false;
  private last_ms: number | null = null;
  private readonly gaps_ms: number[] = [];
  /** Which of the gaps lie between the painting of the stimulus and its offset: from, up to. */
  private up_from = 0;
  private up_to: number | null = null;
  private frame = 0;
  private show: (sight: Sight) => void = () => undefined;
  private onOnset: () => void = () => undefined;

  private readonly course: Course;
  private readonly known_ms: number | null;

  constructor({ course, refresh_ms }: Presentation = UNTIL_ANSWER) {
    [this.course, this.known_ms] = [course, refresh_ms];
  }

  /** Call it where the page is changed: `show` is called at once for the first sight, and in a frame for the others. */
  start(onOnset: () => void, show: (sight: Sight) => void = () => undefined): void {
    [this.onOnset, this.show] = [onOnset, show];
    this.enter(this.course.fixation_ms > 0 ? "fixation" : "stimulus");
    this.since_painted = null;
    document.addEventListener("visibilitychange", this.onHidden);
    this.frame = requestAnimationFrame(this.tick);
  }

  /** Milliseconds from onset to an event; events carry the moment of the press, not of its handling. */
  since(event: Event): number {
    const now_ms = performance.now();
    const onset_ms = this.onset_ms ?? now_ms;
    const at_ms = event.timeStamp >= onset_ms && event.timeStamp <= now_ms ? event.timeStamp : now_ms;
    return Math.max(0, Math.round(at_ms - onset_ms));
  }

  /** Ends the course and returns for how long the stimulus was seen. */
  stop(): number {
    cancelAnimationFrame(this.frame);
    document.removeEventListener("visibilitychange", this.onHidden);
    const end_ms = this.offset_ms ?? performance.now();
    return Math.max(0, Math.round(end_ms - (this.onset_ms ?? end_ms)));
  }

  /** The usual length of a frame, in milliseconds to two places; null if too few came to know it. */
  get refresh_ms(): number | null {
    return refreshOf(this.gaps_ms) ?? this.known_ms;
  }

  /** Frames that were due while the stimulus was up and did not come, by the display's own rate. */
  get dropped_frames(): number {
    const usual_ms = this.refresh_ms;
    if (usual_ms === null || usual_ms === 0) return 0;
    const up_ms = this.gaps_ms.slice(this.up_from, this.up_to ?? undefined);
    const late = up_ms.filter((gap_ms) => gap_ms > LATE * usual_ms && gap_ms < HIDDEN_MS);
    return late.reduce((sum, gap_ms) => sum + Math.round(gap_ms / usual_ms) - 1, 0);
  }

  private readonly tick = (now_ms: number): void => {
    if (this.last_ms !== null && this.gaps_ms.length < FRAMES_MAX) this.gaps_ms.push(now_ms - this.last_ms);
    this.last_ms = now_ms;
    // A frame that began before the change, as after a long pause, is not yet one in which it can be seen. Only one is
    // waited for: a browser whose frames have another clock than the page must not wait for ever.
    const isEarly = now_ms < this.inserted_ms && !this.has_waited;
    if (this.since_painted === null) this.since_painted = 0;
    else if (isEarly) this.has_waited = true;
    else this.since_painted += 1;
    if (this.sight === "stimulus" && this.since_painted > 0) this.seen(now_ms);
    else if (this.onset_ms !== null && this.offset_ms === null && this.since_painted > 0) this.gone(now_ms);
    if (this.since_painted >= this.frames_due) this.enter(this.next);
    this.frame = requestAnimationFrame(this.tick);
  };

  /** How many frames the present sight lasts. */
  private get frames_due(): number {
    const { fixation_ms, exposure_ms, mask_ms } = this.course;
    const lasts = { fixation: fixation_ms, stimulus: exposure_ms ?? Infinity, mask: mask_ms, empty: Infinity };
    return framesOf(lasts[this.sight], this.known_ms ?? USUAL_MS);
  }

  private get next(): Sight {
    if (this.sight === "fixation") return "stimulus";
    return this.sight === "stimulus" && this.course.mask_ms > 0 ? "mask" : "empty";
  }

  private enter(sight: Sight): void {
    this.sight = sight;
    this.since_painted = 0;
    this.has_waited = false;
    this.show(sight);
    this.inserted_ms = performance.now();
  }

  private seen(now_ms: number): void {
    this.frames += 1;
    if (this.onset_ms !== null) return;
    this.onset_ms = Math.max(now_ms, this.inserted_ms);
    // The gap before counts: if frames were dropped in it, the stimulus may have come earlier than the stamp.
    this.up_from = Math.max(0, this.gaps_ms.length - 1);
    this.onOnset();
  }

  private gone(now_ms: number): void {
    this.offset_ms = now_ms;
    this.up_to = this.gaps_ms.length;
  }

  private readonly onHidden = (): void => {
    const isUp = this.onset_ms !== null && this.offset_ms === null;
    if (document.hidden && isUp) this.hidden_count += 1;
  };
}
