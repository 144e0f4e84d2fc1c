/** What stands in the place of a stimulus before and after it: a fixation mark, a mask, nothing. Nothing moves. */
import { h } from "../frame/dom";
import type { Presentation, Sight } from "./exposure";

/** Width and height of the drawn mask in its own pixels; it is stretched over the place. */
const MASK_PX = 256;
/** Sides of its squares: as much contrast at each scale, as photographs have it. */
const SCALES_PX = [2, 4, 8, 16, 32, 64];
/** Grey levels: a photograph's usual mean and spread. */
const MEAN = 128;
const SPREAD = 50;
/** Whatever holds a picture or words. */
const PLACES = ".picture, p:not(.side-name)";

/**
 * Prepares a stimulus for its course and returns what switches between the sights. All is made beforehand, so that a
 * frame that switches draws nothing new. The mask follows from `seed` alone: it tells nothing of what it covers.
 */
export function sights(stimulus: HTMLElement, { course, seed }: Presentation): (sight: Sight) => void {
  if (course.fixation_ms === 0 && course.exposure_ms === null) return () => undefined;
  stimulus.classList.add("staged");
  if (course.fixation_ms > 0) stimulus.append(fixationMark());
  if (course.mask_ms > 0) stimulus.querySelectorAll(PLACES).forEach((place) => place.append(maskOf(seed)));
  return (sight) => (stimulus.dataset["sight"] = sight);
}

/** Bull's eye and cross, by which the eyes keep still best of seven shapes (Thaler et al. 2013, Vision Research 76). */
function fixationMark(): HTMLElement {
  const mark = h("div", { class: "fixation", "aria-hidden": "true" });
  mark.innerHTML =
    '<svg viewBox="-3 -3 6 6"><circle r="3"/><path d="M-3 0H3M0-3V3" stroke-width="2"/><circle r="1"/></svg>';
  return mark;
}

function maskOf(seed: number): HTMLCanvasElement {
  const canvas = h("canvas", { class: "mask", width: MASK_PX, height: MASK_PX, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  if (context === null) return canvas;
  const image = context.createImageData(MASK_PX, MASK_PX);
  noise(MASK_PX, seed).forEach((grey, at) => image.data.set([grey, grey, grey, 255], 4 * at));
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Greys 0 to 255 of a square of that side, row by row: squares of random greys, summed over the scales. */
export function noise(side: number, seed: number): Uint8ClampedArray {
  const random = stream(seed);
  const sum = new Float64Array(side * side);
  for (const cell of SCALES_PX) {
    const across = Math.ceil(side / cell);
    const greys = Float64Array.from({ length: across * across }, () => 2 * random() - 1);
    sum.forEach((_, at) => {
      const [row, column] = [Math.floor(at / side), at % side];
      sum[at]! += greys[Math.floor(row / cell) * across + Math.floor(column / cell)]!;
    });
  }
  // Each scale adds the variance of a uniform number from -1 to 1.
  const spread = Math.sqrt(SCALES_PX.length / 3);
  return Uint8ClampedArray.from(sum, (value) => MEAN + (SPREAD * value) / spread);
}

/** Uniform numbers of [0, 1) that follow from a seed (mulberry32): the same in every browser. */
function stream(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
