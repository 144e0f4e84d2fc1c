/** One question on a scale of points: a radio group, with words at its ends and what it compares above it. */
import { h } from "../../frame/dom";
import type { Words } from "../../words";

export const POINTS = [1, 2, 3, 4, 5] as const;

export interface Asked {
  id: string;
  text: string;
  /** Words at the lower and at the upper end. */
  low: string;
  high: string;
}

/** What a question has beside its words. */
interface Beside {
  words: Words;
  /** Its number, if there are several. */
  number: number | null;
  /** What it compares, if it does. */
  compared?: HTMLElement | null;
  /** Milliseconds until an event. */
  since: (event: Event) => number;
  /** Called for each answer, also for the same again. */
  onAnswer: () => void;
}

export class Scale {
  readonly element: HTMLFieldSetElement;
  /** The answer; null before. */
  value: number | null = null;
  /** When the answer as it is now was given. */
  ms = 0;
  /** How often another point was taken after the first. */
  changes = 0;
  private readonly radios: HTMLInputElement[];

  constructor(
    readonly asked: Asked,
    private readonly beside: Beside,
  ) {
    const { number, compared = null } = beside;
    this.radios = POINTS.map((point) =>
      h("input", {
        type: "radio",
        name: `scale-${asked.id}`,
        value: point,
        change: (event) => this.take(point, event),
      }),
    );
    const numbered = number === null ? null : h("span", { class: "scale-number" }, `${number}.`);
    this.element = h(
      "fieldset",
      { class: compared ? "scale compares" : "scale", role: "radiogroup", "aria-required": "true", "data-question": asked.id },
      h("legend", {}, numbered, numbered && " ", asked.text),
      compared,
      h("div", { class: "points" }, ...POINTS.map((point, index) => this.point(point, this.radios[index]!))),
      h("p", { class: "ends", "aria-hidden": "true" }, h("span", {}, asked.low), h("span", {}, asked.high)),
    );
  }

  /** Answers as if the point was chosen with the pointer. */
  choose(point: number, event: Event): void {
    const radio = this.radios[POINTS.findIndex((each) => each === point)];
    if (radio === undefined || radio.disabled) return;
    radio.checked = true;
    this.take(point, event);
  }

  /** To the answer, or to the first point if there is none. */
  focus(): void {
    (this.radios.find((radio) => radio.checked) ?? this.radios[0])?.focus({ preventScroll: true });
    // Of a question that is higher than the window, the scale and what it compares are shown, not its words.
    const block = this.element.offsetHeight > window.innerHeight ? "end" : "nearest";
    // Not in every environment of the specs; every browser has it.
    this.element.scrollIntoView?.({ block });
  }

  /** The answer stands. */
  close(): void {
    for (const radio of this.radios) radio.disabled = true;
  }

  private take(point: number, event: Event): void {
    if (point !== this.value) {
      if (this.value !== null) this.changes += 1;
      this.value = point;
      this.ms = this.beside.since(event);
    }
    this.beside.onAnswer();
  }

  private point(point: number, radio: HTMLInputElement): HTMLElement {
    const { low, high } = this.asked;
    const meaning = point === POINTS[0] ? low : point === POINTS.at(-1) ? high : "";
    const name = meaning === "" ? String(point) : this.beside.words.rating.end(point, meaning);
    return h(
      "label",
      { class: "point" },
      radio,
      h("span", { "aria-hidden": "true" }, String(point)),
      h("span", { class: "sr-only" }, name),
    );
  }
}

/** The point that a key stands for; null for other keys. */
export function pointOf(event: KeyboardEvent): number | null {
  return POINTS.find((point) => event.key === String(point)) ?? null;
}
