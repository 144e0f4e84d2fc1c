/** The server's sentences about pay; an amount and its currency are never parted by the end of a line. */
import { h } from "../frame/dom";

export function payLines(sentences: string[]): HTMLElement[] {
  return sentences.map((text) => h("p", {}, text.replace(/(\d) (?=[A-Z]{3}\b)/g, "$1\u00a0")));
}
