/** The clock of a trial against frames that are given by hand: their times are known, so every number is. */
import { Exposure } from "./exposure";

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
  expect(exposure.onset_ms).toBe(100);
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
