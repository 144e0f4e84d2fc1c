/** What all trials share: the stimulus in its place, a line that asks, answer buttons with keys, an exact clock. */
import { h, keysAreBusy } from "../frame/dom";
import { keys, printed } from "../frame/keys";
import type { Context } from "../server/model";
import { Exposure, UNTIL_ANSWER, type Presentation, type Sight } from "./exposure";
import type { Shown } from "./kind";
import { countsOf, pressContext } from "./answer-context";
import { sights } from "./visual";

export interface Answer {
  value: string;
  text: string;
  /** The study's key for it, as `KeyboardEvent.key`; the person may have chosen another. Compared without case. */
  key: string;
  /** What is printed on the button in place of the study's key. */
  printed?: string;
  /** The key is what the button says, too. */
  is_named_by_key?: boolean;
}

export interface BoardSpec extends Pick<Shown, "picture_px" | "min_view_ms" | "words" | "announce"> {
  /** Made by `stimulus()`. */
  stimulus: HTMLElement;
  ask: HTMLElement;
  answers: Answer[];
  /** What may be consulted, beside the stimulus and its answers; null keeps no place for it. */
  beside: HTMLElement | null;
  /** Says the question anew after other keys were chosen. */
  ask_again?: () => void;
  /** What a screen reader hears when the buttons become active. */
  ready: string;
  /** Fixation mark, exposure and mask; without it the stimulus stands there at once, until the answer. */
  presentation?: Presentation;
}

export interface Pressed {
  answer: Answer;
  rt_ms: number;
  shown_ms: number;
  context: Context;
}

/** Long enough to see that the button went down, too short to wait for. */
export const PRESSED_MS = 120;

export class Board {
  readonly element: HTMLElement;
  private readonly exposure: Exposure;
  private readonly see: (sight: Sight) => void;
  private readonly buttons: HTMLButtonElement[];
  /** What presses each answer. */
  private keys: string[] = [];
  private deaf: () => void = () => undefined;
  private seen: Sight | null = null;
  private active = false;
  private over = false;

  constructor(
    private readonly spec: BoardSpec,
    private readonly onPressed: (pressed: Pressed) => void,
    private readonly later: (act: () => void, delay_ms: number) => void = (act, delay_ms) =>
      void setTimeout(act, delay_ms),
  ) {
    const presentation = spec.presentation ?? UNTIL_ANSWER;
    this.exposure = new Exposure(presentation);
    const see = sights(spec.stimulus, presentation);
    // What is hidden when its time is over and again by the answer is hidden once.
    this.see = (sight) => {
      if (sight !== this.seen) see(sight);
      this.seen = sight;
    };
    this.buttons = spec.answers.map((answer, index) => this.answerButton(answer, index));
    this.element = this.build();
    this.print();
    this.element.style.setProperty("--picture-px", `${spec.picture_px}px`);
  }

  /** Puts the board on the page and starts the clock with the frame that paints it. */
  show(display: HTMLElement): void {
    display.replaceChildren(this.element);
    // Capturing, so that the keys act wherever the focus is.
    document.addEventListener("keydown", this.onKey, true);
    this.deaf = keys.listen(() => this.print());
    this.exposure.start(() => this.later(() => this.activate(), this.spec.min_view_ms), this.see);
  }

  /** Puts the board on the page as one that was answered before: nothing is timed, and its buttons do nothing. */
  lay(display: HTMLElement): void {
    this.over = true;
    this.hide();
    display.replaceChildren(this.element);
  }

  /** A stimulus whose time is limited is not seen for longer because the page goes on. */
  private hide(): void {
    if (this.spec.presentation?.course.exposure_ms != null) this.see("empty");
  }

  private build(): HTMLElement {
    const { spec } = this;
    const count = spec.answers.length;
    const group = h(
      "div",
      { class: `answers of-${count}${count > 4 ? " many" : ""}`, role: "group", "aria-label": spec.words.trial.choices },
      ...this.buttons,
    );
    const wait = h("p", { class: "sr-only", id: "answers-wait" }, spec.words.trial.wait);
    const middle = h("div", { class: "middle" }, spec.stimulus, spec.ask, wait, group);
    return h("div", { class: "board" }, middle, spec.beside);
  }

  private answerButton(answer: Answer, index: number): HTMLButtonElement {
    return h(
      "button",
      {
        type: "button",
        class: "answer",
        "data-value": answer.value,
        "aria-disabled": "true",
        "aria-describedby": "answers-wait",
        click: (event) => this.press(index, event),
      },
      // In its own direction, whatever that of the row of buttons is.
      h("span", { class: "answer-text", dir: "auto" }, answer.text),
      h("kbd", { "aria-hidden": "true" }),
    );
  }

  /** The keys on the buttons and in the question, as they are now. */
  private print(): void {
    const { answers, ask_again } = this.spec;
    this.keys = keys.for(answers.map((answer) => answer.key));
    answers.forEach((answer, index) => {
      const [text, key] = this.buttons[index]!.children as unknown as [HTMLElement, HTMLElement];
      const mine = this.keys[index]!;
      this.buttons[index]!.setAttribute("aria-keyshortcuts", mine === " " ? "Space" : mine);
      key.textContent = mine === answer.key ? (answer.printed ?? printed(mine)) : printed(mine);
      key.hidden = key.textContent === "";
      if (answer.is_named_by_key) text.textContent = printed(mine);
    });
    ask_again?.();
  }

  private activate(): void {
    if (this.over) return;
    this.active = true;
    for (const button of this.buttons) {
      button.removeAttribute("aria-disabled");
      button.removeAttribute("aria-describedby");
    }
    this.spec.announce(this.spec.ready);
  }

  private readonly onKey = (event: KeyboardEvent): void => {
    // A trial that was called off from outside leaves its listener behind until the next key.
    if (!this.element.isConnected) {
      this.deaf();
      return document.removeEventListener("keydown", this.onKey, true);
    }
    if (event.repeat || event.ctrlKey || event.altKey || event.metaKey || keysAreBusy(event.target)) return;
    const index = this.keys.findIndex((key) => key.toLowerCase() === event.key.toLowerCase());
    if (index < 0) return;
    // The space bar also presses whatever button has the focus; only ours may be meant by it.
    const focused = event.target instanceof HTMLButtonElement ? event.target : null;
    if (event.key === " " && focused && !this.buttons.includes(focused)) return;
    event.preventDefault();
    this.press(index, event);
  };

  private press(index: number, event: Event): void {
    const answer = this.spec.answers[index];
    if (!this.active || this.over || answer === undefined) return;
    this.over = true;
    this.deaf();
    document.removeEventListener("keydown", this.onKey, true);
    const rt_ms = this.exposure.since(event);
    const context = this.context(index, event);
    this.buttons[index]?.classList.add("pressed");
    this.later(() => {
      const shown_ms = this.exposure.stop();
      this.hide();
      this.onPressed({ answer, rt_ms, shown_ms, context: { ...context, ...countsOf(this.exposure) } });
    }, PRESSED_MS);
  }

  private context(index: number, event: Event): Context {
    const context = pressContext(event, this.exposure, this.element);
    const study = this.spec.answers.map((answer) => answer.key);
    if (keys.replaces(study)) context.keys = this.keys.join("");
    if (this.buttons.length > 1) context.side = index % 2 === 0 ? "left" : "right";
    return context;
  }
}
