/** The clock of a trial against frames that are given by hand: their times are known, so every number is. */
import { Exposure, type Course, type Sight } from "./exposure";

let waiting: Map<number, FrameRequestCallback>;
let now_ms: number;

beforeEach(() => {
  waiting = new Map();
  now_ms = 0;
  let next = 0;
  vi.stubGlobal("requestAnimationFrame", (act: FrameRequestCallback) => (waiting.set(++next, act), next));
  vi.stubGlobal("cancelAnimationFrame", (id: number) => waiting.delete(id));
  vi.spyOn(performance, "now").mockImplementation(() => now_ms);
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** A frame that starts at that time; its callbacks run a little later. */
function frame(start_ms: number, late_ms = 1): void {
  now_ms = start_ms + late_ms;
  const due = [...waiting.values()];
  waiting.clear();
  for (const act of due) act(start_ms);
}

function shown(frames: number[]): Exposure {
  const exposure = new Exposure();
  exposure.start(() => undefined);
  frames.forEach((start_ms) => frame(start_ms));
  return exposure;
}

test("the onset is the frame after the one that painted the stimulus", () => {
  now_ms = 100;
  const exposure = new Exposure();
  let told = 0;
  exposure.start(() => (told = now_ms));
  // The frame under way began before the stimulus was put into the page.
  frame(99.5);
  expect(exposure.onset_ms).toBeNull();
  frame(116.2);
  expect([exposure.onset_ms, told]).toEqual([116.2, 117.2]);
});

test("the onset is never before the stimulus was put into the page", () => {
  now_ms = 100;
  const exposure = new Exposure();
  exposure.start(() => undefined);
  frame(90);
  frame(99);
  expect(exposure.onset_ms).toBeNull();
  frame(116);
  expect([exposure.onset_ms, exposure.frames]).toEqual([116, 1]);
});

test.each([30, 60, 144])("at %i Hz it knows the frame's length and counts what was lost", (rate) => {
  const frame_ms = 1000 / rate;
  // Frames 0 to 40, of which 10, 20 and 21 did not come.
  const came = Array.from({ length: 41 }, (_, i) => i).filter((i) => ![10, 20, 21].includes(i));
  const exposure = shown(came.map((i) => i * frame_ms));
  expect(exposure.refresh_ms).toBeCloseTo(frame_ms, 2);
  expect(exposure.dropped_frames).toBe(3);
});

test("a hidden tab loses no frames, and too few frames tell no rate", () => {
  const away = shown([0, 17, 33, 50, 67, 83, 100, 5000, 5017, 5033]);
  expect(away.dropped_frames).toBe(0);
  expect(shown([0, 17, 33]).refresh_ms).toBeNull();
});

test("its length runs from the onset to its end", () => {
  const exposure = shown([0, 17]);
  now_ms = 1017;
  expect(exposure.stop()).toBe(1000);
  expect(waiting.size).toBe(0);
});

/** Runs a course on a display of that rate; `lost` are frames, counted from 0, that do not come. */
function run(rate: number, course: Course, frames: number, lost: number[] = []) {
  const frame_ms = 1000 / rate;
  const exposure = new Exposure({ course, refresh_ms: frame_ms, seed: 0 });
  const seen: [Sight, number][] = [];
  const at = (): number => Math.round(now_ms / frame_ms);
  now_ms = 0;
  exposure.start(() => undefined, (sight) => seen.push([sight, at()]));
  for (let i = 1; i <= frames; i++) if (!lost.includes(i)) frame(i * frame_ms, 0);
  return { exposure, seen, frame_ms };
}

// A course in frames by hand: 500 ms, 100 ms and 200 ms at each rate.
test.each([
  [30, 15, 3, 6],
  [60, 30, 6, 12],
  [144, 72, 14, 29],
])("at %i Hz mark, stimulus and mask last %i, %i and %i frames", (rate, mark, stimulus, mask) => {
  const course = { fixation_ms: 500, exposure_ms: 100, mask_ms: 200 };
  const { exposure, seen, frame_ms } = run(rate, course, 200);
  // What is put there before frame 1 is painted by it; each change is made in a frame and painted by the same one.
  expect(seen).toEqual([
    ["fixation", 0],
    ["stimulus", 1 + mark],
    ["mask", 1 + mark + stimulus],
    ["empty", 1 + mark + stimulus + mask],
  ]);
  expect(exposure.onset_ms).toBeCloseTo((2 + mark) * frame_ms, 6);
  expect(exposure.frames).toBe(stimulus);
  expect(exposure.dropped_frames).toBe(0);
  expect(exposure.stop()).toBe(Math.round(stimulus * frame_ms));
});

test("without a mask its place is empty at once, and an exposure shorter than a frame is one frame", () => {
  const { exposure, seen } = run(60, { fixation_ms: 0, exposure_ms: 10, mask_ms: 0 }, 5);
  expect(seen).toEqual([
    ["stimulus", 0],
    ["empty", 2],
  ]);
  expect(exposure.frames).toBe(1);
});

test("it counts frames and no time: a lost one makes the exposure longer, and is told", () => {
  const { exposure, frame_ms } = run(60, { fixation_ms: 0, exposure_ms: 100, mask_ms: 0 }, 30, [4]);
  // Painted by frame 1, seen in 2, 3, 5, 6, 7 and 8.
  expect(exposure.frames).toBe(6);
  expect(exposure.dropped_frames).toBe(1);
  expect(exposure.stop()).toBe(Math.round(7 * frame_ms));
});

test.each([
  ["before the stimulus", [3], 0],
  ["between its painting and its onset", [12], 1],
  ["after it is gone", [25], 0],
])("a frame that is lost %s counts as %j: %i", (_when, lost, count) => {
  // The mark is painted by frame 1 and lasts 10 frames; frame 11 paints the stimulus, which lasts 6.
  const { exposure } = run(60, { fixation_ms: 1000 / 6, exposure_ms: 100, mask_ms: 0 }, 40, lost as number[]);
  expect(exposure.dropped_frames).toBe(count);
});

test("it counts how often the page was hidden while the stimulus was up, and not afterwards", () => {
  const hidden = vi.spyOn(document, "hidden", "get").mockReturnValue(true);
  const hide = (): boolean => document.dispatchEvent(new Event("visibilitychange"));
  const exposure = new Exposure();
  exposure.start(() => undefined);
  hide();
  frame(16);
  frame(33);
  hide();
  expect(exposure.hidden_count).toBe(1);
  exposure.stop();
  hide();
  expect(exposure.hidden_count).toBe(1);
  hidden.mockRestore();
});

test("without a measured display it takes 60 Hz, and tells the length that came", () => {
  const exposure = new Exposure({ course: { fixation_ms: 0, exposure_ms: 100, mask_ms: 0 }, refresh_ms: null, seed: 0 });
  exposure.start(() => undefined);
  for (let i = 1; i <= 20; i++) frame(i * 10);
  expect([exposure.frames, exposure.refresh_ms]).toEqual([6, 10]);
});
