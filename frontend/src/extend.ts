/** What a lab's own plugins may use, as `legible`: see "A trial kind" and "A gate" in docs/adding.md. */
export { button, h } from "./frame/dom";
export type { GateView, Notice } from "./frame/page-context";
export type { AnyTrial, Choice, Media, Side, Text, Token, Value } from "./server/model";
export { questionForm } from "./pages/gates/form";
export type { Gate } from "./pages/gates/gate";
export { actions, sheet } from "./pages/gates/reading";
export { Board, type Answer, type Pressed } from "./plugins/board";
export { CHOICE_PARAMETERS, choicePlugin, type Asked, type Choosing } from "./plugins/choose";
export { CannotShow, type Kind, type Shown, type TrialView } from "./plugins/kind";
export { dataOf, PRESS_DATA, SHOWN_PARAMETERS, simulatePress } from "./plugins/press";
export { stimulus, type Stimulus } from "./plugins/stimulus";
