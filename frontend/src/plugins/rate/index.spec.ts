import { pressKey, simulateTimeline, startTimeline } from "@jspsych/test-utils";
import { find, media, painted, until } from "../../cast";
import type { RateQuestion } from "../../server/model";
import { en } from "../../words";
import { rate, RatePlugin } from ".";

const side = (name: string) => ({ image: media(name), mark: media(`x-${name}`), text: null, sentence: null });

function question(id: string, changes: Partial<RateQuestion> = {}): RateQuestion {
  return { id, text: `What of ${id}?`, low: "not at all", high: "completely", pair: null, ...changes };
}

const THREE = [question("q3"), question("q5", { pair: [side("i"), side("light")] }), question("q1")];

function trial(changes: Record<string, unknown> = {}) {
  const picture = (shown: { alt: string; url: string }) => Object.assign(new Image(), { alt: shown.alt, title: shown.url });
  const shown = { image: media("i"), explanation: media("x-i"), label: "Husky", questions: THREE, min_view_ms: 0 };
  return { type: RatePlugin, words: en, picture, ...shown, ...changes };
}

type Row = { value: Record<string, number>; rt_ms: number; shown_ms: number; context: Record<string, unknown> };

async function finished(getData: () => { count: () => number; values: () => unknown[] }): Promise<Row> {
  await until(() => getData().count() === 1);
  return getData().values()[0] as Row;
}

const radio = (id: string, point: number): HTMLInputElement => find(`[data-question="${id}"] input[value="${point}"]`);
const next = (): HTMLElement => find(".scales .button");
const isReady = (): boolean => next().classList.contains("primary");
const focused = (): string | undefined =>
  document.activeElement?.closest<HTMLElement>(".scale")?.dataset["question"];
const summary = (): string | null => find(".summary").textContent;

beforeEach(() => document.body.replaceChildren());

test("digits answer one question after the other, in their order, and Enter goes on", async () => {
  const { getData } = await startTimeline([trial()]);
  await pressKey("4");
  expect(focused()).toBe("q5");
  await pressKey("1");
  expect(focused()).toBe("q1");
  await pressKey("5");
  await until(isReady);
  expect(document.activeElement).toBe(next());
  next().blur();
  await pressKey("Enter");
  const { value, context, rt_ms, shown_ms } = await finished(getData);
  expect(value).toEqual({ q3: 4, q5: 1, q1: 5 });
  const rows = context["questions"] as { id: string; ms: number; changes: number }[];
  expect(rows.map(({ id, changes }) => [id, changes])).toEqual([["q3", 0], ["q5", 0], ["q1", 0]]);
  expect(rows.map((row) => row.ms)).toEqual(rows.map((row) => row.ms).sort((a, b) => a - b));
  expect(rows.at(-1)!.ms).toBeLessThanOrEqual(rt_ms);
  expect(shown_ms).toBeGreaterThanOrEqual(rt_ms);
  expect(context).toMatchObject({ input: "keyboard", key: "Enter", image_px: 0 });
});

test("a digit answers the question that has the focus, and moves to the next open one, from the top again", async () => {
  await startTimeline([trial()]);
  radio("q1", 1).focus();
  await pressKey("2");
  expect([radio("q1", 2).checked, focused()]).toEqual([true, "q3"]);
  await pressKey("2");
  expect(focused()).toBe("q5");
});

test("answers can be changed until the end; each change is counted, the same again is none", async () => {
  const { getData } = await startTimeline([trial({ questions: [question("q1"), question("q2")] })]);
  radio("q1", 2).click();
  // The clock runs from the frame that paints the page.
  await painted();
  radio("q2", 3).click();
  await new Promise((resolve) => setTimeout(resolve, 60));
  radio("q1", 4).click();
  radio("q1", 4).focus();
  await pressKey("4");
  await pressKey("1");
  await until(isReady);
  radio("q1", 5).click();
  next().click();
  const { value, context } = await finished(getData);
  expect(value).toEqual({ q1: 5, q2: 3 });
  const rows = context["questions"] as { id: string; ms: number; changes: number }[];
  // q1: 2, 4, (4 again), then 5; the digit 1 has no question to answer, as none is open and none has the focus.
  expect(rows.map(({ id, changes }) => [id, changes])).toEqual([["q1", 2], ["q2", 0]]);
  expect(rows[0]!.ms).toBeGreaterThan(rows[1]!.ms + 50);
});

test("nothing is chosen beforehand, and going on too early names what is open", async () => {
  const { expectRunning } = await startTimeline([trial()]);
  expect(document.querySelectorAll(":checked")).toHaveLength(0);
  next().click();
  expect(summary()).toBe("Questions 1, 2, and 3 are still to be answered.");
  expect(focused()).toBe("q3");
  radio("q5", 3).click();
  expect(summary()).toBe("");
  radio("q3", 3).click();
  next().click();
  expect([summary(), focused()]).toEqual(["Question 3 is still to be answered.", "q1"]);
  await pressKey("Enter");
  await expectRunning();
});

