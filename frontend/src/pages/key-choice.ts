/** Choosing other keys, on the instructions page and in the help. */
import type { Desk } from "../frame/page-context";
import { button, h } from "../frame/dom";
import { keys, mistakeIn, printed } from "../frame/keys";

/** Null for a study whose answers have no keys to choose. */
export function keysBox(desk: Desk, study: string[]): HTMLElement | null {
  if (study.length === 0) return null;
  const { words } = desk;
  const summary = h("summary", {});
  const said = h("p", { class: "mistake", role: "status" });
  const inputs = study.map(() => h("input", { type: "text", size: 2, autocomplete: "off", autocapitalize: "none" }));
  const show = (): void => {
    const mine = keys.for(study).map(printed);
    inputs.forEach((input, index) => (input.value = mine[index] ?? ""));
    summary.textContent = words.keys.now(mine.join(" · "));
  };
  const use = (mine: string[]): void => {
    const mistake = mistakeIn(mine);
    said.textContent = mistake === null ? words.keys.used(mine.map(printed).join(" · ")) : words.keys[mistake];
    if (mistake !== null) return;
    keys.choose(study, mine);
    void keys.save(desk.storage);
    show();
  };
  for (const input of inputs) oneKey(input);
  show();
  const rows = inputs.map((input, index) =>
    h("label", { class: "key-row" }, h("span", {}, words.keys.place(index, study.length)), input),
  );
  return h(
    "details",
    { class: "keys" },
    summary,
    h("p", {}, words.keys.text),
    ...rows,
    said,
    h(
      "div",
      { class: "actions" },
      button(words.keys.use, () => use(inputs.map((input) => input.value.trim()))),
      button(words.keys.reset(study.map(printed).join(" · ")), () => use(study)),
    ),
  );
}

/** What is typed replaces what stood there. */
function oneKey(input: HTMLInputElement): void {
  input.addEventListener("focus", () => input.select());
  input.addEventListener("input", () => {
    input.value = printed([...input.value.trim()].at(-1) ?? "");
    input.select();
  });
}
