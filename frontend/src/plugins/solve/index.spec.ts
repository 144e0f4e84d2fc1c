import { pressKey, simulateTimeline, startTimeline } from "@jspsych/test-utils";
import { find, media, noDraft, painted, until } from "../../cast";
import { keys } from "../../frame/keys";
import type { Choice, SolveTrial } from "../../server/model";
import { de, en } from "../../words";
import { CannotShow } from "../kind";
import { solve, SolvePlugin } from ".";
import { hand } from "./tools";

const GRID = 8;
const CANNOT: Choice = { value: "cannot_say", text: "Cannot say", key: "x" };
const DIGITS: Choice[] = [...[..."0123456789"].map((digit) => ({ value: digit, text: digit, key: digit })), CANNOT];

function trial(changes: Record<string, unknown> = {}) {
  const picture = (): HTMLImageElement => new Image();
  const shown = { image: media("p"), grid: GRID, choices: DIGITS, draft: noDraft };
  return { type: SolvePlugin, words: en, picture, ...shown, ...changes };
}

type Row = {
  value: { choice: string; region: number[] | null };
  rt_ms: number;
  shown_ms: number;
  context: Record<string, unknown>;
};

async function finished(getData: () => { count: () => number; values: () => unknown[] }): Promise<Row> {
  await until(() => getData().count() === 1);
  return getData().values()[0] as Row;
}

const plate = (): HTMLElement => find(".plate");
const send = (): HTMLElement => find(".sending .button");
const isReady = (): boolean => send().classList.contains("primary");
const radio = (value: string): HTMLInputElement => find(`.choice input[value="${value}"]`);
const state = (): string => find(".state").textContent;
const complaint = (): string => find(".complaint").textContent;
const tool = (name: string): HTMLElement => find(`.mark-tool[aria-label="${name}"]`);
const isDrawn = (): boolean => find(".marked-area").getAttribute("d") !== "";

/** A task whose clock runs. Its cells are ten pixels wide. */
async function start(changes: Record<string, unknown> = {}) {
  const run = await startTimeline([trial(changes)]);
  const box = { left: 0, top: 0, width: 10 * GRID, height: 10 * GRID } as DOMRect;
  find<HTMLElement>(".cells").getBoundingClientRect = () => box;
  await until(() => !plate().hasAttribute("aria-disabled"));
  return run;
}

function point(kind: string, [column, row]: readonly [number, number], more: PointerEventInit = {}): void {
  const at = { clientX: 10 * column + 5, clientY: 10 * row + 5, bubbles: true, pointerId: 1, pointerType: "mouse" };
  plate().dispatchEvent(new PointerEvent(`pointer${kind}`, { ...at, ...more }));
}

function draw(from: readonly [number, number], to: readonly [number, number], more: PointerEventInit = {}): void {
  point("down", from, more);
  point("move", to, more);
  point("up", to, more);
}

function press(key: string, more: KeyboardEventInit = {}, on: Element = plate()): void {
  on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
}

beforeEach(() => {
  document.body.replaceChildren();
  hand.size = 1;
});

test("an answer goes with the cells that show it, ascending, and with how they were marked", async () => {
  const { getData } = await start();
  tool("Small").click();
  draw([1, 6], [4, 6]);
  draw([2, 1], [2, 3]);
  await painted();
  await pressKey("7");
  send().click();
  const { value, context, rt_ms, shown_ms } = await finished(getData);
  expect(value).toEqual({ choice: "7", region: [10, 18, 26, 49, 50, 51, 52] });
  expect(context).toMatchObject({ strokes: 2, undos: 0, marked_with: "mouse", image_px: 0 });
  expect(context["first_stroke_ms"]).toBeLessThan(rt_ms);
  expect(shown_ms).toBeGreaterThanOrEqual(rt_ms);
});

test.each([
  [["mark", "answer"], "answer after mark"],
  [["answer", "mark"], "mark after answer"],
])("marks and answer come in either order: %s", async (order) => {
  const { getData, expectRunning } = await start();
  for (const each of order) {
    if (each === "mark") draw([3, 3], [3, 3]);
    else await pressKey("4");
    expect(isReady()).toBe(each === order[1]);
  }
  await expectRunning();
  await pressKey("Enter");
  expect((await finished(getData)).value.choice).toBe("4");
});

test("no key of an answer sends anything, however often it is pressed, and the last one counts", async () => {
  const { getData, expectRunning } = await start();
  draw([3, 3], [4, 4]);
  for (const key of ["1", "7", "7", "x", "2"]) await pressKey(key);
  await new Promise((resolve) => setTimeout(resolve, 200));
  await expectRunning();
  expect(radio("2").checked).toBe(true);
  send().click();
  expect((await finished(getData)).value.choice).toBe("2");
});

