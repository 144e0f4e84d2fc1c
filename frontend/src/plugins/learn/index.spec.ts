import { pressKey, simulateTimeline, startTimeline } from "@jspsych/test-utils";
import { choices, find, guess, learn, painted, until } from "../../cast";
import type { Feedback } from "../../server/model";
import { en } from "../../words";
import type { Answered } from "../kind";
import { LearnPlugin } from ".";

const content = learn(0).content;

function trial(changes: Record<string, unknown> = {}) {
  const { image, explanation, label } = content;
  const picture = (media: { alt: string }) => Object.assign(new Image(), { alt: media.alt });
  return { type: LearnPlugin, image, explanation, label, min_view_ms: 0, words: en, picture, ...changes };
}

beforeEach(() => document.body.replaceChildren());

const isActive = (): boolean => !find(".answer").hasAttribute("aria-disabled");

test("it shows picture, explanation and the machine's answer", async () => {
  await startTimeline([trial()]);
  expect(document.querySelectorAll(".picture img")).toHaveLength(2);
  expect(find(".ask").textContent).toBe("The machine's answer: Wolf");
});

test("it shows a picture without an explanation alone", async () => {
  await startTimeline([trial({ explanation: null })]);
  expect(document.querySelectorAll(".place")).toHaveLength(1);
  expect(document.querySelectorAll(".picture img")).toHaveLength(1);
});

test("it shows one place only in overlay", async () => {
  await startTimeline([trial({ display: "overlay" })]);
  expect(document.querySelectorAll(".place")).toHaveLength(1);
});

test("it goes on with the space bar and records the times", async () => {
  const { expectFinished, getData } = await startTimeline([trial()]);
  await until(isActive);
  await pressKey(" ");
  await until(() => getData().count() === 1);
  await expectFinished();
  const [row] = getData().values();
  expect(row.value).toEqual({ seen: true });
  expect(row.shown_ms).toBeGreaterThanOrEqual(row.rt_ms);
  expect(row.context).toMatchObject({ input: "keyboard", key: "Space", dropped_frames: expect.any(Number) });
});

test("it ignores keys and clicks before the minimum viewing time", async () => {
  const { expectRunning, getData } = await startTimeline([trial({ min_view_ms: 60 })]);
  find(".answer").click();
  await pressKey(" ");
  await expectRunning();
  expect(find(".answer").getAttribute("aria-describedby")).toBe("answers-wait");
  expect(find("#answers-wait").textContent).toBe(en.trial.wait);
  await until(isActive);
  expect(find(".answer").hasAttribute("aria-describedby")).toBe(false);
  await pressKey(" ");
  await until(() => getData().count() === 1);
  expect(getData().values()[0].rt_ms).toBeGreaterThanOrEqual(60);
});

test("it tells screen readers what is there and when to go on, but nothing that is not on the screen", async () => {
  const said: string[] = [];
  await startTimeline([trial({ announce: (text: string) => said.push(text) })]);
  await until(isActive);
  expect(said).toEqual(["Example. The machine's answer: Wolf", en.trial.ready_next]);
});

test("it sets a label with markup as text", async () => {
  await startTimeline([trial({ label: "<img src=x onerror=alert(1)>" })]);
  expect(find(".label").textContent).toBe("<img src=x onerror=alert(1)>");
  expect(find(".label").children).toHaveLength(0);
});

test.each(["data-only", "visual"] as const)("it simulates, %s", async (mode) => {
  const { expectFinished, getData } = await simulateTimeline([trial()], mode);
  await until(() => getData().count() === 1);
  await expectFinished();
  expect(getData().values()[0]).toMatchObject({ value: { seen: true }, rt_ms: expect.any(Number) });
});

/** A guess whose reply the spec gives by hand. */
function guessed(changes: Record<string, unknown> = {}) {
  let tell!: (told: Feedback | null) => void;
  const reply = new Promise<Feedback | null>((resolve) => (tell = resolve));
  const stored: Answered[] = [];
  const log: [string, { shown_ms: number }][] = [];
  const keep = (answered: Answered): Promise<Feedback | null> => (stored.push(answered), reply);
  const given = trial({
    ...{ image: null, explanation: null, text: guess(0).content.text, label: null, choices },
    ...{ tell: keep, log: (...event: [string, { shown_ms: number }]) => log.push(event), ...changes },
  });
  return { given, stored, log, tell, reply };
}

const wrong: Feedback = { trial: "t0", choice: "husky", label: "Wolf", correct: false };
const marks = (): (string | null)[] => [...document.querySelectorAll(".answer kbd")].map((key) => key.textContent);
const isTold = (): boolean => document.querySelector(".next") !== null;

test("a guess shows no answer before it is given, and stores it with its own times", async () => {
  const { given, stored, tell } = guessed();
  const { getData } = await startTimeline([given]);
  expect(find(".ask").textContent).toBe(en.trial.question);
  expect(document.querySelector(".label, .next")).toBeNull();
  await until(isActive);
  await pressKey("f");
  await until(() => stored.length === 1);
  expect(stored[0]).toMatchObject({ value: { choice: "husky" }, context: { input: "keyboard", side: "left" } });
  const { rt_ms, shown_ms } = stored[0]!;
  expect(shown_ms).toBeGreaterThanOrEqual(rt_ms);
  tell(wrong);
  await until(isTold);
  await pressKey(" ");
  await until(() => getData().count() === 1);
  // What is revealed has its own time.
  expect(getData().values()[0]).toMatchObject({ rt_ms, shown_ms });
});

