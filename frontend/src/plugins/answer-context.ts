/** What is noted beside an answer: how it was given, and how large and how well the stimulus was shown. */
import type { Context } from "../server/model";
import type { Exposure } from "./exposure";

/** Onset, device, key and size, at the moment of the event that answers. `page` holds the stimulus. */
export function pressContext(event: Event, exposure: Exposure, page: HTMLElement): Context {
  const image = page.querySelector("img");
  const context: Context = {
    onset_ms: Math.round(10 * (exposure.onset_ms ?? 0)) / 10,
    input: inputOf(event),
    pixel_ratio: window.devicePixelRatio,
  };
  if (event instanceof KeyboardEvent) context.key = event.key === " " ? "Space" : event.key;
  if (image) context.image_px = Math.round(image.getBoundingClientRect().width);
  return context;
}

/** The frames of an exposure that is over. */
export function countsOf({ frames, hidden_count, dropped_frames, refresh_ms }: Exposure): Context {
  const counted = { frames, hidden_count, dropped_frames };
  return refresh_ms === null ? counted : { ...counted, refresh_ms };
}

function inputOf(event: Event): "keyboard" | "mouse" | "touch" {
  if (event instanceof KeyboardEvent) return "keyboard";
  // Enter on a focused button arrives as a click without a pointer (detail 0).
  if (event instanceof MouseEvent && event.detail === 0 && !isTouch(event)) return "keyboard";
  return isTouch(event) ? "touch" : "mouse";
}

function isTouch(event: Event): boolean {
  return "pointerType" in event && (event.pointerType === "touch" || event.pointerType === "pen");
}
