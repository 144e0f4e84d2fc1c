import { desk, find, json } from "../cast";
import { FullScreen } from "./fullscreen";

let full: Element | null;
let requests: number;
const log: [string, unknown][] = [];

function set(element: Element | null): void {
  full = element;
  document.dispatchEvent(new Event("fullscreenchange"));
}

/** A browser that allows it, forbids it, or has no such thing. */
function browser(allows: "allows" | "forbids" | "lacks"): void {
  Object.defineProperty(document, "fullscreenEnabled", { value: allows !== "lacks", configurable: true });
  Object.defineProperty(document, "fullscreenElement", { get: () => full, configurable: true });
  document.exitFullscreen = async () => set(null);
  document.documentElement.requestFullscreen = async () => {
    requests += 1;
    if (allows === "forbids") throw new TypeError("not allowed");
    set(document.documentElement);
  };
}

async function made(): Promise<FullScreen> {
  [full, requests] = [null, 0];
  log.length = 0;
  const { shell } = await desk(async () => json(200, {}));
  return new FullScreen(shell, { add: (kind, data) => void log.push([kind, data]) });
}

const stop = (): AbortSignal => new AbortController().signal;
const offer = (): HTMLElement | null => document.querySelector(".tools .tool");

test("it fills the screen by a press, offers the way back, and gives the screen back", async () => {
  browser("allows");
  const screen = await made();
  const asked = screen.offer(stop());
  find(".button.primary").click();
  await asked;
  expect(offer()).toBeNull();
  set(null);
  expect(offer()?.textContent).toBe("Full screen");
  offer()!.click();
  await Promise.resolve();
  expect([requests, offer()]).toEqual([2, null]);
  screen.leave();
  expect(full).toBeNull();
  const kinds = log.map(([kind]) => kind);
  // Its own leaving is no exit.
  expect(kinds).toEqual(["fullscreen_entered", "fullscreen_left", "fullscreen_entered"]);
});

test.each([
  ["forbids", "failed"],
  ["lacks", "unavailable"],
] as const)("a browser that %s it holds nobody up", async (allows, reason) => {
  browser(allows);
  const screen = await made();
  const asked = screen.offer(stop());
  document.querySelector<HTMLElement>(".button.primary")?.click();
  await asked;
  expect(log).toEqual([["fullscreen_refused", { reason }]]);
});

test("who declines is asked once, and who leaves meanwhile is not kept waiting", async () => {
  browser("allows");
  const screen = await made();
  const asked = screen.offer(stop());
  document.querySelectorAll<HTMLElement>(".actions .button")[1]!.click();
  await asked;
  await screen.offer(stop());
  expect(log).toEqual([["fullscreen_refused", { reason: "declined" }]]);
  const other = await made();
  const leaving = new AbortController();
  const left = other.offer(leaving.signal);
  leaving.abort();
  await left;
  expect(log).toEqual([]);
});
