/** A task to be solved: the picture that is marked, what marks it, the answers, and one button that sends both. */
import { button, h, keysAreBusy } from "../../frame/dom";
import { keys, printed } from "../../frame/keys";
import type { Choice, Context, Media } from "../../server/model";
import { PRESSED_MS } from "../board";
import { Exposure } from "../exposure";
import type { Shown, TrialDraft } from "../kind";
import { countsOf, pressContext } from "../answer-context";
import { sights } from "../visual";
import { sizesOf } from "./brush";
import { Plate, type Brush, type Device } from "./plate";
import { Region, type Kept } from "./region";
import { Tools } from "./tools";

/** The answer of a person who sees none; as in experiments/kinds/solve.py. */
export const CANNOT_SAY = "cannot_say";

export interface Task extends Omit<Shown, "tell" | "told"> {
  image: Media;
  /** Cells of a side. */
  grid: number;
  choices: Choice[];
  draft: TrialDraft;
}

export interface Solved {
  value: { choice: string; region: number[] | null };
  rt_ms: number;
  shown_ms: number;
  context: Context;
}

/** What is noted of the marks beside the answer. */
interface Counts {
  strokes: number;
  undos: number;
  /** Milliseconds from the onset to the first stroke, on the page on which that was made; null before. */
  first_stroke_ms: number | null;
  devices: Device[];
}

/** What survives a reload. */
interface Draft {
  grid: number;
  choice: string | null;
  region: Kept;
  counts: Counts;
}

export class Solving {
  readonly element: HTMLElement;
  readonly plate: Plate;
  private readonly region = new Region();
  private readonly tools: Tools;
  private readonly exposure: Exposure;
  private readonly radios: HTMLInputElement[];
  private readonly signs: HTMLElement[];
  private readonly state = h("p", { class: "state" });
  private readonly complaint = h("p", { class: "complaint", role: "alert" });
  private readonly said = h("div", { class: "said" }, this.state, this.complaint);
  private readonly hint = h("p", { class: "hint", id: "solve-hint" });
  private readonly send: HTMLButtonElement;
  private answerKeys: string[] = [];
  private deaf: () => void = () => undefined;
  private choice: string | null = null;
  private counts: Counts = { strokes: 0, undos: 0, first_stroke_ms: null, devices: [] };
  /** The same before the last stroke. */
  private before = this.counts;
  private isSeen = false;
  private over = false;

  constructor(
    private readonly task: Task,
    private readonly onSolved: (solved: Solved) => void,
    private readonly later: (act: () => void, delay_ms: number) => void,
  ) {
    const { grid, words, image, choices } = task;
    this.exposure = new Exposure(task.presentation);
    this.tools = new Tools(sizesOf(grid), words, {
      undo: () => this.undo(),
      redo: () => this.change(() => this.region.redo()),
      clear: () => this.change(() => this.region.clear()),
      taken: (name) => {
        this.plate.draw(!this.isAside);
        task.announce(name);
      },
    });
    this.plate = new Plate({
      ...{ image: task.picture(image), media: image, grid, words, region: this.region },
      brush: (): Brush => this.tools.brush,
      mayMark: () => this.mayMark(),
      onChange: () => this.changed(),
      onEnd: () => this.changed(),
      onCalledOff: () => {
        this.counts = this.before;
        this.changed();
      },
      onStroke: (event, device) => this.stroke(event, device),
      onFrame: (cell) => this.sayCell(cell),
    });
    this.radios = choices.map(({ value }) =>
      h("input", { type: "radio", name: "solve-answer", value, change: () => this.choose(value) }),
    );
    this.signs = choices.map(() => h("kbd", { "aria-hidden": "true" }));
    this.send = button(words.solve.send, (event) => this.submit(event));
    this.send.setAttribute("aria-keyshortcuts", "Enter");
    this.send.append(" ", h("kbd", { "aria-hidden": "true" }, words.rating.enter));
    this.restore(task.draft.text);
    this.element = this.build();
    this.element.style.setProperty("--picture-px", `${task.picture_px}px`);
    this.print();
    this.update();
  }

