/** A text that a person takes elsewhere: a code, a link; with a button that copies it. */
import { button, h } from "../frame/dom";
import type { Words } from "../words";

export function copyRow(words: Words, text: string, label: string, kind: "code" | "address"): HTMLElement {
  const shown = h("output", { class: kind, tabindex: 0 }, text);
  const copy = button(label, () => {
    const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("no clipboard"));
    copied.then(
      () => (copy.textContent = words.finish.copied),
      () => {
        getSelection()?.selectAllChildren(shown);
        copy.textContent = words.finish.copy_failed;
      },
    );
  });
  copy.setAttribute("aria-live", "polite");
  return h("div", { class: "code-row" }, shown, copy);
}
