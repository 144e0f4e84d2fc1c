/** The end: answers stored, the code large, the way back to the platform. */
import type { Desk } from "../frame/page-context";
import { button, h, serverHtml, untitledHtml } from "../frame/dom";
import type { Exit } from "../server/model";
import { copyRow } from "./copy";
import { payLines } from "./pay";

export interface Ending {
  title: string;
  html: string | null;
  /** How many answers the server has confirmed; null where that is not the point. */
  stored: number | null;
  exit: Exit | null;
  /** What is paid and how, in the server's sentences; none where the study pays nothing. */
  pay: string[];
  /** Has the answers removed after all; null where that is not asked. Tells whether it is done. */
  remove: (() => Promise<boolean>) | null;
  /** Stores whether the person may be invited to another part; null where that is not asked. Tells whether it is done. */
  invite: ((agree: boolean) => Promise<boolean>) | null;
  /** What the colour check showed, as the server's HTML; null where there was none. Yields null if it did not come. */
  check: (() => Promise<string | null>) | null;
}

const RETURN_S = 15;
const RETURN_AFTER_READING_S = 60;

export function finishPage(desk: Desk, ending: Ending, go: (exit: Exit) => void = leaveBy): void {
  const { words, shell } = desk;
  const prose = ending.html ? untitledHtml(ending.html) : null;
  const wayBack = leadsBack(ending.exit) ? ending.exit : null;
  const code = completionCode(ending.exit);
  const back = wayBack ? returnBox(desk, wayBack, prose ? RETURN_AFTER_READING_S : RETURN_S, go) : null;
  // Who answers here or reads on is not taken away from it.
  const stay = (): void => back?.stay();
  shell.line("");
  shell.progress(ending.stored === null ? null : 1);
  shell.tools(null);
  shell.show(
    h(
      "section",
      { class: "sheet", "data-page": "finish" },
      h("h1", {}, ending.title),
      ending.stored === null ? null : h("p", { class: "stored" }, words.finish.stored(ending.stored)),
      ending.pay.length === 0 ? null : h("div", { class: "pay" }, ...payLines(ending.pay)),
      code === null ? null : codeBox(desk, code),
      back?.box ?? null,
      prose,
      ending.remove === null ? null : removeBox(desk, ending.remove, ending.pay.length > 0),
      ending.invite === null ? null : inviteBox(desk, ending.invite, stay),
      ending.check === null ? null : checkBox(desk, ending.check, stay),
      wayBack ? null : h("p", {}, isFramed() ? words.finish.give_back : words.finish.close),
    ),
  );
}

export function leadsBack(exit: Exit | null): boolean {
  return exit !== null && exit.method !== "none" && exit.url !== "";
}

/** Inside a platform's frame there is no tab to close: the person leaves by the platform's own buttons. */
export function isFramed(view: Window = window): boolean {
  return view.parent !== view;
}

/** The code that a person may have to type on the platform, if the exit carries one. */
export function completionCode(exit: Exit | null): string | null {
  if (exit === null) return null;
  if (exit.fields["code"]) return exit.fields["code"];
  if (!exit.url || !URL.canParse(exit.url)) return null;
  return new URL(exit.url).searchParams.get("cc");
}

function codeBox(desk: Desk, code: string): HTMLElement {
  const { words } = desk;
  return h(
    "div",
    { class: "code-box" },
    h("h2", {}, words.finish.code),
    copyRow(words, code, words.finish.copy, "code"),
  );
}