  /** Puts the task on the page and starts the clock with the frame that paints it. */
  show(display: HTMLElement): void {
    display.replaceChildren(this.element);
    document.documentElement.scrollTop = 0;
    // Capturing, so that the keys act wherever the focus is.
    document.addEventListener("keydown", this.onKey, true);
    this.deaf = keys.listen(() => this.print());
    const see = sights(this.element.querySelector<HTMLElement>(".place")!, this.task.presentation);
    // A task takes its time anyway: nobody is held up for longer.
    const seen = (): void => {
      this.isSeen = true;
      this.plate.element.removeAttribute("aria-disabled");
      this.update();
    };
    this.exposure.start(seen, see);
  }

  private build(): HTMLElement {
    const { words, choices } = this.task;
    const answers = choices.map((choice, index) =>
      h(
        "label",
        { class: choice.value === CANNOT_SAY ? "choice none" : "choice" },
        this.radios[index],
        h("span", { class: "choice-text", dir: "auto" }, choice.text),
        this.signs[index],
      ),
    );
    // Digits stand closer than words.
    const named = choices.filter(({ value }) => value !== CANNOT_SAY);
    const isShort = named.every(({ text }) => [...text].length <= SHORT);
    return h(
      "div",
      { class: "solving" },
      h("div", { class: "marking" }, h("div", { class: "place" }, this.plate.element), this.tools.element),
      h(
        "fieldset",
        { class: "choosing", role: "radiogroup" },
        h("legend", {}, words.solve.question),
        h("div", { class: isShort ? "choices short" : "choices" }, ...answers),
      ),
      this.said,
      this.hint,
      h("div", { class: "sending" }, this.send),
    );
  }

  /** The keys on the answers, as they are now; one that the answer says itself is not repeated. */
  private print(): void {
    const { choices, words } = this.task;
    this.answerKeys = keys.for(choices.map(({ key }) => key));
    choices.forEach(({ text }, index) => {
      const key = this.answerKeys[index]!;
      const sign = this.signs[index]!;
      sign.textContent = printed(key);
      sign.hidden = printed(key) === text;
      this.radios[index]!.setAttribute("aria-keyshortcuts", key);
    });
    const { reach, moves, more } = words.solve.hint;
    const rest = more(this.tools.hasKeys(this.answerKeys));
    this.hint.replaceChildren(h("span", {}, `${reach} `), h("span", { class: "moves" }, moves), h("span", {}, ` ${rest}`));
  }

  /** Marks that are not sent, because the answer is that nothing can be said. */
  private get isAside(): boolean {
    return this.choice === CANNOT_SAY && this.region.count > 0;
  }

  private get isReady(): boolean {
    return this.isSeen && this.choice !== null && (this.choice === CANNOT_SAY || this.region.count > 0);
  }

  /** Who marks again has something to say after all: marks that were set aside come back. */
  private mayMark(): boolean {
    if (!this.isSeen || this.over) return false;
    if (this.choice === CANNOT_SAY) {
      this.choice = null;
      for (const radio of this.radios) radio.checked = false;
      this.changed();
    }
    return true;
  }

  private choose(value: string): void {
    if (this.over) return;
    this.plate.settle();
    this.choice = value;
    for (const radio of this.radios) radio.checked = radio.value === value;
    this.changed();
    this.task.announce(this.state.textContent);
  }

  /** Something else than a stroke: taken back, made again, all cleared. */
  private change(act: () => boolean): boolean {
    if (this.over || this.plate.isMarking || this.isAside) return false;
    this.plate.settle();
    const isDone = act();
    if (isDone) {
      this.changed();
      this.task.announce(this.task.words.solve.cells(this.region.count));
    }
    return isDone;
  }

  private undo(): void {
    if (!this.change(() => this.region.undo())) return;
    this.counts.undos += 1;
    this.keep();
  }

  private stroke(event: Event, device: Device): void {
    const { strokes, undos, first_stroke_ms, devices } = this.counts;
    this.before = this.counts;
    this.counts = {
      strokes: strokes + 1,
      undos,
      first_stroke_ms: first_stroke_ms ?? this.exposure.since(event),
      devices: [...new Set([...devices, device])],
    };
    this.changed();
  }

  private sayCell(cell: number): void {
    const { task, region } = this;
    const [row, column] = [Math.floor(cell / task.grid) + 1, (cell % task.grid) + 1];
    task.announce(task.words.solve.cell(row, column, region.holds(cell), region.count));
  }

  private changed(): void {
    this.complaint.textContent = "";
    this.update();
    this.keep();
  }

