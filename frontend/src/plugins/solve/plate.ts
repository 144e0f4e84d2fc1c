/** The picture with its cells: marked by mouse, finger and pen, or by a frame that the arrow keys move. */
import { h } from "../../frame/dom";
import type { Media } from "../../server/model";
import type { Words } from "../../words";
import { areaPath, cellsAlong, cellsUnder, edgePath, middleOf, type Place } from "./brush";
import type { Region } from "./region";

const SVG = "http://www.w3.org/2000/svg";
/** The end of a pen that erases, as `PointerEvent.button` names it. */
const ERASER_TIP = 5;
/** Rows and columns that an arrow key moves the frame. */
const ARROWS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

export type Device = "mouse" | "touch" | "pen" | "keyboard";

export interface Brush {
  /** Diameter in cells. */
  size: number;
  isMarking: boolean;
}

export interface PlateSpec {
  image: HTMLImageElement;
  media: Media;
  grid: number;
  words: Words;
  region: Region;
  /** What is taken up now. */
  brush: () => Brush;
  /** Asked before each stroke; false: nothing may be marked. */
  mayMark: () => boolean;
  /** A stroke has changed its first cells; with the event that began it. */
  onStroke: (event: Event, device: Device) => void;
  /** It has changed more. */
  onChange: () => void;
  /** It is over. */
  onEnd: () => void;
  /** It was called off, and none of it is left. */
  onCalledOff: () => void;
  /** The frame was moved, or marked where it stands. */
  onFrame: (cell: number) => void;
}

export class Plate {
  readonly element: HTMLElement;
  private readonly area = document.createElementNS(SVG, "path");
  private readonly edges = [document.createElementNS(SVG, "path"), document.createElementNS(SVG, "path")];
  private readonly frames = [document.createElementNS(SVG, "path"), document.createElementNS(SVG, "path")];
  private readonly cells = document.createElementNS(SVG, "svg");
  /** The cell under the frame. */
  private frame: number;
  /** The pointer that marks, where it was last, and whether its tip erases; null between strokes. */
  private pointer: { id: number; at: Place; isMarking: boolean } | null = null;
  /** What began the stroke that is being made, until it has changed something. */
  private first: PointerEvent | KeyboardEvent | null = null;
  /** An arrow key with Shift goes on with a stroke. */
  private isAlong = false;

  constructor(private readonly spec: PlateSpec) {
    const { grid, image, media, words } = spec;
    this.frame = Math.floor(grid / 2) * grid + Math.floor(grid / 2);
    this.area.setAttribute("class", "marked-area");
    for (const [index, tone] of ["light", "dark"].entries()) {
      this.edges[index]!.setAttribute("class", `marked-edge ${tone}`);
      this.frames[index]!.setAttribute("class", `frame ${tone}`);
    }
    this.cells.setAttribute("viewBox", `0 0 ${grid} ${grid}`);
    this.cells.setAttribute("preserveAspectRatio", "none");
    this.cells.setAttribute("aria-hidden", "true");
    this.cells.setAttribute("class", "cells");
    // The cells lie over the picture itself, which may be no square.
    this.cells.style.setProperty("inline-size", `${100 * Math.min(1, media.width_px / media.height_px)}%`);
    this.cells.style.setProperty("block-size", `${100 * Math.min(1, media.height_px / media.width_px)}%`);
    this.cells.append(this.area, ...this.edges, ...this.frames);
    this.element = h(
      "div",
      {
        class: "picture plate",
        tabindex: 0,
        role: "application",
        // Until the picture is seen.
        "aria-disabled": "true",
        "aria-label": words.solve.plate,
        "aria-describedby": "solve-hint",
        pointerdown: (event) => this.down(event as PointerEvent),
        pointermove: (event) => this.move(event as PointerEvent),
        pointerup: (event) => this.up(event as PointerEvent),
        pointercancel: (event) => this.cancel(event as PointerEvent),
        pointerleave: () => this.element.classList.remove("hovered"),
        // A pointer leaves the focus where it is: the keys of the answers go on acting as before.
        mousedown: (event) => event.preventDefault(),
        keydown: (event) => this.key(event as KeyboardEvent),
        keyup: (event) => this.keyUp(event as KeyboardEvent),
        blur: () => this.settle(),
      },
      image,
    );
    this.element.append(this.cells);
    this.draw();
  }

  /** Draws the marks as they are, or none of them. */
  draw(isShown = true): void {
    const { region, grid } = this.spec;
    const cells = isShown ? region.cells : [];
    this.area.setAttribute("d", areaPath(cells, grid));
    for (const edge of this.edges) edge.setAttribute("d", edgePath(cells, grid));
    this.drawFrame(middleOf(this.frame, grid));
  }

  /** Ends the stroke that arrow keys with Shift held make: all their steps are one. */
  settle(): void {
    if (this.isAlong) this.end();
    this.isAlong = false;
  }