test("what is missing is said, and nothing is sent without it", async () => {
  const { expectRunning } = await start();
  expect(state()).toBe(en.solve.start);
  send().click();
  expect(complaint()).toBe(en.solve.no_answer(0));
  await pressKey("5");
  expect([complaint(), state()]).toEqual(["", "Your answer: 5. Now mark where you see it."]);
  await pressKey("Enter");
  expect(complaint()).toBe(en.solve.no_marks);
  draw([2, 2], [2, 2]);
  expect([complaint(), state()]).toEqual(["", "Your answer: 5, with 5 cells marked. You can send it."]);
  await expectRunning();
});

test("marks without an answer ask for one", async () => {
  await start();
  tool("Small").click();
  draw([2, 2], [2, 2]);
  expect(state()).toBe("1 cell marked. Now choose your answer.");
  await pressKey("Enter");
  expect(complaint()).toBe(en.solve.no_answer(1));
});

test('"cannot say" has no region: marks are set aside with a word, and another answer brings them back', async () => {
  const { getData } = await start();
  draw([2, 2], [5, 2]);
  const said = find(".marked-area").getAttribute("d");
  await pressKey("x");
  expect([isDrawn(), isReady(), state()]).toEqual([false, true, en.solve.aside(Number(/\d+/.exec(state())![0]))]);
  expect(state()).toContain("set aside");
  // Nothing acts on what is set aside.
  tool("Clear").click();
  press("z", { ctrlKey: true });
  await pressKey("3");
  expect(find(".marked-area").getAttribute("d")).toBe(said);
  await pressKey("x");
  await pressKey("Enter");
  expect((await finished(getData)).value).toEqual({ choice: "cannot_say", region: null });
});

test("who marks again after all has not chosen that nothing can be said", async () => {
  const { getData } = await start();
  tool("Small").click();
  draw([2, 2], [2, 2]);
  await pressKey("x");
  draw([4, 2], [4, 2]);
  expect([radio("cannot_say").checked, isReady(), state()]).toEqual([
    false, false, "2 cells marked. Now choose your answer.",
  ]); // prettier-ignore
  await pressKey("8");
  await pressKey("Enter");
  expect((await finished(getData)).value).toEqual({ choice: "8", region: [18, 20] });
});

test('"cannot say" alone is an answer', async () => {
  const { getData } = await start();
  await pressKey("x");
  expect([isReady(), state()]).toEqual([true, en.solve.nothing]);
  await pressKey("Enter");
  const { value, context } = await finished(getData);
  expect(value).toEqual({ choice: "cannot_say", region: null });
  expect(context).toMatchObject({ strokes: 0, undos: 0 });
  expect(context).not.toHaveProperty("first_stroke_ms");
  expect(context).not.toHaveProperty("marked_with");
});

test("the size that was chosen serves the next task, which begins with the brush", async () => {
  await start();
  tool("Small").click();
  tool("Eraser").click();
  document.body.replaceChildren();
  await start();
  expect([tool("Small"), tool("Brush")].map((each) => each.getAttribute("aria-pressed"))).toEqual(["true", "true"]);
});

test("the eraser takes cells away; undo, redo and clear act by button and by key", async () => {
  const { getData } = await start();
  tool("Small").click();
  draw([0, 0], [3, 0]);
  tool("Eraser").click();
  draw([1, 0], [2, 0]);
  const cells = (): number[] => [...find(".marked-area").getAttribute("d")!.matchAll(/M(\d+) 0h(\d+)/g)].flatMap(
    ([, from, width]) => Array.from({ length: Number(width) }, (_, step) => Number(from) + step),
  ); // prettier-ignore
  expect(cells()).toEqual([0, 3]);
  tool("Undo").click();
  expect(cells()).toEqual([0, 1, 2, 3]);
  tool("Redo").click();
  expect(cells()).toEqual([0, 3]);
  press("z", { ctrlKey: true }, document.body);
  expect(cells()).toEqual([0, 1, 2, 3]);
  press("Z", { metaKey: true, shiftKey: true }, document.body);
  expect(cells()).toEqual([0, 3]);
  tool("Clear").click();
  expect([cells(), tool("Clear").getAttribute("aria-disabled")]).toEqual([[], "true"]);
  tool("Undo").click();
  expect([cells(), tool("Clear").getAttribute("aria-disabled")]).toEqual([[0, 3], null]);
  await pressKey("1");
  await pressKey("Enter");
  expect((await finished(getData)).context).toMatchObject({ strokes: 2, undos: 3 });
});

