/** Help and leaving, over any page; answer keys rest while one is open. */
import type { Desk } from "../frame/page-context";
import { button, h, titledHtml } from "../frame/dom";
import type { Study } from "../server/model";
import { keysBox } from "./key-choice";
import { payLines } from "./pay";

/** How long the amount waits for answers that are still on their way. */
const PATIENCE_MS = 2_000;

export async function openHelp(desk: Desk, study: Study): Promise<void> {
  const { words } = desk;
  const { instructions } = study;
  const prose = instructions === "" ? h("p", {}, words.help.short) : titledHtml(instructions);
  const title = prose.querySelector("h1") ? null : h("h1", {}, words.help.title);
  await dialog((close) => [
    title,
    prose,
    keysBox(desk, study.keys),
    h("div", { class: "actions" }, button(words.help.close, close, "primary")),
  ]);
}

/** The reason that the server pays in full, if it is told in time. */
const CANNOT_SEE = "cannot_see";

export interface Leaving {
  reason: string;
  erase: boolean;
}

/** Asks once, for a study whose pictures must be seen also about that; null means the person stays. */
export async function askToLeave(desk: Desk, sight: string): Promise<Leaving | null> {
  const { words } = desk;
  const erase = h("input", { type: "checkbox", name: "erase" });
  const pay = h("div", { class: "pay", "aria-live": "polite" });
  const offered = Object.entries(words.leave.reasons).filter(([value]) => value !== CANNOT_SEE || sight !== "");
  const reasons = offered.map(([value, text]) => {
    const change = (): void => void tellPay(desk, pay, value);
    const input = h("input", { type: "radio", name: "reason", value, checked: value === "unsaid", change });
    return { input, label: h("label", { class: "option" }, input, h("span", {}, text)) };
  });
  void tellPay(desk, pay, "unsaid");
  let leaving: Leaving | null = null;
  await dialog((close) => [
    h("h1", {}, words.leave.title),
    h("p", {}, words.leave.text),
    pay,
    h(
      "fieldset",
      { class: "question" },
      h("legend", {}, words.leave.reason),
      ...reasons.map(({ label }) => label),
    ),
    h("label", { class: "option" }, erase, h("span", {}, words.leave.erase)),
    h(
      "div",
      { class: "actions" },
      button(words.leave.stay, close, "primary"),
      button(
        words.leave.confirm,
        () => {
          const reason = reasons.find(({ input }) => input.checked)?.input.value ?? "unsaid";
          leaving = { reason, erase: erase.checked };
          close();
        },
        "danger",
      ),
    ),
  ]);
  return leaving;
}

/** A question with two answers; true only for the button that confirms. */
export async function confirm(title: string, text: string, yes: string, no: string): Promise<boolean> {
  let isSure = false;
  await dialog((close) => [
    h("h1", {}, title),
    h("p", {}, text),
    h(
      "div",
      { class: "actions" },
      button(no, close, "primary"),
      button(
        yes,
        () => {
          isSure = true;
          close();
        },
        "danger",
      ),
    ),
  ]);
  return isSure;
}

/** What leaving now would pay, once the answers that wait here have reached the server, or could not. */
async function tellPay(desk: Desk, box: HTMLElement, reason: string): Promise<void> {
  const { words } = desk;
  box.dataset["reason"] = reason;
  if (desk.outbox.count > 0) await Promise.race([desk.outbox.flush(), patience()]);
  const outcome = await desk.api.pay(reason);
  // Another reason was chosen meanwhile: its own answer is on the way.
  if (box.dataset["reason"] !== reason) return;
  const sentences = outcome.ok ? outcome.value.pay : [words.leave.pay_unknown];
  box.replaceChildren(...(sentences.length === 0 ? [] : [h("h2", {}, words.leave.pay), ...payLines(sentences)]));
}

function patience(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PATIENCE_MS));
}

/** During trials the focus goes to the stage, so that Space answers the trial and does not open the help again. */
function comeBack(before: Element | null): void {
  const stage = document.querySelector<HTMLElement>(".stage");
  const next = stage ?? before;
  if (next instanceof HTMLElement && next.isConnected) next.focus({ preventScroll: true });
}

function dialog(content: (close: () => void) => (Node | null)[]): Promise<void> {
  return new Promise((resolve) => {
    const before = document.activeElement;
    const box = h("dialog", { class: "dialog" });
    const close = (): void => {
      box.remove();
      comeBack(before);
      resolve();
    };
    box.addEventListener("cancel", close);
    box.addEventListener("close", close);
    box.append(...content(close).filter((node): node is Node => node !== null));
    const heading = box.querySelector("h1");
    heading?.setAttribute("id", "dialog-title");
    // A long text is read from its top: without this the focus, and the text with it, goes to the first control.
    heading?.setAttribute("tabindex", "-1");
    heading?.setAttribute("autofocus", "");
    box.setAttribute("aria-labelledby", "dialog-title");
    document.body.append(box);
    box.showModal();
  });
}
