import { desk, find, json, page, state, until } from "../../cast";
import type { GateView } from "../../frame/page-context";
import { cssPxPerMm, distanceOf, screenPage } from "./screen";

async function view(distance: "off" | "blind_spot" = "off"): Promise<GateView> {
  const study = { ...state().study, presentation: { ...state().study.presentation, distance } };
  const made = await desk(async () => json(200, {}));
  return { desk: made, state: state({ study }), page: page("screen"), notice: null };
}

const size = (px: number): void => {
  const slider = find<HTMLInputElement>("input[type=range]");
  slider.value = String(px);
  slider.dispatchEvent(new Event("input"));
};

test("a card of 323.53 px is that of a screen with 96 px per inch", () => {
  expect(cssPxPerMm(323.528)).toBeCloseTo(96 / 25.4, 4);
});

test("a spot 136.85 mm away is seen from 57 cm", () => {
  // tan(13.5 degrees) = 0.240079, from a table.
  expect(distanceOf(570 * 0.240079)).toBeCloseTo(570, 1);
});

test("the card's size is sent in the display's own pixels", async () => {
  vi.stubGlobal("devicePixelRatio", 2);
  const sent = screenPage(await view());
  size(400);
  find(".button.primary").click();
  expect(await sent).toEqual({ px_per_mm: 9.346, distance_mm: null, tries: [] });
  vi.unstubAllGlobals();
});

test("the buttons change it by a pixel, and a size that nobody touched is not taken", async () => {
  const sent = screenPage(await view());
  find(".button.primary").click();
  expect(find(".complaint").textContent).toContain("change the size");
  const before = find<HTMLInputElement>("input[type=range]").valueAsNumber;
  document.querySelectorAll<HTMLElement>(".step")[1]!.click();
  expect(find<HTMLInputElement>("input[type=range]").valueAsNumber).toBe(before + 1);
  find(".button.primary").click();
  expect((await sent)["px_per_mm"]).toBeCloseTo((before + 1) / 85.6, 3);
});

test("without a card everything is unknown, and nothing more is asked", async () => {
  const sent = screenPage(await view("blind_spot"));
  document.querySelectorAll<HTMLElement>(".actions .button")[1]!.click();
  expect(await sent).toEqual({ px_per_mm: null, distance_mm: null, tries: [] });
});

test("the distance is the mean of five tries, and an unlikely one is not offered", async () => {
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockImplementation(function (this: HTMLElement) {
    return this.classList.contains("spot-track") ? 900 : 24;
  });
  let frames: FrameRequestCallback[] = [];
  vi.stubGlobal("requestAnimationFrame", (act: FrameRequestCallback) => frames.push(act));
  vi.stubGlobal("cancelAnimationFrame", () => (frames = []));
  const moveFor = (time_ms: number): void => {
    for (const at_ms of [0, time_ms]) frames.splice(0).forEach((act) => act(5000 + at_ms));
  };
  const space = (): boolean => document.dispatchEvent(new KeyboardEvent("keydown", { key: " " }));
  const sent = screenPage(await view("blind_spot"));
  size(324);
  find(".button.primary").click();
  await until(() => document.querySelector(".spot-track"));
  // From 15 mm on at 30 mm per second: after 0.1 s 18 mm, which is 7.5 cm; after 4 s 135 mm, which is 56.2 cm.
  for (const time_ms of [100, 100, 100, 100, 100]) space(), moveFor(time_ms), space();
  await until(() => find("main").textContent?.includes("could not be told"));
  find(".button.primary").click();
  await until(() => document.querySelector(".spot-track"));
  for (const time_ms of [4000, 4000, 4000, 3900, 4100]) space(), moveFor(time_ms), space();
  await until(() => find("main").textContent?.includes("56 cm"));
  find(".button.primary").click();
  expect(await sent).toMatchObject({ px_per_mm: 3.785, distance_mm: 562, tries: [75, 75, 75, 75, 75, 562, 562, 562, 550, 575] });
  vi.unstubAllGlobals();
});

test("who cannot do it goes on with the size alone", async () => {
  const sent = screenPage(await view("blind_spot"));
  size(324);
  find(".button.primary").click();
  await until(() => document.querySelector(".spot-track"));
  document.querySelectorAll<HTMLElement>(".actions .button")[1]!.click();
  expect(await sent).toMatchObject({ px_per_mm: 3.785, distance_mm: null, tries: [] });
});