test("the keyboard alone: arrows move a frame, Space marks, Shift with an arrow marks along the way", async () => {
  const said: string[] = [];
  const { getData } = await start({ announce: (text: string) => said.push(text) });
  await pressKey("-");
  expect(tool("Small").getAttribute("aria-pressed")).toBe("true");
  press("ArrowUp");
  press("ArrowRight");
  // The frame begins in the middle, at row 5, column 5.
  expect(said.at(-1)).toBe("Row 4, column 6, not marked; 0 cells marked");
  press(" ");
  expect(said.at(-1)).toBe("Row 4, column 6, marked; 1 cell marked");
  press("ArrowDown", { shiftKey: true });
  press("ArrowDown", { shiftKey: true });
  plate().dispatchEvent(new KeyboardEvent("keyup", { key: "Shift", bubbles: true }));
  expect(said.at(-1)).toBe("Row 6, column 6, marked; 3 cells marked");
  await pressKey("e");
  press(" ");
  expect(said.at(-1)).toBe("Row 6, column 6, not marked; 2 cells marked");
  await pressKey("b");
  for (let step = 0; step < 20; step += 1) press("ArrowLeft");
  expect(said.at(-1)).toContain("column 1,");
  await pressKey("4");
  press("Enter");
  const { value, context } = await finished(getData);
  expect(value).toEqual({ choice: "4", region: [29, 37] });
  // One dab, one way of two steps, one dab of the eraser.
  expect(context).toMatchObject({ strokes: 3, marked_with: "keyboard", input: "keyboard", key: "Enter" });
});

test("what is marked with several devices says so, and each pointer is named by what it is", async () => {
  const { getData } = await start();
  draw([1, 1], [1, 1], { pointerType: "pen" });
  await pressKey("1");
  await pressKey("Enter");
  expect((await finished(getData)).context["marked_with"]).toBe("pen");
  document.body.replaceChildren();
  const again = await start();
  draw([1, 1], [1, 1], { pointerType: "touch" });
  for (let step = 0; step < 4; step += 1) press("ArrowDown");
  press(" ");
  await pressKey("1");
  await pressKey("Enter");
  expect((await finished(again.getData)).context["marked_with"]).toBe("several");
});

test("a second finger, another button and a gesture of the browser mark nothing", async () => {
  const { getData } = await start();
  tool("Small").click();
  point("down", [1, 1], { button: 2 });
  point("up", [1, 1], { button: 2 });
  expect(isDrawn()).toBe(false);
  point("down", [1, 1], { pointerType: "touch" });
  point("down", [6, 6], { pointerType: "touch", pointerId: 2 });
  point("move", [6, 7], { pointerType: "touch", pointerId: 2 });
  point("cancel", [1, 1], { pointerType: "touch" });
  expect([isDrawn(), tool("Undo").getAttribute("aria-disabled")]).toEqual([false, "true"]);
  await pressKey("x");
  await pressKey("Enter");
  const { context } = await finished(getData);
  expect(context["strokes"]).toBe(0);
  expect(context).not.toHaveProperty("first_stroke_ms");
});

test("the end of a pen that erases, erases", async () => {
  await start();
  draw([1, 1], [4, 1], { pointerType: "pen" });
  draw([0, 1], [7, 1], { pointerType: "pen", button: 5 });
  expect(tool("Brush").getAttribute("aria-pressed")).toBe("true");
  expect(find(".marked-area").getAttribute("d")).not.toMatch(/M\d 1h/);
});

test("nothing is marked before the picture is seen, and nothing changes once it is sent", async () => {
  const run = await startTimeline([trial()]);
  press(" ");
  expect(isDrawn()).toBe(false);
  await until(() => !plate().hasAttribute("aria-disabled"));
  press(" ");
  await pressKey("6");
  send().click();
  draw([0, 0], [7, 7]);
  await pressKey("2");
  const { value } = await finished(run.getData);
  expect(value.choice).toBe("6");
  expect(value.region!.length).toBeLessThan(10);
});

test("what is begun is kept with every change, and a page that is opened anew goes on with it", async () => {
  const kept: string[] = [];
  await start({ draft: { text: null, keep: (text: string) => kept.push(text) } });
  tool("Small").click();
  draw([2, 2], [4, 2]);
  draw([2, 4], [2, 4]);
  tool("Undo").click();
  await pressKey("9");
  // In the middle of a stroke: it counts as far as it has come.
  point("down", [6, 6]);
  document.body.replaceChildren();
  const { getData } = await start({ draft: { text: kept.at(-1)!, keep: () => undefined } });
  expect([radio("9").checked, state()]).toEqual([true, "Your answer: 9, with 4 cells marked. You can send it."]);
  tool("Undo").click();
  await pressKey("Enter");
  const { value, context } = await finished(getData);
  expect(value).toEqual({ choice: "9", region: [18, 19, 20] });
  expect(context).toMatchObject({ strokes: 3, undos: 2, marked_with: "mouse" });
});

