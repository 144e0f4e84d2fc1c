/** What the colours of an explanation mean: the scale, with a word at either end. */
import { h } from "../frame/dom";
import type { Study } from "../server/model";
import type { Words } from "../words";

export function legend(meaning: Study["legend"], words: Words): HTMLElement | null {
  if (meaning === null) return null;
  const [least, most] = words.legend[meaning.ends];
  const bar = h("span", { class: "legend-bar", "aria-hidden": "true" });
  bar.style.backgroundImage = `linear-gradient(to right, ${meaning.colours.join(", ")})`;
  // Left is the scale's lower end in every language, as the bar is drawn.
  return h("span", { class: "legend", dir: "ltr" }, h("span", {}, least), bar, h("span", {}, most));
}
