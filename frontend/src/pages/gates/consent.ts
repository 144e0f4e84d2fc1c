import type { GateView } from "../../frame/page-context";
import { button, h } from "../../frame/dom";
import type { Question, Value } from "../../server/model";
import { measureDevice } from "./device";
import { actions, sheet } from "./reading";

export function consentPage(view: GateView): Promise<Value> {
  const { words, shell } = view.desk;
  return new Promise((resolve) => {
    const copy = h(
      "p",
      { class: "copies" },
      h("button", { type: "button", class: "link", click: () => download(view) }, words.consent.download),
      h("button", { type: "button", class: "link", click: () => window.print() }, words.consent.print),
    );
    const ticks = view.page.questions.map((question) => tick(question));
    const agree = button(
      words.consent.agree,
      () => {
        const ticked = ticks.map(({ id, box }) => [id, box.checked] as const);
        resolve({ agree: true, device: measureDevice(), ...Object.fromEntries(ticked) });
      },
      "primary",
    );
    const decline = button(words.consent.decline, () => resolve({ agree: false }));
    const { sight } = view.state.study;
    const told = sight === "" ? null : h("p", { class: "sight" }, sight);
    const labels = ticks.map(({ label }) => label);
    shell.show(sheet(view, told, copy, ...labels, actions(agree, decline)));
  });
}

/** What has a consent of its own: unticked at first, and nothing waits for it. */
function tick({ id, prompt }: Question): { id: string; box: HTMLInputElement; label: HTMLElement } {
  const box = h("input", { type: "checkbox", name: id });
  return { id, box, label: h("label", { class: "option tick" }, box, h("span", {}, prompt)) };
}

/** The very text that was shown, as a file of its own. */
export function consentFile(view: GateView): string {
  const head = h("title", {}, view.state.study.title).outerHTML;
  const { code, direction } = view.desk.words;
  const ticks = view.page.questions.map(({ prompt }) => h("p", {}, `☐ ${prompt}`).outerHTML).join("");
  return `<!doctype html><html lang="${code}" dir="${direction}"><meta charset="utf-8">${head}<body>${view.page.html}${ticks}</body></html>`;
}

function download(view: GateView): void {
  const url = URL.createObjectURL(new Blob([consentFile(view)], { type: "text/html" }));
  h("a", { href: url, download: view.desk.words.consent.file }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
