import type { GateView } from "../desk";
import { button, h } from "../dom";
import type { Value } from "../model";
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

/** The first look needs nobody; if the server wants another screen, its text says so until it fits. */
export function devicePage(view: GateView): Promise<Value> {
  if (view.notice === null) {
    view.desk.shell.show(h("section", { class: "wait" }, h("p", {}, view.desk.words.device.checking)));
    return Promise.resolve(measureDevice());
  }
  return askAgain(view);
}

function askAgain(view: GateView): Promise<Value> {
  const { words, shell } = view.desk;
  const size = h("p", { class: "quiet", "aria-live": "polite" });
  const say = (): void => {
    size.textContent = words.device.size(window.innerWidth, window.innerHeight);
  };
  return new Promise((resolve) => {
    const again = button(
      words.device.again,
      () => {
        window.removeEventListener("resize", say);
        resolve(measureDevice());
      },
      "primary",
    );
    say();
    window.addEventListener("resize", say);
    shell.show(sheet(view, size, actions(again)));
  });
}
