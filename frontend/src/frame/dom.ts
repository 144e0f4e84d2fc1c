/** Building pages from text; the one place where HTML from the server becomes elements. */

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: Event) => void) | null | undefined>;

/** An element; strings become text nodes, functions become listeners, null and false leave an attribute out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(
    ...children.filter(
      (child): child is Node | string => child !== null && child !== undefined && child !== false,
    ),
  );
  return element;
}

/** The study's own text: Markdown that the server rendered and sanitised. Nothing else may be set as HTML. */
export function serverHtml(html: string): HTMLElement {
  const prose = h("div", { class: "prose" });
  prose.innerHTML = html;
  return prose;
}

/**
 * The same where the text is the page: one that opens with a heading brings the page's heading, whatever its level,
 * and the headings below it move up with it.
 */
export function titledHtml(html: string): HTMLElement {
  const prose = serverHtml(html);
  const first = prose.firstElementChild;
  if (!first?.matches("h2")) return prose;
  first.replaceWith(h("h1", {}, ...first.childNodes));
  if (prose.querySelector("h2") === null) {
    for (const heading of prose.querySelectorAll("h3"))
      heading.replaceWith(h("h2", {}, ...heading.childNodes));
  }
  return prose;
}

/** The same below a heading of ours: the text's own title steps down. */
export function untitledHtml(html: string): HTMLElement {
  const prose = serverHtml(html);
  for (const heading of prose.querySelectorAll("h1")) heading.replaceWith(h("h2", {}, ...heading.childNodes));
  return prose;
}

/** A text's first heading as the title of a page, and what follows it; `title` stands in where it has none. */
export function headed(html: string, title: string): { title: string; html: string } {
  const prose = serverHtml(html);
  const first = prose.firstElementChild;
  if (!first?.matches("h1, h2")) return { title, html };
  first.remove();
  return { title: first.textContent, html: prose.innerHTML };
}

export function button(text: string, press: (event: Event) => void, kind = "plain"): HTMLButtonElement {
  return h("button", { type: "button", class: `button ${kind}`, click: press }, text);
}

/** True while a person is typing or a dialog is open: answer keys must not act then. */
export function keysAreBusy(target: EventTarget | null): boolean {
  if (document.querySelector("dialog[open]")) return true;
  return target instanceof Element && target.matches("input:not([type=radio]), textarea, select");
}
