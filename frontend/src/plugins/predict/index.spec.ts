import { pressKey, simulateTimeline, startTimeline } from "@jspsych/test-utils";
import { choices, example, find, media, until } from "../../cast";
import { en } from "../../words";
import { PredictPlugin } from ".";

function trial(changes: Record<string, unknown> = {}) {
  const picture = (shown: { alt: string }) => Object.assign(new Image(), { alt: shown.alt });
  return { type: PredictPlugin, image: media("i2"), choices, words: en, picture, ...changes };
}

beforeEach(() => document.body.replaceChildren());

const isActive = (): boolean => !find(".answer").hasAttribute("aria-disabled");

async function finished(getData: () => { count: () => number; values: () => Record<string, unknown>[] }) {
  await until(() => getData().count() === 1);
  return getData().values()[0]!;
}

test.each([
  ["f", "husky", "left"],
  ["J", "wolf", "right"],
])("it takes the key %s for %s on the %s", async (key, value, side) => {
  const { getData } = await startTimeline([trial()]);
  await until(isActive);
  await pressKey(key);
  expect(await finished(getData)).toMatchObject({
    value: { choice: value },
    context: { input: "keyboard", side, key },
  });
});

test("it takes a click and shows the press", async () => {
  const { getData } = await startTimeline([trial()]);
  await until(isActive);
  const button = find('[data-value="wolf"]');
  button.dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 1 }));
  expect(button.classList.contains("pressed")).toBe(true);
  expect(await finished(getData)).toMatchObject({ value: { choice: "wolf" }, context: { input: "mouse" } });
});

test("it records the first answer when two come at once", async () => {
  const { getData } = await startTimeline([trial()]);
  await until(isActive);
  find('[data-value="husky"]').click();
  find('[data-value="wolf"]').click();
  await pressKey("j");
  expect(await finished(getData)).toMatchObject({ value: { choice: "husky" } });
});

test("it ignores other keys, held keys and shortcuts", async () => {
  const { expectRunning } = await startTimeline([trial()]);
  await until(isActive);
  await pressKey("x");
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "f", ctrlKey: true, bubbles: true }));
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "f", repeat: true, bubbles: true }));
  await new Promise((resolve) => setTimeout(resolve, 150));
  await expectRunning();
});

test("it prints the key on each button and asks the usual question", async () => {
  await startTimeline([trial()]);
  expect([...document.querySelectorAll("kbd")].map((key) => key.textContent)).toEqual(["F", "J"]);
  expect(find(".ask").textContent).toBe("What did the machine answer?");
});

test("it asks a check's own question with four answers and no picture", async () => {
  const four = ["1", "2", "3", "4"].map((key) => ({ value: key, text: `Answer ${key}`, key }));
  const { getData } = await startTimeline([trial({ image: null, prompt: "Press 3.", choices: four })]);
  expect(find(".ask").textContent).toBe("Press 3.");
  expect(document.querySelectorAll(".place.empty")).toHaveLength(1);
  await until(isActive);
  await pressKey("3");
  expect(await finished(getData)).toMatchObject({ value: { choice: "3" } });
});

test("it opens the examples on request, enlarges one, and logs both", async () => {
  const log: [string, Record<string, unknown>][] = [];
  const examples = [example("t0"), example("t1", "Husky")];
  const { getData } = await startTimeline([
    trial({ examples, log: (kind: string, data: Record<string, unknown>) => log.push([kind, data]) }),
  ]);
  expect(find(".reservoir-panel").hidden).toBe(true);
  find(".reservoir-toggle").click();
  // By answer, whatever the order of training; each tile is named with its place in that order.
  const groups = [...document.querySelectorAll(".tiles-group")].map((group) => [
    group.querySelector("h3")?.textContent,
    ...[...group.querySelectorAll(".tile")].map((tile) => tile.getAttribute("aria-label")?.slice(0, 9)),
  ]);
  expect(groups).toEqual([
    ["Husky", "Example 2"],
    ["Wolf", "Example 1"],
  ]);
  const tile = find(".tiles-group .tile");
  tile.focus();
  expect(tile.classList.contains("enlarged")).toBe(true);
  await until(isActive);
  await pressKey("f");
  const row = await finished(getData);
  expect(log.map(([kind]) => kind)).toEqual(["reservoir_opened", "tile_enlarged", "reservoir_closed"]);
  expect(log[1]?.[1]).toMatchObject({ example: "t1" });
  expect((row["context"] as { reservoir_ms: number }).reservoir_ms).toBeGreaterThan(0);
});

test("it shows the examples always, or never, as the study says", async () => {
  await startTimeline([trial({ examples: [example("t0")], reservoir: "always" })]);
  expect(document.querySelector(".reservoir-toggle")).toBeNull();
  expect(document.querySelectorAll(".tile")).toHaveLength(1);
  document.body.replaceChildren();
  await startTimeline([trial({ examples: [example("t0")], reservoir: "off" })]);
  expect(document.querySelector(".reservoir")).toBeNull();
});

test("it does not name the answer to screen readers", async () => {
  const said: string[] = [];
  await startTimeline([trial({ announce: (text: string) => said.push(text) })]);
  await until(isActive);
  expect(said.join(" ")).not.toMatch(/wolf|husky/i);
  expect(document.querySelector("img")?.alt).toBe("Picture");
});

test.each(["data-only", "visual"] as const)("it simulates, %s", async (mode) => {
  const { getData } = await simulateTimeline([trial()], mode);
  const row = await finished(getData);
  expect(["husky", "wolf"]).toContain((row["value"] as { choice: string }).choice);
});
