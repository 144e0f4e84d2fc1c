import type { GateView } from "../../frame/page-context";
import { h } from "../../frame/dom";
import type { Value } from "../../server/model";
import { questionForm } from "./form";
import { sheet } from "./reading";

/** Comprehension questions; the server judges, the page only knows that it came back and how many tries are left. */
export function quizPage(view: GateView): Promise<Value> {
  const { words, shell } = view.desk;
  const left = view.state.attempts_left;
  return new Promise((resolve) => {
    shell.show(
      sheet(
        view,
        left !== null && (view.notice || left === 1)
          ? h("p", { class: "quiet" }, words.attempts_left(left))
          : null,
        questionForm(view.page.questions, words, words.submit, view.notice?.fields ?? {}, resolve),
      ),
    );
  });
}
