/**
 * The examples seen so far, beside the stimulus: tiles by the machine's answer, in training order, that enlarge in
 * place. They have a scroll of their own and never lie over the stimulus, the question or the answers.
 */
import { h } from "../frame/dom";
import { legend } from "./legend";
import type { EventKind, Example, Media, Study } from "../server/model";
import { wordsOf } from "../plugins/stimulus";
import type { Words } from "../words";

export interface ReservoirSpec {
  examples: Example[];
  mode: "always" | "on_request";
  display: "beside" | "overlay";
  legend: Study["legend"];
  words: Words;
  picture: (media: Media) => HTMLImageElement;
  log: (kind: EventKind, data?: Record<string, unknown>) => void;
  now_ms?: () => number;
}

/** The text of an example without its marks. */
function plain({ text }: Example): string | undefined {
  return text?.tokens.map((token) => token.text).join("");
}

export class Reservoir {
  readonly element: HTMLElement;
  private readonly panel: HTMLElement;
  private readonly toggle: HTMLButtonElement | null;
  private readonly now_ms: () => number;
  private opened_at_ms: number | null = null;
  private total_ms = 0;
  private enlarged: { tile: HTMLElement; example: Example; since_ms: number } | null = null;

  constructor(private readonly spec: ReservoirSpec) {
    this.now_ms = spec.now_ms ?? (() => performance.now());
    const title = spec.words.reservoir.title(spec.examples.length);
    this.panel = h("div", { class: "reservoir-panel", role: "region", "aria-label": title });
    this.toggle = spec.mode === "always" ? null : this.toggleButton();
    const head = this.toggle ?? h("h2", { class: "reservoir-title" }, title);
    this.element = h("section", { class: "reservoir" }, h("div", { class: "reservoir-inside" }, head, this.panel));
    if (spec.mode === "always") this.open();
    else this.panel.hidden = true;
  }

  /** Ends the trial's use of the examples; returns for how many milliseconds they were on the page. */
  finish(): number {
    this.shrink();
    if (this.opened_at_ms !== null) this.close("answer");
    return Math.round(this.total_ms);
  }

  private toggleButton(): HTMLButtonElement {
    return h(
      "button",
      {
        type: "button",
        class: "reservoir-toggle",
        "aria-expanded": "false",
        click: () => (this.opened_at_ms === null ? this.open() : this.close("toggle")),
      },
      this.spec.words.reservoir.show(this.spec.examples.length),
    );
  }

  private open(): void {
    if (!this.panel.hasChildNodes()) this.fill();
    this.panel.hidden = false;
    this.opened_at_ms = this.now_ms();
    if (this.toggle === null) return;
    this.toggle.setAttribute("aria-expanded", "true");
    this.toggle.textContent = this.spec.words.reservoir.hide;
    this.spec.log("reservoir_opened", { examples: this.spec.examples.length });
  }

  private close(by: "toggle" | "answer"): void {
    const open_ms = this.now_ms() - (this.opened_at_ms ?? this.now_ms());
    this.shrink();
    this.total_ms += open_ms;
    this.opened_at_ms = null;
    this.panel.hidden = true;
    if (this.toggle === null) return;
    this.toggle.setAttribute("aria-expanded", "false");
    this.toggle.textContent = this.spec.words.reservoir.show(this.spec.examples.length);
    this.spec.log("reservoir_closed", { open_ms: Math.round(open_ms), by });
  }

  private fill(): void {
    const { title, hint } = this.spec.words.reservoir;
    if (this.toggle)
      this.panel.append(h("h2", { class: "reservoir-title" }, title(this.spec.examples.length)));
    const meaning = this.spec.examples.some((example) => example.explanation !== null) ? this.spec.legend : null;
    const scale = legend(meaning, this.spec.words);
    if (scale) this.panel.append(scale);
    this.panel.append(h("p", { class: "sr-only" }, hint), ...this.groups());
  }

  /** One list per answer, in the order of the alphabet: the order of training would tell which came first. */
  private groups(): HTMLElement[] {
    const answers = [...new Set(this.spec.examples.map((example) => example.label))].sort();
    return answers.map((answer) => {
      const tiles = this.spec.examples.flatMap((example, index) =>
        example.label === answer ? [this.tile(example, index)] : [],
      );
      const name = h("h3", { class: "tiles-label" }, answer);
      return h("section", { class: "tiles-group" }, name, h("ol", { class: "tiles", "aria-label": answer }, ...tiles));
    });
  }

  private tile(example: Example, index: number): HTMLElement {
    const { words, picture, display } = this.spec;
    const beside =
      display === "beside" ? [example.image, example.explanation] : [example.explanation ?? example.image];
    const shown = beside.filter((media): media is Media => media !== null);
    const tile = h(
      "button",
      {
        type: "button",
        class: "tile",
        "aria-pressed": "false",
        // The label stands for all inside; what an explanation says in words has to be heard, too.
        "aria-label": [words.reservoir.tile(index + 1, example.label), example.explanation?.alt, plain(example)]
          .filter((part) => part !== undefined)
          .join(". "),
      },
      h(
        "span",
        { class: "tile-pictures" },
        ...shown.map((media) => picture(media)),
        example.text ? h("span", { class: "tile-text", dir: "auto" }, ...wordsOf(example.text)) : null,
      ),
    );
    this.listen(tile, example);
    return h("li", { class: `tile-place of-${shown.length}` }, tile);
  }

  /** A pointer both focuses and clicks; only the click may count then. */
  private listen(tile: HTMLElement, example: Example): void {
    let pointer = false;
    tile.addEventListener("pointerdown", () => (pointer = true));
    tile.addEventListener("focus", () => {
      if (!pointer) this.enlarge(tile, example);
    });
    tile.addEventListener("click", () => {
      pointer = false;
      if (this.enlarged?.tile === tile) this.shrink();
      else this.enlarge(tile, example);
    });
    tile.addEventListener("blur", () => {
      pointer = false;
      if (this.enlarged?.tile === tile) this.shrink();
    });
    tile.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.shrink();
    });
  }

  private enlarge(tile: HTMLElement, example: Example): void {
    this.shrink();
    this.enlarged = { tile, example, since_ms: this.now_ms() };
    tile.classList.add("enlarged");
    tile.setAttribute("aria-pressed", "true");
    tile.scrollIntoView?.({ block: "nearest" });
  }

  private shrink(): void {
    if (this.enlarged === null) return;
    const { tile, example, since_ms } = this.enlarged;
    this.enlarged = null;
    tile.classList.remove("enlarged");
    tile.setAttribute("aria-pressed", "false");
    this.spec.log("tile_enlarged", { example: example.trial, open_ms: Math.round(this.now_ms() - since_ms) });
  }
}