/** A study that disclosed something asks again whether the answers may be used, and says what silence means. */
function removeBox(desk: Desk, remove: () => Promise<boolean>, isPaid: boolean): HTMLElement {
  const { words } = desk;
  const same = isPaid ? ` ${words.finish.pay_same}` : "";
  const said = h("p", { "aria-live": "polite" }, words.finish.use_question + same);
  const agree = button(words.finish.use, () => settle(words.finish.used));
  const refuse = button(words.finish.remove, () => {
    refuse.disabled = true;
    void remove().then((done) => {
      refuse.disabled = false;
      if (done) settle(words.finish.removed + same);
      else said.textContent = words.finish.remove_failed;
    });
  });
  const choices = h("div", { class: "actions" }, agree, refuse);
  const settle = (text: string): void => {
    said.textContent = text;
    choices.remove();
  };
  return h("div", { class: "remove" }, h("h2", {}, words.finish.use_title), said, choices);
}

/** The same question for everybody, in words that tell nothing. */
function inviteBox(desk: Desk, invite: (agree: boolean) => Promise<boolean>, stay: () => void): HTMLElement {
  const { words } = desk;
  const said = h("p", { "aria-live": "polite" }, words.finish.invite_question);
  const answer = (agree: boolean): void => {
    stay();
    void invite(agree).then((done) => {
      said.textContent = done ? words.finish[agree ? "invited" : "not_invited"] : words.finish.invite_failed;
      if (done) choices.remove();
    });
  };
  const yes = button(words.finish.invite_yes, () => answer(true));
  const no = button(words.finish.invite_no, () => answer(false));
  const choices = h("div", { class: "actions" }, yes, no);
  return h("div", { class: "remove invite" }, h("h2", {}, words.finish.invite_title), said, choices);
}

/** Told only to who asks. */
function checkBox(desk: Desk, check: () => Promise<string | null>, stay: () => void): HTMLElement {
  const { words } = desk;
  const said = h("div", { "aria-live": "polite" });
  const ask = button(words.finish.check, () => {
    stay();
    void check().then((html) => {
      if (html === null) return said.replaceChildren(h("p", {}, words.finish.check_failed));
      said.replaceChildren(serverHtml(html));
      ask.remove();
    });
  });
  return h("div", { class: "remove check" }, h("h2", {}, words.finish.check_title), said, h("div", { class: "actions" }, ask));
}

interface Return {
  box: HTMLElement;
  /** Stops the clock that leads back by itself. */
  stay: () => void;
}

function returnBox(desk: Desk, exit: Exit, seconds: number, go: (exit: Exit) => void): Return {
  const { words } = desk;
  // Where work is handed in by a form, "return" would sound like giving it back.
  const isForm = exit.method === "POST";
  const automatic = isForm ? words.finish.hand_in_automatic : words.finish.automatic;
  const clock = h("p", { class: "quiet" }, automatic(seconds));
  let left_s = seconds;
  const timer = setInterval(() => {
    left_s -= 1;
    clock.textContent = automatic(Math.max(0, left_s));
    if (left_s > 0) return;
    clearInterval(timer);
    go(exit);
  }, 1_000);
  const stop = (text: string): void => {
    clearInterval(timer);
    clock.textContent = text;
    stay.remove();
  };
  const stay = button(words.finish.stay, () => stop(words.finish.stayed));
  const back = button(
    isForm ? words.finish.hand_in : words.finish.back,
    () => {
      clearInterval(timer);
      go(exit);
    },
    "primary",
  );
  const box = h("div", { class: "return" }, h("div", { class: "actions" }, back, stay), clock);
  return { box, stay: () => stop(words.finish.stayed) };
}

/** A platform is left by a link or by a form that it receives itself. */
export function leaveBy(exit: Exit): void {
  if (!exit.url) return;
  if (exit.method === "GET") return location.assign(withFields(exit.url, exit.fields));
  const fields = Object.entries(exit.fields).map(([name, value]) =>
    h("input", { type: "hidden", name, value }),
  );
  const form = h("form", { method: "post", action: exit.url, hidden: true }, ...fields);
  document.body.append(form);
  form.submit();
}

function withFields(url: string, fields: Record<string, string>): string {
  const address = new URL(url, location.href);
  for (const [name, value] of Object.entries(fields)) address.searchParams.set(name, value);
  return address.href;
}
