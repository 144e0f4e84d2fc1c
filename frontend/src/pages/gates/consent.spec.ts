import { desk, find, json, page, question, state } from "../../cast";
import type { GateView } from "../../frame/page-context";
import { consentFile, consentPage } from "./consent";

const prompt = "I also agree to a short check.";

async function view(ticks: number): Promise<GateView> {
  const questions = [question({ id: "plates", kind: "tick", prompt, required: false })].slice(0, ticks);
  const made = await desk(async () => json(200, {}));
  return { desk: made, state: state(), page: page("consent", questions), notice: null };
}

test("what has a consent of its own is not ticked at first, and nothing waits for it", async () => {
  const sent = consentPage(await view(1));
  expect(find<HTMLInputElement>("input[type=checkbox]").checked).toBe(false);
  find(".button.primary").click();
  expect(await sent).toMatchObject({ agree: true, plates: false });
});

test("it is sent as it was ticked", async () => {
  const sent = consentPage(await view(1));
  find<HTMLInputElement>("input[type=checkbox]").click();
  find(".button.primary").click();
  expect(await sent).toMatchObject({ agree: true, plates: true });
});

test("without one there is no tick, and none is sent", async () => {
  const sent = consentPage(await view(0));
  expect(document.querySelector("input")).toBeNull();
  find(".button.primary").click();
  expect(Object.keys(await sent).sort()).toEqual(["agree", "device"]);
});

test("the file holds the text of the tick too", async () => {
  expect(consentFile(await view(1))).toContain(prompt);
});
