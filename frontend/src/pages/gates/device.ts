import type { GateView } from "../../frame/page-context";
import { button, h } from "../../frame/dom";
import type { Value } from "../../server/model";
import { handover, laterPage } from "../handover";
import { actions, sheet } from "./reading";

export function measureDevice(view: Window = window): Value {
  return {
    width_px: view.innerWidth,
    height_px: view.innerHeight,
    pixel_ratio: view.devicePixelRatio || 1,
    touch: view.navigator.maxTouchPoints > 0,
    webdriver: view.navigator.webdriver === true,
    language: view.navigator.language,
  };
}

/** The first look needs nobody; if the server wants another screen, its text says so until it fits. Null: gives up. */
export function devicePage(view: GateView): Promise<Value | null> {
  if (view.notice === null) {
    view.desk.shell.show(h("section", { class: "wait" }, h("p", {}, view.desk.words.device.checking)));
    return Promise.resolve(measureDevice());
  }
  return askAgain(view);
}

async function askAgain(view: GateView): Promise<Value | null> {
  for (;;) {
    const answer = await ask(view);
    if (answer !== "later") return answer;
    await laterPage(view);
  }
}

/** The window as it is now; null: the task goes back for good; "later": another time, on another device. */
function ask(view: GateView): Promise<Value | null | "later"> {
  const { words, shell } = view.desk;
  const size = h("p", { class: "quiet", "aria-live": "polite" });
  const say = (): void => {
    size.textContent = words.device.size(window.innerWidth, window.innerHeight);
  };
  return new Promise((resolve) => {
    const done = (value: Value | null | "later"): void => {
      window.removeEventListener("resize", say);
      resolve(value);
    };
    const again = button(words.device.again, () => done(measureDevice()), "primary");
    const later = button(words.device.not_now, () => done("later"));
    const never = button(words.device.give_back, () => done(null));
    say();
    window.addEventListener("resize", say);
    shell.show(sheet(view, size, actions(again), handover(view), actions(later, never)));
  });
}
