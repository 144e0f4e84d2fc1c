import { pressKey, simulateTimeline, startTimeline } from "@jspsych/test-utils";
import { example, find, instructed as trialOf, noDraft, state, until } from "../../cast";
import { en } from "../../words";
import { predict } from "../predict";
import { instructed } from ".";

const { study } = state();
const trial = trialOf(0);
const examples = [example("t0"), example("t1")];

function shared(changes: Record<string, unknown> = {}) {
  const { display, picture_px, min_view_ms } = study;
  const picture = (): HTMLImageElement => new Image();
  return { display, picture_px, min_view_ms, words: en, picture, ...changes };
}

function described(changes: Record<string, unknown> = {}) {
  return { ...shared(changes), ...instructed.parameters(trial, { study, examples, draft: noDraft }), type: instructed.plugin };
}

/** The check as it came before it had a kind of its own: a test trial without a picture, but with a prompt. */
function asBefore(changes: Record<string, unknown> = {}) {
  const { prompt, choices } = trial.content;
  const content = { image: null, explanation: null, text: null, prompt, choices, reservoir: ["t0", "t1"] };
  const before = { ...trial, kind: "predict" as const, content };
  return { ...shared(changes), ...predict.parameters(before, { study, examples, draft: noDraft }), type: predict.plugin };
}

beforeEach(() => document.body.replaceChildren());

const isActive = (): boolean => !find(".answer").hasAttribute("aria-disabled");

test.each(["beside", "overlay"])("it is the page of the same check in a test trial, %s", async (display) => {
  await startTimeline([described({ display })] as never);
  await until(isActive);
  const shown = document.body.innerHTML;
  document.body.replaceChildren();
  await startTimeline([asBefore({ display })] as never);
  await until(isActive);
  expect(shown).toBe(document.body.innerHTML);
  expect(shown).toContain("Please press the key 3.");
  expect(document.querySelectorAll(".place.empty")).toHaveLength(1);
  expect(document.querySelectorAll(".answer")).toHaveLength(4);
});

test("it takes the key that is asked for, and offers the examples meanwhile", async () => {
  const { getData } = await startTimeline([described()] as never);
  expect(find(".reservoir-toggle").textContent).toContain("(2)");
  await until(isActive);
  await pressKey("3");
  await until(() => getData().count() === 1);
  const [row] = getData().values();
  expect(row.value).toEqual({ choice: "3" });
  expect(row.context).toMatchObject({ input: "keyboard", key: "3", side: "left", reservoir_ms: 0 });
});

test("it records the wrong key as well: the server judges", async () => {
  const { getData } = await startTimeline([described()] as never);
  await until(isActive);
  await pressKey("1");
  await until(() => getData().count() === 1);
  expect(getData().values()[0].value).toEqual({ choice: "1" });
});

test("it sets a prompt with markup as text, and says it to screen readers", async () => {
  const nasty = "<img src=x onerror=alert(1)>";
  const said: string[] = [];
  const given = { ...described({ announce: (text: string) => said.push(text) }), prompt: nasty };
  await startTimeline([given] as never);
  expect(find(".ask").textContent).toBe(nasty);
  expect(find(".ask").children).toHaveLength(0);
  expect(said[0]).toBe(nasty);
});

test.each(["data-only", "visual"] as const)("it simulates, %s", async (mode) => {
  const { getData } = await simulateTimeline([described()] as never, mode);
  await until(() => getData().count() === 1);
  expect(["1", "2", "3", "4"]).toContain(getData().values()[0].value.choice);
});
