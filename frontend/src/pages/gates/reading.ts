/** Pages that are read: the study's own text, a heading that is always there, a notice, buttons below. */
import type { GateView } from "../../frame/page-context";
import { h, titledHtml } from "../../frame/dom";
import type { Words } from "../../words";

export function sheet(view: GateView, ...content: (Node | null)[]): HTMLElement {
  const { desk, page, notice } = view;
  const prose = page.html === "" ? null : titledHtml(page.html);
  const own = prose?.querySelector("h1") ?? null;
  const said = notice?.text ? h("p", { class: "notice", role: "alert" }, notice.text) : null;
  if (own && said) own.after(said);
  return h(
    "section",
    { class: "sheet", "data-page": page.kind },
    own ? null : h("h1", {}, titleOf(desk.words, page.kind)),
    own ? null : said,
    prose,
    ...content,
  );
}

export function titleOf(words: Words, kind: string): string {
  return kind in words.title ? words.title[kind as keyof Words["title"]] : words.title.questions;
}

export function actions(...buttons: (Node | null)[]): HTMLElement {
  return h("div", { class: "actions" }, ...buttons);
}
