/** From a phone to a computer: the person's own link, to be opened there, now or later. */
import type { GateView } from "../frame/page-context";
import { button, h } from "../frame/dom";
import { copyRow } from "./copy";
import { isFramed } from "./finish";
import { actions } from "./gates/reading";

/** How to go on elsewhere. Inside a platform's frame the page has no address of its own: the platform has the link. */
export function handover(view: GateView): HTMLElement {
  const { words } = view.desk;
  const link = isFramed() ? null : copyRow(words, location.href, words.device.copy, "address");
  return h(
    "div",
    { class: "code-box" },
    h("h2", {}, words.device.elsewhere),
    h("p", {}, link === null ? words.device.by_platform : words.device.by_link),
    link,
  );
}

/** "Not now": nothing is sent, so that the same link still opens the study. Resolves if the person goes on here. */
export function laterPage(view: GateView): Promise<void> {
  const { words, shell } = view.desk;
  return new Promise((resolve) => {
    shell.show(
      h(
        "section",
        { class: "sheet", "data-page": "later" },
        h("h1", {}, words.device.later_title),
        h("p", {}, words.device.later),
        handover(view),
        actions(button(words.device.here, () => resolve())),
      ),
    );
  });
}
