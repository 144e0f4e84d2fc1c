/** What comes after a guess: the server's answer in the place of the question, marks on the buttons, and "next". */
import { h, keysAreBusy } from "../frame/dom";
import type { Choice, Feedback } from "../server/model";
import { PRESSED_MS } from "./board";
import { Exposure } from "./exposure";
import type { Shown } from "./kind";

/** A reply that comes sooner is not announced: words that come and go at once only disturb. */
const PATIENCE_MS = 500;
/** In the place of a button's key, for those who see no difference of colours or borders. */
const MARKS = { right: "✓", wrong: "✗" } as const;

export interface RevealSpec extends Pick<Shown, "words" | "announce"> {
  choices: Choice[];
}

/** Works on a board whose answer was given: stimulus, sentence and buttons keep their places to the pixel. */
export class Reveal {
  private readonly ask: HTMLElement;
  private readonly next: HTMLButtonElement;
  private readonly exposure = new Exposure();
  private over = false;

  constructor(
    private readonly board: HTMLElement,
    private readonly spec: RevealSpec,
    /** Called with the milliseconds from the frame that first shows the answer to the press. */
    private readonly onNext: (shown_ms: number) => void,
    private readonly later: (act: () => void, delay_ms: number) => void,
  ) {
    this.ask = board.querySelector<HTMLElement>(".ask")!;
    const { next, space } = spec.words.trial;
    this.next = h(
      "button",
      { type: "button", class: "next", "aria-keyshortcuts": "Space Enter", click: (event) => this.press(event) },
      h("span", {}, next),
      h("kbd", { "aria-hidden": "true" }, space),
    );
    for (const button of this.buttons) button.setAttribute("aria-disabled", "true");
    later(() => this.wait(), PATIENCE_MS);
  }

  private get buttons(): HTMLElement[] {
    return [...this.board.querySelectorAll<HTMLElement>(".answer")];
  }

  /** Says that the answer is on its way, if the reply takes its time. */
  private wait(): void {
    if (this.next.isConnected || this.over) return;
    const { sent } = this.spec.words.trial;
    this.ask.textContent = sent;
    this.spec.announce(sent);
  }

  /** Shows what the server says, and waits for "next". */
  tell(told: Feedback): void {
    const { label, ready_next } = this.spec.words.trial;
    this.ask.classList.add("told");
    const sentence = h("span", {}, `${label} `, h("strong", { class: "label" }, told.label));
    this.ask.replaceChildren(sentence, this.next);
    this.spec.choices.forEach((choice, index) => this.mark(this.buttons[index]!, choice, told));
    document.addEventListener("keydown", this.onKey, true);
    // So that Enter acts, and a screen reader goes on from here.
    this.next.focus({ preventScroll: true });
    this.exposure.start(() => this.spec.announce(`${label} ${told.label}. ${ready_next}`));
  }

  private mark(button: HTMLElement, choice: Choice, told: Feedback): void {
    const { right, yours } = this.spec.words.trial;
    const isRight = choice.text === told.label;
    const isMine = choice.value === told.choice;
    button.classList.toggle("right", isRight);
    button.classList.toggle("pressed", isMine);
    if (!isRight && !isMine) return;
    const key = button.querySelector("kbd")!;
    key.hidden = false;
    key.classList.add("verdict");
    key.textContent = isRight ? MARKS.right : MARKS.wrong;
    const said = [isMine ? yours : "", isRight ? right : ""].filter((text) => text !== "");
    button.append(h("span", { class: "sr-only" }, ` (${said.join(", ")})`));
  }

  private readonly onKey = (event: KeyboardEvent): void => {
    if (!this.board.isConnected) return document.removeEventListener("keydown", this.onKey, true);
    if (event.key !== " " && event.key !== "Enter") return;
    if (event.ctrlKey || event.altKey || event.metaKey || keysAreBusy(event.target)) return;
    // Both keys press whatever control has the focus; only ours may be meant by them.
    const focused = event.target instanceof Element ? event.target.closest("button, a, summary") : null;
    if (focused !== null && !this.board.contains(focused)) return;
    event.preventDefault();
    if (!event.repeat) this.press(event);
  };

  private press(event: Event): void {
    if (this.over) return;
    this.over = true;
    document.removeEventListener("keydown", this.onKey, true);
    const shown_ms = this.exposure.since(event);
    this.exposure.stop();
    this.next.classList.add("pressed");
    this.later(() => this.onNext(shown_ms), PRESSED_MS);
  }
}
