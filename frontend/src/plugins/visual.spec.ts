import { media } from "../cast";
import { en } from "../words";
import { UNTIL_ANSWER } from "./exposure";
import { noise, sights } from "./visual";
import { stimulus } from "./stimulus";

const given = { display: "beside" as const, legend: null, words: en, picture: () => new Image() };
const COURSE = { fixation_ms: 500, exposure_ms: 100, mask_ms: 100 };

beforeEach(() => vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(null));

test("nothing is added to a stimulus that stays until the answer", () => {
  const shown = stimulus({ image: media("a") }, given);
  const before = shown.outerHTML;
  sights(shown, UNTIL_ANSWER)("stimulus");
  expect(shown.outerHTML).toBe(before);
});

test.each([
  ["a picture", { image: media("a") }, 1],
  ["a picture and its explanation", { image: media("a"), explanation: media("b") }, 2],
  ["a text", { text: { tokens: [{ text: "slow", shade: null }] } }, 1],
])("%s has one mark and a mask for each place, all there from the start", (_what, what, places) => {
  const shown = stimulus(what, given);
  const see = sights(shown, { course: COURSE, refresh_ms: null, seed: 1 });
  const before = shown.innerHTML;
  expect(shown.querySelectorAll(".fixation[aria-hidden]")).toHaveLength(1);
  expect(shown.querySelectorAll(".mask[aria-hidden]")).toHaveLength(places);
  for (const sight of ["fixation", "stimulus", "mask", "empty"] as const) {
    see(sight);
    expect([shown.dataset["sight"], shown.innerHTML]).toEqual([sight, before]);
  }
});

test("the mask follows from its seed alone, with the greys of a photograph", () => {
  const [first, again, other] = [noise(128, 7), noise(128, 7), noise(128, 8)];
  expect(first).toEqual(again);
  expect(first).not.toEqual(other);
  const mean = first.reduce((sum, grey) => sum + grey, 0) / first.length;
  const variance = first.reduce((sum, grey) => sum + (grey - mean) ** 2, 0) / first.length;
  // The coarsest squares are four, so that mean and spread of one mask vary.
  expect(Math.abs(mean - 128)).toBeLessThan(30);
  expect(Math.abs(Math.sqrt(variance) - 50)).toBeLessThan(20);
});
