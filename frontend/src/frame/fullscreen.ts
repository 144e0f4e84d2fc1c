/** Full screen, where the study asks for it: offered once with two buttons, left by Esc, never a condition. */
import { button, h } from "./dom";
import type { EventLog } from "../server/events";
import type { Shell } from "./shell";

/** Long enough for any browser to answer; one that never does holds nobody up. */
const ANSWER_MS = 3000;

export class FullScreen {
  private is_asked = false;

  constructor(
    private readonly shell: Shell,
    private readonly events: Pick<EventLog, "add">,
  ) {}

  /** Asks before the first trials of this page; a browser wants a press. Frames and telephones may not allow it. */
  async offer(stop: AbortSignal): Promise<void> {
    if (this.is_asked) return;
    this.is_asked = true;
    if (!document.fullscreenEnabled) return this.refused("unavailable");
    document.addEventListener("fullscreenchange", this.onChange);
    const is_wanted = await this.ask(stop);
    if (is_wanted === false) this.refused("declined");
    if (is_wanted) await this.enter();
  }

  /** Gives the screen back; that is no exit of the person's own. */
  leave(): void {
    document.removeEventListener("fullscreenchange", this.onChange);
    this.shell.offer(null);
    if (document.fullscreenElement) void document.exitFullscreen().catch(() => undefined);
  }

  /** Null: called off from outside. */
  private ask(stop: AbortSignal): Promise<boolean | null> {
    const { fullscreen: words } = this.shell.words;
    return new Promise((resolve) => {
      stop.addEventListener("abort", () => resolve(null), { once: true });
      const yes = button(words.enter, () => resolve(true), "primary");
      const no = button(words.decline, () => resolve(false));
      const said = [h("h1", {}, words.title), h("p", {}, words.text)];
      const actions = h("div", { class: "actions" }, yes, no);
      this.shell.show(h("section", { class: "sheet short", "data-page": "fullscreen" }, ...said, actions));
    });
  }

  private async enter(): Promise<void> {
    const silent = new Promise((_, reject) => setTimeout(reject, ANSWER_MS));
    try {
      await Promise.race([document.documentElement.requestFullscreen({ navigationUI: "hide" }), silent]);
    } catch {
      this.refused("failed");
    }
  }

  private refused(reason: "unavailable" | "declined" | "failed"): void {
    this.events.add("fullscreen_refused", { reason });
  }

  private readonly onChange = (): void => {
    const isFull = document.fullscreenElement !== null;
    this.events.add(isFull ? "fullscreen_entered" : "fullscreen_left");
    this.shell.offer(isFull ? null : { text: this.shell.words.fullscreen.back, press: () => void this.enter() });
  };
}