test("what was begun on another grid is not taken over", async () => {
  const kept: string[] = [];
  await start({ draft: { text: null, keep: (text: string) => kept.push(text) } });
  draw([2, 2], [4, 2]);
  document.body.replaceChildren();
  await start({ grid: GRID + 1, draft: { text: kept.at(-1)!, keep: () => undefined } });
  expect(isDrawn()).toBe(false);
});

test("an answer's key goes before a tool's, and what the hint says holds", async () => {
  const letters = [...["a", "b", "c"].map((each) => ({ value: each, text: each.toUpperCase(), key: each })), CANNOT];
  await start({ choices: letters });
  tool("Eraser").click();
  await pressKey("b");
  expect([radio("b").checked, tool("Eraser").getAttribute("aria-pressed")]).toEqual([true, "true"]);
  expect(find(".hint").textContent).not.toContain("takes the brush");
  document.body.replaceChildren();
  await start();
  expect(find(".hint").textContent).toContain("B takes the brush, E the eraser");
});

test("a key that is printed twice is printed once, and a person's own keys choose and are told", async () => {
  const two = [{ value: "l", text: "Left", key: "f" }, { value: "r", text: "Right", key: "j" }, CANNOT]; // prettier-ignore
  const { getData } = await start({ choices: two });
  const printed = (): string[] => [...document.querySelectorAll<HTMLElement>(".choice kbd:not([hidden])")].map((kbd) => kbd.textContent); // prettier-ignore
  expect(printed()).toEqual(["F", "J", "X"]);
  keys.choose(["f", "j"], ["a", "s"]);
  expect(printed()).toEqual(["A", "S", "X"]);
  draw([1, 1], [1, 1]);
  await pressKey("s");
  await pressKey("Enter");
  const { value, context } = await finished(getData);
  expect([value.choice, context["keys"]]).toEqual(["r", "asx"]);
  keys.choose(["f", "j"], ["f", "j"]);
  document.body.replaceChildren();
  await start();
  expect(printed()).toEqual(["X"]);
});

test("keys are left alone while a dialog is open, with Alt, and on other buttons", async () => {
  const { expectRunning } = await start();
  draw([1, 1], [1, 1]);
  const dialog = Object.assign(document.createElement("dialog"), { open: true });
  document.body.append(dialog);
  await pressKey("3");
  dialog.remove();
  press("3", { altKey: true }, document.body);
  press("3", { ctrlKey: true }, document.body);
  press("3", { repeat: true }, document.body);
  expect(document.querySelectorAll(":checked")).toHaveLength(0);
  await pressKey("3");
  press("Enter", {}, tool("Undo"));
  press("Enter", { repeat: true }, document.body);
  await new Promise((resolve) => setTimeout(resolve, 150));
  await expectRunning();
});

test("it is named for those who hear it: the picture, the tools, the answers, and how the keyboard marks", async () => {
  await start();
  expect(plate().getAttribute("aria-label")).toBe("Picture, to be marked");
  expect(find(`#${plate().getAttribute("aria-describedby")}`).textContent).toContain("Arrows move the frame, Space marks");
  expect(find("[role=radiogroup] legend").textContent).toBe("What do you see?");
  expect([...document.querySelectorAll(".tool-set")].map((set) => set.getAttribute("aria-label"))).toEqual([
    "Brush or eraser", "Size", "Steps",
  ]); // prettier-ignore
});

test("the wire's content becomes its parameters; a task without a picture is not shown", () => {
  const content = { image: media("p"), grid: 12, choices: DIGITS };
  const wire: SolveTrial = { id: "t", position: 0, kind: "solve", phase: "test", content };
  const view = { study: undefined as never, examples: [], draft: noDraft };
  expect(solve.parameters(wire, view)).toEqual({ ...content, draft: noDraft });
  expect(() => solve.parameters({ ...wire, content: { ...content, image: null } }, view)).toThrow(CannotShow);
  expect(solve.place?.(en, 3, 20)).toBe("Task 3 of 20");
  expect(solve.place?.(de, 3, 20)).toBe("Aufgabe 3 von 20");
});

test.each(["data-only", "visual"] as const)("it simulates, %s", async (mode) => {
  const { getData } = await simulateTimeline([trial()], mode);
  const { value } = await finished(getData);
  expect(DIGITS.map((choice) => choice.value)).toContain(value.choice);
  if (value.choice === "cannot_say") expect(value.region).toBeNull();
  else expect(value.region).toContain(Math.floor(GRID / 2) * (GRID + 1));
});
