import type { GateView } from "../frame/page-context";
import { h } from "../frame/dom";
import { questionForm } from "./gates/form";
import { sheet } from "./gates/reading";

/** A last free word; null where nothing was written. */
export function commentPage(view: GateView): Promise<string | null> {
  const { words, shell } = view.desk;
  const question = {
    id: "comment",
    kind: "text" as const,
    prompt: words.comment.prompt,
    required: false,
    choices: [],
    image: null,
    text: null,
    low: null,
    high: null,
    label: null,
    min: null,
    max: null,
    max_length: null,
  };
  return new Promise((resolve) => {
    const form = questionForm([question], words, words.comment.finish, view.notice?.fields ?? {}, (value) => {
      resolve(typeof value["comment"] === "string" ? value["comment"] : null);
    });
    shell.show(sheet(view, h("p", { class: "stored" }, words.finish.stored(view.state.next)), form));
  });
}
