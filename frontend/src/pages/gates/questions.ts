import type { GateView } from "../../frame/page-context";
import type { Value } from "../../server/model";
import { questionForm } from "./form";
import { sheet } from "./reading";

export function questionsPage(view: GateView): Promise<Value> {
  const { words, shell } = view.desk;
  return new Promise((resolve) => {
    const given = view.notice?.fields ?? {};
    shell.show(sheet(view, questionForm(view.page.questions, words, words.next, given, resolve)));
  });
}
