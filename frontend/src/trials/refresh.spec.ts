// @vitest-environment node
import { framesOf, measureRefresh, refreshOf } from "./refresh";

test.each([
  [100, 60, 6],
  [100, 30, 3],
  [100, 144, 14],
  [1, 60, 1],
  [0, 60, 0],
  [Infinity, 60, Infinity],
])("%d ms at %i Hz are %d frames", (time_ms, rate, frames) => {
  expect(framesOf(time_ms, 1000 / rate)).toBe(frames);
});

test("a few frames that were lost change nothing, and too few tell nothing", () => {
  expect(refreshOf([16.7, 16.6, 33.4, 16.7, 16.7, 83.3, 16.7])).toBe(16.7);
  expect(refreshOf([16.7, 16.7, 16.7, 16.7])).toBeNull();
});

test.each([30, 60, 144])("it measures %i Hz for half a second and twenty frames", async (rate) => {
  let at_ms = 1000;
  let asked = 0;
  vi.stubGlobal("requestAnimationFrame", (act: FrameRequestCallback) => {
    asked += 1;
    queueMicrotask(() => act((at_ms += 1000 / rate)));
    return asked;
  });
  expect(await measureRefresh()).toBeCloseTo(1000 / rate, 2);
  const gaps = asked - 1;
  expect(gaps).toBeGreaterThanOrEqual(20);
  expect(gaps / rate).toBeGreaterThanOrEqual(0.4999);
  // No longer than it must.
  expect(gaps === 20 || (gaps - 1) / rate < 0.5001).toBe(true);
  vi.unstubAllGlobals();
});
