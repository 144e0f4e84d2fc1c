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

/** The first look needs nobody; if the server wants another screen, its text says so until it fits. Null: gives up. */
export function devicePage(view: GateView): Promise<Value | null> {
  if (view.notice === null) {
    view.desk.shell.show(h("section", { class: "wait" }, h("p", {}, view.desk.words.device.checking)));
    return Promise.resolve(measureDevice());
  }
  return askAgain(view);
}

function askAgain(view: GateView): Promise<Value | null> {
  const { words, shell } = view.desk;
  const size = h("p", { class: "quiet", "aria-live": "polite" });
  const say = (): void => {
    size.textContent = words.device.size(window.innerWidth, window.innerHeight);
  };
  return new Promise((resolve) => {
    const done = (value: Value | null): void => {
      window.removeEventListener("resize", say);
      resolve(value);
    };
    const again = button(words.device.again, () => done(measureDevice()), "primary");
    const cannot = button(words.device.cannot, () => done(null));
    say();
    window.addEventListener("resize", say);
    shell.show(sheet(view, size, actions(again, cannot)));
  });
}