test("the shortest time to look holds, whatever was answered", async () => {
  const { getData, expectRunning } = await startTimeline([trial({ questions: [question("q1")], min_view_ms: 300 })]);
  await pressKey("3");
  next().click();
  expect([isReady(), summary()]).toEqual([false, en.rating.wait]);
  await pressKey("Enter");
  await expectRunning();
  await until(isReady);
  expect(summary()).toBe("");
  next().click();
  const { rt_ms, value } = await finished(getData);
  expect(value).toEqual({ q1: 3 });
  expect(rt_ms).toBeGreaterThanOrEqual(295);
});

test("keys are left alone while a dialog is open, with a shortcut, held, and on another button", async () => {
  const { expectRunning } = await startTimeline([trial({ questions: [question("q1")] })]);
  const dialog = Object.assign(document.createElement("dialog"), { open: true });
  const link = document.createElement("button");
  document.body.append(dialog, link);
  await pressKey("3");
  dialog.remove();
  for (const held of [{ ctrlKey: true }, { altKey: true }, { metaKey: true }, { repeat: true }])
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "3", bubbles: true, ...held }));
  for (const key of ["0", "6", "x"]) await pressKey(key);
  expect(document.querySelectorAll(":checked")).toHaveLength(0);
  await pressKey("3");
  await until(isReady);
  link.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  await new Promise((resolve) => setTimeout(resolve, 200));
  await expectRunning();
});

test("what is sent once is not sent again, and its answers stand", async () => {
  const { getData } = await startTimeline([trial({ questions: [question("q1")] })]);
  await pressKey("3");
  await until(isReady);
  next().click();
  radio("q1", 5).click();
  await pressKey("5");
  next().click();
  expect((await finished(getData)).value).toEqual({ q1: 3 });
});

test("each question is a group of radio buttons with its words; the ends of the scale are named", async () => {
  await startTimeline([trial()]);
  const groups = [...document.querySelectorAll("[role=radiogroup]")];
  expect(groups.map((group) => group.querySelector("legend")?.textContent)).toEqual([
    "1. What of q3?", "2. What of q5?", "3. What of q1?",
  ]); // prettier-ignore
  const spoken = [...groups[0]!.querySelectorAll(".point")].map((point) => point.lastElementChild?.textContent);
  expect(spoken).toEqual(["1, not at all", "2", "3", "4", "5, completely"]);
});

test("a pair stands with its question: A and B, pictures above explanations, each in a place of its own", async () => {
  await startTimeline([trial()]);
  const sides = [...find('[data-question="q5"]').querySelectorAll(".side")];
  expect(sides.map((each) => each.getAttribute("aria-label"))).toEqual(["A", "B"]);
  const titles = sides.map((each) => [...each.querySelectorAll("img")].map((image) => image.title));
  expect(titles).toEqual([["/m/i", "/m/x-i"], ["/m/light", "/m/x-light"]]);
  expect([...document.querySelectorAll<HTMLImageElement>(".rated img")].map((image) => image.title)).toEqual(["/m/i", "/m/x-i"]);
  expect(document.querySelectorAll('[data-question="q1"] img')).toHaveLength(0);
});

test("the answer of the model stands below what is rated, and a single question has no number", async () => {
  const said: string[] = [];
  await startTimeline([trial({ questions: [question("q1")], announce: (text: string) => said.push(text) })]);
  expect(find(".rated-label").textContent).toBe("The machine's answer: Husky");
  expect(find("legend").textContent).toBe("What of q1?");
  expect(said[0]).toContain("Husky");
});

test("without a label nothing is said of the answer; a sentence is read as it is", async () => {
  await startTimeline([trial({ label: null, sentence: "Because of the snow." })]);
  expect(document.querySelector(".rated-label")).toBeNull();
  expect(find(".rated-sentence").textContent).toBe("Because of the snow.");
});

test("the wire's content becomes its parameters, and the line above counts explanations", () => {
  const content = { image: media("i"), mark: media("x"), text: null, sentence: null, label: "Husky", questions: THREE };
  const made = rate.parameters({ id: "t", position: 0, kind: "rate", phase: "test", content }, undefined as never);
  expect(made).toEqual({ ...content, mark: undefined, explanation: content.mark });
  expect(rate.place?.(en, 7, 20)).toBe("Explanation 7 of 20");
});

test.each(["data-only", "visual"] as const)("it simulates, %s", async (mode) => {
  const { getData } = await simulateTimeline([trial()], mode);
  const { value, context } = await finished(getData);
  expect(Object.keys(value)).toEqual(["q3", "q5", "q1"]);
  for (const point of Object.values(value)) expect([1, 2, 3, 4, 5]).toContain(point);
  expect((context["questions"] as unknown[]).length).toBe(3);
});