  private update(): void {
    const { region, plate, tools, send } = this;
    plate.draw(!this.isAside);
    tools.update({ undo: region.canUndo, redo: region.canRedo, clear: region.count > 0, rests: this.isAside });
    this.state.textContent = this.sentence();
    this.said.classList.toggle("urgent", this.isAside || this.complaint.textContent !== "");
    send.classList.toggle("primary", this.isReady);
    send.classList.toggle("plain", !this.isReady);
  }

  /** Where the person stands, and what is still to be done. */
  private sentence(): string {
    const { solve } = this.task.words;
    const { count } = this.region;
    const chosen = this.task.choices.find(({ value }) => value === this.choice);
    if (this.isAside) return solve.aside(count);
    if (chosen === undefined) return count === 0 ? solve.start : solve.marked(count);
    if (chosen.value === CANNOT_SAY) return solve.nothing;
    return count === 0 ? solve.chosen(chosen.text) : solve.both(chosen.text, count);
  }

  private readonly onKey = (event: KeyboardEvent): void => {
    // A trial that was called off from outside leaves its listener behind until the next key.
    if (!this.element.isConnected) {
      this.deaf();
      return document.removeEventListener("keydown", this.onKey, true);
    }
    if (this.over || event.altKey || keysAreBusy(event.target)) return;
    if (event.ctrlKey || event.metaKey) return this.takeBack(event);
    if (event.repeat) return;
    if (event.key === "Enter") {
      // A button or a link that has the focus is meant by it.
      if (event.target instanceof Element && event.target.matches("button, a, summary")) return;
      event.preventDefault();
      return this.submit(event);
    }
    const key = event.key.toLowerCase();
    const index = this.answerKeys.findIndex((mine) => mine.toLowerCase() === key);
    const isTaken = index < 0 ? this.tools.press(key, this.answerKeys) : true;
    if (index >= 0) this.choose(this.task.choices[index]!.value);
    if (isTaken) event.preventDefault();
  };

  private takeBack(event: KeyboardEvent): void {
    const key = event.key.toLowerCase();
    const isRedo = key === "y" || (key === "z" && event.shiftKey);
    if (!isRedo && key !== "z") return;
    event.preventDefault();
    if (isRedo) this.change(() => this.region.redo());
    else this.undo();
  }

  private submit(event: Event): void {
    if (!this.isSeen || this.over || this.plate.isMarking) return;
    this.plate.settle();
    if (!this.isReady || this.choice === null) return this.complain();
    this.over = true;
    this.deaf();
    document.removeEventListener("keydown", this.onKey, true);
    const rt_ms = this.exposure.since(event);
    const context = { ...pressContext(event, this.exposure, this.element), ...this.noted() };
    const value = { choice: this.choice, region: this.choice === CANNOT_SAY ? null : this.region.cells };
    for (const radio of this.radios) radio.disabled = true;
    this.send.classList.add("pressed");
    this.later(() => {
      const shown_ms = this.exposure.stop();
      this.onSolved({ value, rt_ms, shown_ms, context: { ...context, ...countsOf(this.exposure) } });
    }, PRESSED_MS);
  }

  private noted(): Context {
    const { strokes, undos, first_stroke_ms, devices } = this.counts;
    const context: Context = { strokes, undos };
    if (keys.replaces(this.task.choices.map(({ key }) => key))) context.keys = this.answerKeys.join("");
    if (first_stroke_ms !== null) context.first_stroke_ms = first_stroke_ms;
    if (devices.length > 0) context.marked_with = devices.length > 1 ? "several" : devices[0]!;
    return context;
  }

  /** Says what is missing. */
  private complain(): void {
    const { solve } = this.task.words;
    this.complaint.textContent = this.choice === null ? solve.no_answer(this.region.count) : solve.no_marks;
    this.update();
  }

  private keep(): void {
    if (this.over) return;
    const { choice, region, counts } = this;
    const draft: Draft = { grid: this.task.grid, choice, region: region.keep(), counts };
    this.task.draft.keep(JSON.stringify(draft));
  }

  /** What was marked and chosen before a reload. */
  private restore(text: string | null): void {
    if (text === null) return;
    const draft = JSON.parse(text) as Draft;
    if (draft.grid !== this.task.grid) return;
    this.region.restore(draft.region);
    this.counts = draft.counts;
    const place = this.task.choices.findIndex(({ value }) => value === draft.choice);
    if (place < 0) return;
    this.choice = draft.choice;
    this.radios[place]!.checked = true;
  }
}

/** Characters of an answer that stands in a narrow place. */
const SHORT = 2;
