import { pressKey, simulateTimeline, startTimeline } from "@jspsych/test-utils";
import { find, learn, until } from "../../cast";
import { en } from "../../words/en";
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
