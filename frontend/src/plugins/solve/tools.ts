/** Brush and eraser in three sizes; taking back, making again, clearing. */
import { h } from "../../frame/dom";
import type { Words } from "../../words";
import type { Brush } from "./plate";

/** Keys of brush and eraser, and those that change the size; an answer of the study goes first. */
const KEYS = { brush: "b", eraser: "e" } as const;
const LARGER = ["+", "="];
const SMALLER = ["-", "_"];

const ICONS = {
  brush: '<path d="M5 19c0-3 1-4 3-4s3 1 3 2c0 3-3 3-6 2zM11 13 19 4l1 1-8 10"/>',
  eraser: '<path d="m4 15 9-10 7 6-8 9H8zM9 10l7 6M12 20h8"/>',
  undo: '<path d="M9 6 4 11l5 5M4 11h10a5 5 0 0 1 0 10h-3"/>',
  redo: '<path d="m15 6 5 5-5 5M20 11H10a5 5 0 0 0 0 10h3"/>',
  clear: '<path d="M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10 11v5M14 11v5"/>',
} as const;
/** Radii of the dots that stand for the sizes, of a picture of 24. */
const DOTS = [2.5, 5, 8.5] as const;

/** One person marks on this page: the size that was chosen last, of the three, serves the next task as well. */
export const hand = { size: 1 };

interface Acts {
  undo: () => void;
  redo: () => void;
  clear: () => void;
  /** Another tool or size was taken up; its name. */
  taken: (name: string) => void;
}

interface Can {
  undo: boolean;
  redo: boolean;
  clear: boolean;
  /** Marks are set aside: nothing acts on them. */
  rests: boolean;
}

type Act = "undo" | "redo" | "clear";

export class Tools {
  readonly element: HTMLElement;
  private isMarking = true;
  private readonly kinds: Record<"brush" | "eraser", HTMLButtonElement>;
  private readonly sizes: HTMLButtonElement[];
  private readonly acts: Record<Act, HTMLButtonElement>;

  /** `diameters`: of the brushes, in cells. */
  constructor(
    private readonly diameters: readonly [number, number, number],
    private readonly words: Words,
    private readonly does: Acts,
  ) {
    const { solve } = words;
    this.kinds = {
      brush: tool(solve.brush, ICONS.brush, () => this.take("brush")),
      eraser: tool(solve.eraser, ICONS.eraser, () => this.take("eraser")),
    };
    this.sizes = DOTS.map((radius, index) =>
      tool(solve.sizes[index]!, `<circle cx="12" cy="12" r="${radius}" class="dot"/>`, () => this.resize(index)),
    );
    this.acts = {
      undo: tool(solve.undo, ICONS.undo, () => this.act("undo")),
      redo: tool(solve.redo, ICONS.redo, () => this.act("redo")),
      clear: tool(solve.clear, ICONS.clear, () => this.act("clear")),
    };
    // Written beside what is drawn, where there is room for it.
    for (const made of [...Object.values(this.kinds), ...Object.values(this.acts)])
      made.append(h("span", { "aria-hidden": "true" }, made.title));
    this.kinds.brush.setAttribute("aria-keyshortcuts", KEYS.brush);
    this.kinds.eraser.setAttribute("aria-keyshortcuts", KEYS.eraser);
    this.acts.undo.setAttribute("aria-keyshortcuts", "Control+Z");
    this.acts.redo.setAttribute("aria-keyshortcuts", "Control+Y");
    const set = (name: string, ...buttons: HTMLElement[]): HTMLElement =>
      h("div", { class: "tool-set", role: "group", "aria-label": name }, ...buttons);
    this.element = h(
      "div",
      // A pointer leaves the focus where it is: Enter goes on sending.
      { class: "marking-tools", mousedown: (event) => event.preventDefault() },
      set(solve.tools, this.kinds.brush, this.kinds.eraser),
      set(solve.size, ...this.sizes),
      set(solve.steps, this.acts.undo, this.acts.redo, this.acts.clear),
    );
    this.show();
  }

  get brush(): Brush {
    return { size: this.diameters[hand.size]!, isMarking: this.isMarking };
  }

  /** Whether the letters of brush and eraser are no answers' keys. */
  hasKeys(answers: readonly string[]): boolean {
    return !Object.values(KEYS).some((key) => answers.includes(key));
  }

  /** Acts on a key of the tools, unless an answer has it; says whether it was one. */
  press(key: string, answers: readonly string[]): boolean {
    if (this.hasKeys(answers) && key === KEYS.brush) this.take("brush");
    else if (this.hasKeys(answers) && key === KEYS.eraser) this.take("eraser");
    else if (LARGER.includes(key)) this.resize(Math.min(hand.size + 1, DOTS.length - 1));
    else if (SMALLER.includes(key)) this.resize(Math.max(hand.size - 1, 0));
    else return false;
    return true;
  }

  update(can: Can): void {
    for (const act of ["undo", "redo", "clear"] as const) {
      // Not `disabled`: the focus would be lost with the last step that is taken back.
      if (can[act] && !can.rests) this.acts[act].removeAttribute("aria-disabled");
      else this.acts[act].setAttribute("aria-disabled", "true");
    }
  }

  private act(act: Act): void {
    if (!this.acts[act].hasAttribute("aria-disabled")) this.does[act]();
  }

  private take(kind: "brush" | "eraser"): void {
    this.isMarking = kind === "brush";
    this.show();
    this.does.taken(this.words.solve[kind]);
  }

  private resize(size: number): void {
    hand.size = size;
    this.show();
    this.does.taken(this.words.solve.sizes[size]!);
  }

  private show(): void {
    this.kinds.brush.setAttribute("aria-pressed", String(this.isMarking));
    this.kinds.eraser.setAttribute("aria-pressed", String(!this.isMarking));
    this.sizes.forEach((button, index) => button.setAttribute("aria-pressed", String(index === hand.size)));
  }
}

function tool(name: string, icon: string, press: () => void): HTMLButtonElement {
  const made = h("button", { type: "button", class: "mark-tool", "aria-label": name, title: name, click: press });
  made.innerHTML = `<svg viewBox="0 0 24 24" aria-hidden="true">${icon}</svg>`;
  return made;
}
