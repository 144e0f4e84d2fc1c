/** What is rated, in view all the time, beside the questions about it; one button to go on when all are answered. */
import { button, h, keysAreBusy } from "../../frame/dom";
import type { Context, RateQuestion } from "../../server/model";
import { PRESSED_MS } from "../board";
import { Exposure } from "../exposure";
import type { Shown } from "../kind";
import { countsOf, pressContext } from "../answer-context";
import { sights } from "../visual";
import { eachOnce, pairBlock, stimulus, type Stimulus } from "../stimulus";
import { pointOf, Scale } from "./scale";

export interface Rated extends Omit<Shown, "tell" | "told">, Stimulus {
  /** The model's answer, as people read it; null if it is not told. */
  label: string | null;
  /** The explanation in words, if it is a sentence. */
  sentence: string | null;
  /** In the order in which they are asked. */
  questions: RateQuestion[];
  /** What the button says; "next" if nothing else is given. */
  go_on?: string;
}

export interface Ratings {
  value: Record<string, number>;
  rt_ms: number;
  shown_ms: number;
  context: Context;
}

export class Form {
  readonly element: HTMLElement;
  private readonly exposure: Exposure;
  private readonly rated: HTMLElement;
  private readonly scales: Scale[];
  private readonly said = h("p", { class: "summary", role: "alert" });
  private readonly next: HTMLButtonElement;
  private hasLooked = false;
  private wasReady = false;
  private over = false;

  constructor(
    private readonly spec: Rated,
    private readonly onRated: (ratings: Ratings) => void,
    private readonly later: (act: () => void, delay_ms: number) => void,
  ) {
    this.exposure = new Exposure(spec.presentation);
    // The two sides of a pair may show the same picture as the stimulus: each place gets an element of its own.
    const given = { ...spec, display: "beside" as const, picture: eachOnce(spec.picture) };
    this.rated = stimulus(spec, given);
    this.scales = spec.questions.map((asked, index) => {
      const { pair } = asked;
      const compared = pair === null ? null : pairBlock([pair[0]!, pair[1]!], given);
      const number = spec.questions.length > 1 ? index + 1 : null;
      const since = (event: Event): number => this.exposure.since(event);
      return new Scale(asked, { words: spec.words, number, compared, since, onAnswer: () => this.answered() });
    });
    this.next = button(spec.go_on ?? spec.words.trial.next, (event) => this.goOn(event));
    this.next.setAttribute("aria-keyshortcuts", "Enter");
    this.next.append(" ", h("kbd", { "aria-hidden": "true" }, spec.words.rating.enter));
    this.element = this.build();
    this.element.style.setProperty("--picture-px", `${spec.picture_px}px`);
  }

  /** Puts the form on the page and starts the clock with the frame that paints it. */
  show(display: HTMLElement): void {
    display.replaceChildren(this.element);
    document.documentElement.scrollTop = 0;
    document.addEventListener("keydown", this.onKey, true);
    const ready = (): void => {
      this.hasLooked = true;
      this.update();
    };
    this.exposure.start(() => this.later(ready, this.spec.min_view_ms), sights(this.rated, this.spec.presentation));
  }

  /** What stands in the place of the button once all is answered: words, and another button. */
  end(said: HTMLElement, go: HTMLElement): void {
    this.said.replaceWith(said);
    this.next.replaceWith(go);
  }

  private build(): HTMLElement {
    const { label, sentence, words } = this.spec;
    return h(
      "div",
      { class: "rating" },
      h(
        "div",
        { class: "rated" },
        this.rated,
        sentence === null ? null : h("p", { class: "rated-sentence", dir: "auto" }, sentence),
        label === null ? null : h("p", { class: "rated-label" }, `${words.trial.label} `, h("strong", {}, label)),
      ),
      h(
        "div",
        { class: "scales" },
        ...this.scales.map((scale) => scale.element),
        this.said,
        h("div", { class: "actions" }, this.next),
      ),
    );
  }

  private get open(): Scale[] {
    return this.scales.filter((scale) => scale.value === null);
  }

  private get isReady(): boolean {
    return this.hasLooked && this.open.length === 0;
  }

  private answered(): void {
    // What is missing was said; it is not said of what is no longer missing.
    this.said.textContent = "";
    this.update();
  }

  private update(): void {
    if (!this.isReady || this.wasReady) return;
    this.wasReady = true;
    this.said.textContent = "";
    this.next.classList.replace("plain", "primary");
    this.spec.announce(this.spec.words.rating.ready);
  }

  private readonly onKey = (event: KeyboardEvent): void => {
    // A trial that was called off from outside leaves its listener behind until the next key.
    if (!this.element.isConnected) return document.removeEventListener("keydown", this.onKey, true);
    if (this.over || event.repeat || event.ctrlKey || event.altKey || event.metaKey || keysAreBusy(event.target)) return;
    if (event.key === "Enter") {
      // A button or a link that has the focus is meant by it.
      const isElsewhere = event.target instanceof Element && event.target.matches("button, a");
      if (isElsewhere || !this.isReady) return;
      event.preventDefault();
      return this.goOn(event);
    }
    const point = pointOf(event);
    const scale = this.meant();
    if (point === null || scale === null) return;
    event.preventDefault();
    scale.choose(point, event);
    this.moveOn(scale);
  };

  /** The question that has the focus, else the first open one. */
  private meant(): Scale | null {
    const focused = document.activeElement;
    return this.scales.find((scale) => scale.element.contains(focused)) ?? this.open[0] ?? null;
  }

  /** To the next open question, from the top again after the last one; to the button if none is open. */
  private moveOn(from: Scale): void {
    const { open } = this;
    const place = this.scales.indexOf(from);
    const next = open.find((scale) => this.scales.indexOf(scale) > place) ?? open[0];
    if (next) return next.focus();
    this.next.focus({ preventScroll: true });
    this.next.scrollIntoView?.({ block: "nearest" });
  }

  private goOn(event: Event): void {
    if (this.over) return;
    if (!this.isReady) return this.complain();
    this.over = true;
    document.removeEventListener("keydown", this.onKey, true);
    const rt_ms = this.exposure.since(event);
    const context = pressContext(event, this.exposure, this.rated);
    for (const scale of this.scales) scale.close();
    this.next.classList.add("pressed");
    this.later(() => {
      const shown_ms = this.exposure.stop();
      const value = Object.fromEntries(this.scales.map((scale) => [scale.asked.id, scale.value!]));
      const questions = this.scales.map(({ asked: { id }, ms, changes }) => ({ id, ms, changes }));
      this.onRated({ value, rt_ms, shown_ms, context: { ...context, ...countsOf(this.exposure), questions } });
    }, PRESSED_MS);
  }

  /** Says which questions are open, and goes to the first. */
  private complain(): void {
    const { rating, code } = this.spec.words;
    const { open } = this;
    const numbers = open.map((scale) => String(this.scales.indexOf(scale) + 1));
    this.said.textContent =
      open.length === 0 ? rating.wait : rating.missing(open.length, new Intl.ListFormat(code).format(numbers));
    open[0]?.focus();
  }
}
