import { pressKey, simulateTimeline, startTimeline } from "@jspsych/test-utils";
import { choices, find, media, noDraft, until } from "../../cast";
import type { DecideTrial } from "../../server/model";
import { de, en } from "../../words";
import { CannotShow } from "../kind";
import { decide, DecidePlugin } from ".";

const FIRST = { step: "first", image: media("i"), explanation: null, earlier: null, advice: null, choices };
const SECOND = { ...FIRST, step: "second", earlier: "Husky" };
const ADVISED = { ...SECOND, advice: "Wolf", explanation: media("x") };

function trial(changes: Record<string, unknown> = {}) {
  const picture = (shown: { alt: string; url: string }) => Object.assign(new Image(), { alt: shown.alt, title: shown.url });
  return { type: DecidePlugin, words: en, picture, reservoir: "off", min_view_ms: 0, ...FIRST, ...changes };
}

type Row = { value: { choice: string }; context: Record<string, unknown> };

async function finished(getData: () => { count: () => number; values: () => unknown[] }): Promise<Row> {
  await until(() => getData().count() === 1);
  return getData().values()[0] as Row;
}

const isActive = (): boolean => !find(".answer").hasAttribute("aria-disabled");
const lines = (): (string | null)[] => [...document.querySelectorAll(".stated-now .stated-line")].map((line) => line.textContent);
const places = (): string[] =>
  [...document.querySelectorAll(".pictures.beside > .place")].map((place) => place.querySelector("img")?.title ?? "");

beforeEach(() => document.body.replaceChildren());

test("the first step shows the picture and asks; the place beside it is empty", async () => {
  await startTimeline([trial()]);
  expect(lines()).toEqual([en.trial.question]);
  expect(places()).toEqual(["/m/i", ""]);
});

test("the second step names the first answer and the advice, and the explanation stands beside the picture", async () => {
  await startTimeline([trial(ADVISED)]);
  expect(lines()).toEqual(["Your first answer: Husky", "The machine's answer: Wolf", en.trial.question]);
  expect(places()).toEqual(["/m/i", "/m/x"]);
});

test("a second look without advice names the first answer alone; advice without an explanation keeps its place empty", async () => {
  await startTimeline([trial(SECOND)]);
  expect(lines()).toEqual(["Your first answer: Husky", en.trial.question]);
  document.body.replaceChildren();
  await startTimeline([trial({ ...ADVISED, explanation: null })]);
  expect(lines()).toHaveLength(3);
  expect(places()).toEqual(["/m/i", ""]);
});

test("both steps keep the room of the longest that could be named, which nobody sees or hears", async () => {
  const rooms = async (given: Record<string, unknown>): Promise<(string | null)[]> => {
    document.body.replaceChildren();
    await startTimeline([trial(given)]);
    const found = [...document.querySelectorAll<HTMLElement>(".stated > .stated-room")];
    expect(found.every((room) => room.getAttribute("aria-hidden") === "true")).toBe(true);
    return found.map((room) => room.textContent);
  };
  const first = await rooms(FIRST);
  expect(first).toHaveLength(2);
  expect(first[0]).toContain("Your first answer: Husky");
  for (const given of [SECOND, ADVISED]) expect(await rooms(given)).toEqual(first);
});

test("a screen reader hears the step, what is named, and the question", async () => {
  const heard: string[] = [];
  const announce = (text: string): number => heard.push(text);
  await startTimeline([trial({ announce })]);
  await until(() => heard.length === 2);
  document.body.replaceChildren();
  await startTimeline([trial({ ...ADVISED, announce })]);
  await until(() => heard.length === 4);
  expect(heard).toEqual([
    `First decision. ${en.trial.question}`,
    en.trial.ready,
    `Second decision. Your first answer: Husky. The machine's answer: Wolf. ${en.trial.question}`,
    en.trial.ready,
  ]);
});

test.each([
  ["f", "husky", "left"],
  ["j", "wolf", "right"],
])("the key %s decides for %s", async (key, value, side) => {
  const { getData } = await startTimeline([trial(ADVISED)]);
  await until(isActive);
  await pressKey(key);
  const row = await finished(getData);
  expect(row.value).toEqual({ choice: value });
  expect(row.context).toMatchObject({ input: "keyboard", key, side });
});

test("markup in a label is text", async () => {
  await startTimeline([trial({ ...SECOND, earlier: "<b>x</b>" })]);
  expect(find(".stated-now .label").textContent).toBe("<b>x</b>");
  expect(find(".stated-now .label").children).toHaveLength(0);
});

test("the wire's content becomes its parameters; a third step has no page", () => {
  const content = { ...ADVISED };
  const wire: DecideTrial = { id: "t", position: 0, kind: "decide", phase: "test", content };
  const view = { study: undefined as never, examples: [], draft: noDraft };
  expect(decide.parameters(wire, view)).toEqual({ ...content, examples: [], reservoir: "off" });
  const odd = { ...wire, content: { ...content, step: "third" } };
  expect(() => decide.parameters(odd, view)).toThrow(CannotShow);
  expect(Object.keys(de.decide)).toEqual(Object.keys(en.decide));
});

test.each(["data-only", "visual"] as const)("it simulates, %s", async (mode) => {
  const { getData } = await simulateTimeline([trial(ADVISED)], mode);
  expect(["husky", "wolf"]).toContain((await finished(getData)).value.choice);
});
