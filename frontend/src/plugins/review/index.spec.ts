import { pressKey, simulateTimeline, startTimeline } from "@jspsych/test-utils";
import { find, media, noDraft, until } from "../../cast";
import type { Choice, ReviewTrial } from "../../server/model";
import { de, en } from "../../words";
import { CannotShow } from "../kind";
import { review, ReviewPlugin } from ".";

const JUDGED: Choice[] = [
  { value: "reject", text: "Reject", key: "f" },
  { value: "accept", text: "Accept", key: "j" },
];

function trial(changes: Record<string, unknown> = {}) {
  const picture = (shown: { alt: string; url: string }) => Object.assign(new Image(), { alt: shown.alt, title: shown.url });
  const content = { image: media("p"), mark: media("m"), text: null, answer: "7", choices: JUDGED };
  return { type: ReviewPlugin, words: en, picture, reservoir: "off", min_view_ms: 0, ...content, ...changes };
}

type Row = { value: { accept: boolean }; rt_ms: number; context: Record<string, unknown> };

async function finished(getData: () => { count: () => number; values: () => unknown[] }): Promise<Row> {
  await until(() => getData().count() === 1);
  return getData().values()[0] as Row;
}

const isActive = (): boolean => !find(".answer").hasAttribute("aria-disabled");

beforeEach(() => document.body.replaceChildren());

test.each([
  ["j", true, "right"],
  ["f", false, "left"],
])("the key %s says that the answer is accepted: %s, on the %s, where the study put it", async (key, accept, side) => {
  const { getData } = await startTimeline([trial()]);
  await until(isActive);
  await pressKey(key);
  const { value, context } = await finished(getData);
  expect(value).toEqual({ accept });
  expect(context).toMatchObject({ input: "keyboard", key, side });
  expect(context["onset_ms"]).toBeGreaterThan(0);
});

test("picture, answer and region are there from the first moment on", async () => {
  await startTimeline([trial()]);
  expect(find(".ask").textContent).toBe("Answer: 7");
  expect([...document.querySelectorAll("img")].map((image) => image.title)).toEqual(["/m/p", "/m/m"]);
  expect([...document.querySelectorAll("figcaption")].map((caption) => caption.textContent)).toEqual(["Picture", "Marked"]);
});

test("without a region its place is there and empty, and nothing is said of it", async () => {
  await startTimeline([trial({ mark: null })]);
  const places = [...document.querySelectorAll(".pictures.beside > .place")];
  expect(places.map((place) => place.className)).toEqual(["place", "place empty"]);
  expect(places[1]!.childNodes).toHaveLength(0);
});

test("what is seen and what is heard is the same for every region and answer but for the two themselves", async () => {
  const heard: string[] = [];
  await startTimeline([trial({ announce: (text: string) => heard.push(text) })]);
  await until(isActive);
  expect(heard).toEqual(["Task", "Answer: 7. You can answer now."]);
});

test("a text is judged as it stands", async () => {
  const text = { tokens: [{ text: "It is ", shade: null }, { text: "slow", shade: null }] };
  await startTimeline([trial({ image: null, mark: null, text, answer: "negative" })]);
  expect([find(".text p").textContent, find(".ask").textContent]).toEqual(["It is slow", "Answer: negative"]);
});

test("the wire's content becomes its parameters: nobody who has decided is held up", () => {
  const content = { image: media("p"), mark: null, text: null, answer: "7", choices: JUDGED };
  const wire: ReviewTrial = { id: "t", position: 0, kind: "review", phase: "test", content };
  const view = { study: undefined as never, examples: [], draft: noDraft };
  expect(review.parameters(wire, view)).toEqual({ ...content, examples: [], reservoir: "off", min_view_ms: 0 });
  const odd = { ...content, choices: [...JUDGED, { value: "maybe", text: "Maybe", key: "k" }] };
  expect(() => review.parameters({ ...wire, content: odd }, view)).toThrow(CannotShow);
  expect([review.place?.(en, 2, 26), review.place?.(de, 2, 26)]).toEqual(["Task 2 of 26", "Aufgabe 2 von 26"]);
});

test.each(["data-only", "visual"] as const)("it simulates, %s", async (mode) => {
  const { getData } = await simulateTimeline([trial()], mode);
  expect(typeof (await finished(getData)).value.accept).toBe("boolean");
});
