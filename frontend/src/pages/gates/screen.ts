/** How large a pixel is, by a card held to the screen, and how far the eyes are, by the blind spot of the left one. */
import type { GateView } from "../../frame/page-context";
import { button, h } from "../../frame/dom";
import type { Value } from "../../server/model";
import { actions, sheet } from "./reading";

/** A card of the format ID-1 (ISO/IEC 7810), as bank cards and licences have it. */
const CARD_MM = [85.6, 53.98] as const;
const START_PX = 250;
const SMALLEST_PX = 100;
/** The blind spot's angle from where the eye looks (Li, Joo, Yeatman and Reinecke 2020, Scientific Reports 10:904). */
const BLIND_SPOT_DEG = 13.5;
/** As many as in that paper, which takes their mean. */
const TRIES = 5;
/** Gap from which the dot starts; no blind spot is nearer. */
const START_MM = 15;
/** Speed of the dot on the screen, the same on every display. */
const SPEED_MM_PER_S = 30;
/** The eye is nearer to a telephone and farther from a projector; outside, somebody pressed at a wrong moment. */
const DISTANCE_MM = [150, 3000] as const;

/** CSS pixels per millimetre of a screen on which the card's longer side has this many. */
export function cssPxPerMm(card_px: number): number {
  return card_px / CARD_MM[0];
}

/** Distance of the eyes from a screen on which the dot disappears so far from the square. */
export function distanceOf(gap_mm: number): number {
  return gap_mm / Math.tan((BLIND_SPOT_DEG * Math.PI) / 180);
}

/** The card, then the distance if the study asks for it. Nothing here is a reason to be sent away. */
export async function screenPage(view: GateView): Promise<Value> {
  const css_px_per_mm = await askCard(view);
  if (css_px_per_mm === null) return { px_per_mm: null, distance_mm: null, tries: [] };
  const isAsked = view.state.study.presentation.distance === "blind_spot";
  const { distance_mm, tries } = isAsked ? await askDistance(view, css_px_per_mm) : { distance_mm: null, tries: [] };
  // In the display's own pixels, so that it stays true if the page is zoomed later.
  const px_per_mm = css_px_per_mm * (window.devicePixelRatio || 1);
  return { px_per_mm: round(px_per_mm), distance_mm, tries };
}

const round = (value: number): number => Math.round(value * 1000) / 1000;

/** CSS pixels per millimetre; null: no card. */
function askCard(view: GateView): Promise<number | null> {
  const { words } = view.desk;
  // Upright where the window is: a card may be longer than a telephone is wide.
  const isUpright = window.innerHeight > window.innerWidth;
  const widest_px = Math.max(SMALLEST_PX, Math.floor(window.innerWidth * (isUpright ? 1.5 : 0.85)));
  const card = h("div", { class: isUpright ? "card upright" : "card", "aria-hidden": "true" });
  const slider = h("input", { type: "range", min: SMALLEST_PX, max: widest_px, step: 1, "aria-label": words.screen.slider });
  const complaint = h("p", { class: "complaint", role: "alert" });
  let isTouched = false;
  const draw = (px: number): void => {
    slider.value = String(px);
    card.style.setProperty("--card-px", `${slider.value}px`);
  };
  const change = (px: number): void => {
    isTouched = true;
    complaint.textContent = "";
    draw(px);
  };
  const stepBy = (px: number, text: string, sign: string): HTMLElement =>
    h("button", { type: "button", class: "step", "aria-label": text, click: () => change(Number(slider.value) + px) }, sign);
  slider.addEventListener("input", () => change(Number(slider.value)));
  draw(Math.min(START_PX, widest_px));
  const size = h("div", { class: "card-size" }, stepBy(-1, words.screen.smaller, "−"), slider, stepBy(1, words.screen.larger, "+"));
  return new Promise((resolve) => {
    const fits = (): void => {
      if (isTouched) return resolve(cssPxPerMm(Number(slider.value)));
      complaint.textContent = words.screen.untouched;
      slider.focus();
    };
    const yes = button(words.screen.fits, fits, "primary");
    const no = button(words.screen.no_card, () => resolve(null));
    view.desk.shell.show(sheet(view, size, h("div", { class: "card-place" }, card), complaint, actions(yes, no)));
  });
}

interface Distance {
  distance_mm: number | null;
  tries: number[];
}

