import { desk, find, json, media, page, question, state, until } from "../../cast";
import type { GateView, Notice } from "../../frame/page-context";
import { trainingPage } from "./training";

const choices = ["1", "2", "3", "4", "5"].map((value) => ({ value, text: value, key: value }));

function asked(id: string) {
  const shown = { image: media(`i${id}`), explanation: media(`x${id}`), label: "Husky" };
  return question({ id, kind: "rate", prompt: `How clear is ${id}?`, low: "not", high: "very", choices, ...shown });
}

/** A server that tells: 1 and 2 fit. `first`: what it says was answered before. */
async function view(told: unknown[], notice: Notice | null = null, first?: string): Promise<GateView> {
  const made = await desk(async (input, init) => {
    if (!String(input).endsWith("/told/")) return json(200, {});
    const body = JSON.parse(String(init?.body)) as { question: string; choice: string };
    told.push(body);
    const choice = first ?? body.choice;
    return json(200, { choice, label: "1 to 2: the map is empty.", correct: Number(choice) <= 2 });
  });
  return { desk: made, state: state({ step: "training" as never, attempts_left: 1 }), page: page("training", [asked("a"), asked("b")]), notice };
}

const start = (): void => find(".button.primary").click();
/** Without a focus: a button that has it is pressed by the browser itself, which jsdom does not do. */
const press = (key: string): boolean =>
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const isReady = (): unknown => document.querySelector(".scales .button.primary");
const isTold = (): unknown => document.querySelector(".told");

test("each answer is told at once with what fits and why, and all are sent in the end", async () => {
  const told: unknown[] = [];
  const sent = trainingPage(await view(told));
  start();
  await until(() => document.querySelector("legend")?.textContent === "How clear is a?");
  expect(document.querySelectorAll(".rated img")).toHaveLength(2);
  press("2");
  await until(isReady);
  press("Enter");
  await until(isTold);
  expect(find(".told").textContent).toBe("That fits. 1 to 2: the map is empty.");
  expect(find<HTMLInputElement>("input[value='2']").disabled).toBe(true);
  press("Enter");
  await until(() => document.querySelector("legend")?.textContent === "How clear is b?");
  expect(document.querySelectorAll(":checked")).toHaveLength(0);
  find("input[value='5']").click();
  await until(isReady);
  find(".scales .button").click();
  await until(isTold);
  expect(find(".told").textContent).toBe("Another answer fits better. 1 to 2: the map is empty.");
  find(".scales .button").click();
  expect(await sent).toEqual({ a: "2", b: "5" });
  expect(told).toMatchObject([{ question: "a", choice: "2" }, { question: "b", choice: "5" }]);
});

test("the answer that the server stored first stands", async () => {
  const sent = trainingPage(await view([], null, "1"));
  start();
  for (const prompt of ["How clear is a?", "How clear is b?"]) {
    await until(() => document.querySelector("legend")?.textContent === prompt);
    press("4");
    await until(isReady);
    press("Enter");
    await until(isTold);
    expect(find(".told").textContent).toBe("You answered 1 before, and that stands. That fits. 1 to 2: the map is empty.");
    press("Enter");
  }
  expect(await sent).toEqual({ a: "1", b: "1" });
});

test("after a failed try it says so, and how many are left", async () => {
  void trainingPage(await view([], { text: "Not everything was right.", fields: {} }));
  expect(find(".notice").textContent).toContain("Not everything was right.");
  expect(find("section").textContent).toContain("last try");
});
