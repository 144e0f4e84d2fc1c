import type { GateView } from "../../frame/page-context";
import { button } from "../../frame/dom";
import type { Value } from "../../server/model";
import { keysBox } from "../key-choice";
import { exampleCard } from "./practice";
import { actions, sheet } from "./reading";

export function instructionsPage(view: GateView): Promise<Value> {
  const { desk, page, state } = view;
  const cards = page.questions.filter((question) => question.kind === "example");
  return new Promise((resolve) => {
    const next = button(desk.words.next, () => resolve({ read: true }), "primary");
    desk.shell.show(sheet(view, ...cards.map((card) => exampleCard(desk, card)), keysBox(desk, state.study.keys), actions(next)));
  });
}