/** The mean of five tries, until the person says that it fits; null: cannot be told. */
async function askDistance(view: GateView, px_per_mm: number): Promise<Distance> {
  const all: number[] = [];
  for (;;) {
    const tries = await findBlindSpot(view, px_per_mm);
    all.push(...(tries ?? []));
    const kept = all.slice(-MOST_KEPT).map((mm) => Math.round(mm));
    if (tries === null) return { distance_mm: null, tries: kept };
    const mean_mm = tries.reduce((sum, mm) => sum + mm, 0) / tries.length;
    const isLikely = mean_mm >= DISTANCE_MM[0] && mean_mm <= DISTANCE_MM[1];
    const does = await confirm(view, isLikely ? mean_mm : null);
    if (does !== "again") return { distance_mm: does === "fits" ? Math.round(mean_mm) : null, tries: kept };
  }
}

/** The server takes as many. */
const MOST_KEPT = 20;

function confirm(view: GateView, distance_mm: number | null): Promise<"fits" | "again" | "unknown"> {
  const { screen: words } = view.desk.words;
  const said = distance_mm === null ? words.unlikely : words.result(Math.round(distance_mm / 10));
  return new Promise((resolve) => {
    const yes = distance_mm === null ? null : button(words.yes, () => resolve("fits"), "primary");
    const again = button(words.again, () => resolve("again"), distance_mm === null ? "primary" : "plain");
    const cannot = button(words.cannot, () => resolve("unknown"));
    view.desk.shell.show(part(view, words.result_title, h("p", {}, said), actions(yes, again, cannot)));
  });
}

function part({ page }: GateView, title: string, ...content: (Node | null)[]): HTMLElement {
  return h("section", { class: "sheet", "data-page": page.kind }, h("h1", {}, title), ...content);
}

/** Distances by each try, in millimetres; null: the person cannot. */
function findBlindSpot(view: GateView, px_per_mm: number): Promise<number[] | null> {
  const { shell, words } = view.desk;
  const { screen: says } = words;
  const dot = h("div", { class: "spot-dot" });
  const track = h("div", { class: "spot-track", "aria-hidden": "true" }, h("div", { class: "spot-square" }), dot);
  const count = h("p", { class: "quiet", role: "status" }, says.tries(1, TRIES));
  const tries: number[] = [];
  let frame = 0;
  let started_ms: number | null = null;
  let gap_px = 0;
  const place = (mm: number): void => {
    gap_px = mm * px_per_mm;
    dot.style.right = `${gap_px}px`;
  };
  return new Promise((resolve) => {
    const end = (value: number[] | null): void => {
      cancelAnimationFrame(frame);
      document.removeEventListener("keydown", onKey, true);
      resolve(value);
    };
    const rest = (text: string): void => {
      cancelAnimationFrame(frame);
      started_ms = null;
      place(START_MM);
      track.classList.remove("moving");
      press.textContent = says.go;
      count.textContent = text;
    };
    const move = (now_ms: number): void => {
      started_ms ??= now_ms;
      place(START_MM + ((now_ms - started_ms) / 1000) * SPEED_MM_PER_S);
      if (gap_px > track.clientWidth - dot.clientWidth) return rest(says.missed);
      frame = requestAnimationFrame(move);
    };
    const act = (): void => {
      if (!track.classList.contains("moving")) {
        track.classList.add("moving");
        press.textContent = says.gone;
        frame = requestAnimationFrame(move);
        return;
      }
      tries.push(distanceOf(gap_px / px_per_mm));
      if (tries.length === TRIES) return end(tries);
      rest(says.tries(tries.length + 1, TRIES));
    };
    const onKey = (event: KeyboardEvent): void => {
      if (!track.isConnected) return document.removeEventListener("keydown", onKey, true);
      if (event.key !== " " || event.repeat || document.querySelector("dialog[open]")) return;
      if (event.target instanceof HTMLButtonElement && event.target !== press) return;
      event.preventDefault();
      act();
    };
    const press = button(says.go, act, "primary");
    const cannot = button(says.cannot, () => end(null));
    document.addEventListener("keydown", onKey, true);
    place(START_MM);
    shell.show(part(view, says.distance_title, h("p", {}, says.distance_text), track, count, actions(press, cannot)));
  });
}
