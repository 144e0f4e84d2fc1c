/** Pages for what cannot go on: exact, calm, with the way out. */
import type { Problem } from "../server/api";
import type { Desk } from "../frame/page-context";
import { button, h } from "../frame/dom";
import type { Exit } from "../server/model";
import type { Words } from "../words";
import { isFramed, leadsBack, leaveBy } from "./finish";

type Known = keyof Words["errors"];

const SAID_BY_SERVER = ["not_admitted", "taken_part"];
const NOT_LET_IN = ["not_admitted", "taken_part", "full", "no_study", "bad_address"];

/** The code of a page that lacks what the server asks it to show; the problem's message is the kind's name. */
export const CANNOT_SHOW = "cannot_show";

/** Our words for a server's code; its own where we have none. */
export function explain(words: Words, problem: Problem): { title: string; text: string } {
  if (problem.code in words.errors) {
    const known = words.errors[problem.code as Known];
    // Why somebody is not let in has many reasons; the server names the one, in the study's language.
    return SAID_BY_SERVER.includes(problem.code) && problem.message
      ? { title: known.title, text: problem.message }
      : known;
  }
  if (problem.code === CANNOT_SHOW)
    return { title: words.errors.unknown.title, text: words.trouble.cannot_show(problem.message) };
  const text = [problem.message, problem.remedy].filter(Boolean).join(" ");
  return { title: words.errors.unknown.title, text: text || words.errors.unknown.text };
}

/** A refusal that ends this page. `giveUp` ends the study where the fault is ours and stays. */
export function troublePage(
  desk: Pick<Desk, "shell" | "words">,
  problem: Problem,
  contact: string,
  giveUp?: () => void,
): void {
  const { words, shell } = desk;
  const { title, text } = explain(words, problem);
  const isElsewhere = problem.code === "no_session";
  const isOurs = !(problem.code in words.errors);
  shell.tools(null);
  shell.line("");
  shell.progress(null);
  shell.show(
    h(
      "section",
      { class: "sheet short", role: "alert", "data-page": "trouble", "data-code": problem.code },
      h("h1", {}, title),
      h("p", {}, text),
      isOurs ? h("p", {}, words.trouble.nothing_lost) : null,
      isOurs ? h("p", {}, contact ? words.trouble.write_to(contact) : words.trouble.write_to_somebody) : null,
      h(
        "div",
        { class: "actions" },
        isElsewhere || isOurs
          ? button(
              isElsewhere ? words.trouble.here : words.trouble.reload,
              () => location.reload(),
              "primary",
            )
          : null,
        wayOut(words, problem.exit),
        isOurs && giveUp ? button(words.trouble.give_up, giveUp) : null,
      ),
      isFramed() && !leadsBack(problem.exit) && NOT_LET_IN.includes(problem.code)
        ? h("p", {}, words.finish.give_back)
        : null,
    ),
  );
}

function wayOut(words: Words, exit: Exit | null): HTMLElement | null {
  if (exit === null || !leadsBack(exit)) return null;
  return button(words.finish.back, () => leaveBy(exit), "primary");
}