test("what is revealed stands beside text and answers, which stay, and is marked by more than colour", async () => {
  const { given, tell } = guessed();
  await startTimeline([given]);
  await until(isActive);
  const [text, buttons] = [find(".text"), [...document.querySelectorAll(".answer")]];
  await pressKey("f");
  tell(wrong);
  await until(isTold);
  expect(find(".text")).toBe(text);
  expect([...document.querySelectorAll(".answer")]).toEqual(buttons);
  expect(find(".ask .label").textContent).toBe("Wolf");
  expect(marks()).toEqual(["✗", "✓"]);
  const said = buttons.map((button) => button.querySelector(".sr-only")?.textContent);
  expect(said).toEqual([` (${en.trial.yours})`, ` (${en.trial.right})`]);
  expect(buttons.map((button) => button.classList.contains("right"))).toEqual([false, true]);
  expect(document.activeElement).toBe(find(".next"));
});

test("a guess that was right has one mark", async () => {
  const { given, tell } = guessed();
  await startTimeline([given]);
  await until(isActive);
  await pressKey("j");
  tell({ trial: "t0", choice: "wolf", label: "Wolf", correct: true });
  await until(isTold);
  expect(marks()).toEqual(["F", "✓"]);
  expect(find(".right .sr-only").textContent).toBe(` (${en.trial.yours}, ${en.trial.right})`);
});

test.each([
  ["the space bar", () => pressKey(" ")],
  ["Enter", () => pressKey("Enter")],
  ["a click", async () => find(".next").click()],
])("%s goes on once, and tells for how long the answer was looked at", async (_what, act) => {
  const { given, log, tell } = guessed();
  const { getData } = await startTimeline([given]);
  await until(isActive);
  await pressKey("f");
  // The answer may be seen before this test looks for it.
  const from_ms = performance.now();
  tell(wrong);
  await until(isTold);
  // Three frames: the clock runs from the one that shows the answer, and some time of it is left.
  await painted();
  await new Promise((resolve) => setTimeout(resolve, 5));
  await act();
  await act();
  const looked_ms = performance.now() - from_ms;
  await until(() => getData().count() === 1);
  expect(log.map(([kind]) => kind)).toEqual(["revealed"]);
  expect(log[0]![1].shown_ms).toBeGreaterThan(0);
  expect(log[0]![1].shown_ms).toBeLessThanOrEqual(Math.ceil(looked_ms));
});

test("a second guess, a held key and a key before the reply do nothing", async () => {
  const { given, stored, tell } = guessed();
  const { expectRunning } = await startTimeline([given]);
  await until(isActive);
  await pressKey("f");
  find('[data-value="wolf"]').click();
  await pressKey("j");
  await pressKey(" ");
  await until(() => stored.length === 1);
  tell(wrong);
  await until(isTold);
  find('[data-value="wolf"]').click();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: " ", repeat: true, bubbles: true }));
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true }));
  await new Promise((resolve) => setTimeout(resolve, 150));
  await expectRunning();
  expect(stored.map(({ value }) => value)).toEqual([{ choice: "husky" }]);
});

test("it says calmly that a reply takes its time, and nothing if it comes at once", async () => {
  const said: string[] = [];
  const { given, tell } = guessed({ announce: (text: string) => said.push(text) });
  await startTimeline([given]);
  await until(isActive);
  await pressKey("f");
  await until(() => find(".ask").textContent === en.trial.sent);
  tell(wrong);
  await until(() => said.length === 4);
  const ready = `${en.trial.label} Wolf. ${en.trial.ready_next}`;
  expect(said).toEqual([`Example. ${en.trial.question}`, en.trial.ready, en.trial.sent, ready]);
});

test("it goes on by itself if the server reveals nothing", async () => {
  const { given, log, tell } = guessed();
  const { getData } = await startTimeline([given]);
  await until(isActive);
  await pressKey("f");
  tell(null);
  await until(() => getData().count() === 1);
  expect(log).toEqual([]);
});

test("a reply that comes after the trial was called off changes nothing", async () => {
  const { given, tell, reply } = guessed();
  const { jsPsych } = await startTimeline([given]);
  await until(isActive);
  await pressKey("f");
  jsPsych.abortExperiment();
  await until(() => document.querySelector(".board") === null);
  tell(wrong);
  await reply;
  expect(document.querySelector(".next")).toBeNull();
});

test("a guess that was stored before is shown with what was revealed, and no answer is taken", async () => {
  const { given, stored, log } = guessed({ told: () => Promise.resolve(wrong) });
  const { getData } = await startTimeline([given]);
  await until(isTold);
  expect(find(".text p").textContent).toBe("a word-0");
  expect(marks()).toEqual(["✗", "✓"]);
  await pressKey("f");
  await pressKey(" ");
  await until(() => getData().count() === 1);
  expect(stored).toEqual([]);
  expect(log).toHaveLength(1);
});

test("a text whose time is limited is not seen for longer by what is revealed", async () => {
  const course = { fixation_ms: 0, exposure_ms: 40, mask_ms: 0 };
  const { given, tell } = guessed({ presentation: { course, refresh_ms: null, seed: 0 } });
  await startTimeline([given]);
  await until(isActive);
  await pressKey("f");
  tell(wrong);
  await until(isTold);
  expect(find(".text").dataset["sight"]).toBe("empty");
});

test.each(["data-only", "visual"] as const)("it simulates a guess, %s", async (mode) => {
  const { given, tell } = guessed();
  tell(wrong);
  const { getData } = await simulateTimeline([given], mode);
  await until(() => getData().count() === 1);
  expect(["husky", "wolf"]).toContain(getData().values()[0].value.choice);
});
