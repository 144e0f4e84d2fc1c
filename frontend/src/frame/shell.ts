/** The frame around every page: amber strip, progress, one quiet line, the content, help and leave. */
import type { Link } from "../server/api";
import { h } from "./dom";
import type { Words } from "../words";

export interface Tools {
  help: () => void;
  leave: () => void;
}

export class Shell {
  words: Words;
  private readonly strip = h("div", { class: "strip", role: "status", hidden: true });
  private readonly bar = h("div", { class: "progress-done" });
  private readonly progressbar = h(
    "div",
    { class: "progress", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100, hidden: true },
    this.bar,
  );
  private readonly quiet = h("p", { class: "line" });
  private readonly mark = h("p", { class: "mark", hidden: true });
  private readonly main = h("main", { id: "main", tabindex: -1 });
  private readonly footer = h("footer", { class: "tools" });
  private offered: HTMLElement | null = null;
  private readonly voice = h("div", { class: "sr-only", "aria-live": "polite" });
  private readonly skip = h("a", { class: "skip", href: "#main" });
  private link: Link = "up";
  private waiting = 0;
  private said = "";

  constructor(root: HTMLElement, words: Words) {
    this.words = words;
    const top = h("header", { class: "top" }, this.progressbar, this.quiet, this.mark);
    root.replaceChildren(this.skip, this.strip, top, this.main, this.footer, this.voice);
    this.speak(words);
  }

  /** Switches the language of the frame. */
  speak(words: Words): void {
    this.words = words;
    document.documentElement.lang = words.code;
    document.documentElement.dir = words.direction;
    this.skip.textContent = words.skip;
    this.mark.textContent = words.preview;
  }

  markPreview(isPreview: boolean): void {
    this.mark.hidden = !isPreview;
  }

  /** Says whether the server is reached and how many answers wait; gone as soon as all is well. */
  connection(link: Link, waiting: number): void {
    this.link = link;
    this.waiting = waiting;
    this.strip.hidden = link === "up";
    const silence = link === "offline" ? this.words.offline : this.words.server_silent;
    this.strip.textContent = link === "up" ? "" : this.said || silence(waiting);
  }

  count(waiting: number): void {
    this.connection(this.link, waiting);
  }

  linked(link: Link, said: string): void {
    this.said = said;
    this.connection(link, this.waiting);
  }

  /** The share of the session that is done (0-1); null hides the bar on pages that are not part of it. */
  progress(done: number | null): void {
    this.progressbar.hidden = done === null;
    if (done === null) return;
    const percent = Math.round(done * 100);
    this.bar.style.inlineSize = `${(done * 100).toFixed(2)}%`;
    this.progressbar.setAttribute("aria-valuenow", String(percent));
    this.progressbar.setAttribute("aria-label", this.words.progress(percent));
  }

  line(text: string): void {
    if (this.quiet.textContent !== text) this.quiet.textContent = text;
  }

  /** Replaces the page; the heading takes the focus so that a screen reader starts there. */
  show(content: HTMLElement): void {
    this.main.replaceChildren(content);
    const heading = content.querySelector<HTMLElement>("h1");
    if (heading) heading.tabIndex = -1;
    // During trials the quiet line is the only heading there is.
    if (heading) this.quiet.removeAttribute("role");
    else this.quiet.setAttribute("role", "heading");
    this.quiet.ariaLevel = heading ? null : "1";
    (heading ?? this.main).focus({ preventScroll: true });
    document.documentElement.scrollTop = 0;
  }

  /** Whether the page has such a thing. */
  holds(selector: string): boolean {
    return this.main.querySelector(selector) !== null;
  }

  announce(text: string): void {
    this.voice.textContent = text;
  }

  /** One more tool, before the others, as long as there is something to offer. */
  offer(tool: { text: string; press: () => void } | null): void {
    this.offered?.remove();
    this.offered = tool && toolButton(tool.text, tool.press);
    if (this.offered) this.footer.prepend(this.offered);
  }

  tools(tools: Partial<Tools> | null): void {
    this.footer.replaceChildren(...(this.offered ? [this.offered] : []));
    if (tools?.help) this.footer.append(toolButton(this.words.help.open, tools.help));
    if (tools?.leave) this.footer.append(toolButton(this.words.leave.open, tools.leave));
  }
}

function toolButton(text: string, press: () => void): HTMLElement {
  return h("button", { type: "button", class: "tool", click: press }, text);
}