  /** Whether a pointer is down. */
  get isMarking(): boolean {
    return this.pointer !== null;
  }

  /** Draws the frame around what the brush would cover. */
  private drawFrame(at: Place): void {
    const { grid, brush } = this.spec;
    const path = edgePath(cellsUnder(at, brush().size, grid), grid);
    for (const frame of this.frames) frame.setAttribute("d", path);
  }

  private placeOf(event: PointerEvent): Place {
    const box = this.cells.getBoundingClientRect();
    const { grid } = this.spec;
    return { x: ((event.clientX - box.left) / box.width) * grid, y: ((event.clientY - box.top) / box.height) * grid };
  }

  private down(event: PointerEvent): void {
    // A second finger, or another button than the first.
    if (this.pointer !== null || (event.button !== 0 && event.button !== ERASER_TIP)) return;
    if (!this.spec.mayMark()) return;
    this.settle();
    const at = this.placeOf(event);
    const isMarking = this.spec.brush().isMarking && event.button !== ERASER_TIP;
    this.pointer = { id: event.pointerId, at, isMarking };
    // Not in every environment of the specs; every browser has it.
    this.element.setPointerCapture?.(event.pointerId);
    this.begin(event);
    this.cover(at);
  }

  private begin(event: PointerEvent | KeyboardEvent): void {
    this.first = event;
    this.spec.region.begin();
  }

  private paint(cells: number[], isMarking: boolean): void {
    const { first, spec } = this;
    if (!spec.region.paint(cells, isMarking)) return;
    this.first = null;
    if (first === null) spec.onChange();
    else spec.onStroke(first, deviceOf(first));
  }

  private move(event: PointerEvent): void {
    const at = this.placeOf(event);
    this.element.classList.toggle("hovered", event.pointerType !== "touch");
    if (this.pointer?.id === event.pointerId) {
      // What the pointer did between two frames of the display.
      const steps = event.getCoalescedEvents?.() ?? [];
      for (const step of steps.length > 0 ? steps : [event]) this.cover(this.placeOf(step));
    }
    this.drawFrame(at);
  }

  private end(): void {
    if (this.spec.region.end()) this.spec.onEnd();
  }

  private cover(to: Place): void {
    const { pointer, spec } = this;
    if (pointer === null) return;
    const cells = cellsAlong(pointer.at, to, spec.brush().size, spec.grid);
    pointer.at = to;
    this.frame = this.nearest(to);
    this.paint(cells, pointer.isMarking);
  }

  private up(event: PointerEvent): void {
    if (this.pointer?.id !== event.pointerId) return;
    this.pointer = null;
    this.end();
  }

  /** The browser took the pointer, for two fingers that enlarge the page: that was no stroke. */
  private cancel(event: PointerEvent): void {
    if (this.pointer?.id !== event.pointerId) return;
    this.pointer = null;
    this.spec.region.cancel();
    if (this.first === null) this.spec.onCalledOff();
  }

  private nearest({ x, y }: Place): number {
    const { grid } = this.spec;
    const within = (place: number): number => Math.min(grid - 1, Math.max(0, Math.floor(place)));
    return within(y) * grid + within(x);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const arrow = ARROWS[event.key];
    if (arrow === undefined && event.key !== " ") return;
    event.preventDefault();
    if (arrow === undefined) {
      if (!event.repeat) this.dab(event);
      return;
    }
    const { grid, mayMark, onFrame } = this.spec;
    const from = middleOf(this.frame, grid);
    this.frame = this.nearest({ x: from.x + arrow[1], y: from.y + arrow[0] });
    if (!event.shiftKey) this.settle();
    else if (mayMark()) {
      if (!this.isAlong) this.begin(event);
      this.isAlong = true;
      this.paintTo(from);
    }
    this.drawFrame(middleOf(this.frame, grid));
    onFrame(this.frame);
  }

  /** One stroke where the frame stands. */
  private dab(event: KeyboardEvent): void {
    const { spec } = this;
    this.settle();
    if (!spec.mayMark()) return;
    this.begin(event);
    this.paintTo(middleOf(this.frame, spec.grid));
    this.end();
    spec.onFrame(this.frame);
  }

  private paintTo(from: Place): void {
    const { brush, grid } = this.spec;
    const { size, isMarking } = brush();
    this.paint(cellsAlong(from, middleOf(this.frame, grid), size, grid), isMarking);
  }

  private keyUp(event: KeyboardEvent): void {
    if (event.key === "Shift") this.settle();
  }
}

function deviceOf(event: PointerEvent | KeyboardEvent): Device {
  if (event instanceof KeyboardEvent) return "keyboard";
  return event.pointerType === "touch" || event.pointerType === "pen" ? event.pointerType : "mouse";
}
