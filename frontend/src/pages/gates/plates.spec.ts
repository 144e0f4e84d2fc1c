import { desk, find, json, media, page, question, state, until } from "../../cast";
import type { GateView } from "../../frame/page-context";
import type { Page, Value } from "../../server/model";
import { platesPage } from "./plates";

const DIGITS = [..."0123456789"].map((digit) => ({ value: digit, text: digit, key: digit }));
const CHOICES = [...DIGITS, { value: "nothing", text: "None", key: "n" }];
const filter = question({
  id: "filter",
  prompt: "Is a filter on?",
  choices: ["off", "on"].map((value) => ({ value, text: value, key: "" })),
});
const plates = [1, 2, 3].map((number) =>
  question({ id: `plate-${number}`, prompt: "Which digit?", choices: CHOICES, image: media(`plate-${number}`) }),
);

interface Sent {
  path: string;
  body: { question: string; choice: string };
}

interface Open {
  view: GateView;
  sent: Sent[];
  value: Promise<Value>;
}

async function open(kept: Page["kept"] = {}, status = 200): Promise<Open> {
  const sent: Sent[] = [];
  const made = await desk((async (input: RequestInfo | URL, init?: RequestInit) => {
    const body = JSON.parse(String(init?.body)) as Sent["body"];
    sent.push({ path: String(input), body });
    return json(status, { choice: body.choice });
  }) as typeof fetch);
  const view = { desk: made, state: state(), page: { ...page("plates", [filter, ...plates]), kept }, notice: null };
  return { view, sent, value: platesPage(view) };
}

const press = (key: string): boolean => document.dispatchEvent(new KeyboardEvent("keydown", { key }));

async function start(): Promise<void> {
  await until(() => document.querySelector("form"));
  find("input[value=off]").click();
  find<HTMLButtonElement>(".button.primary").click();
}

async function shown(number: number): Promise<void> {
  const line = `Picture ${number} of 3`;
  await until(() => document.querySelector(".line")?.textContent?.startsWith(line) && document.querySelector(".answer:not([aria-disabled])"));
}

beforeAll(() => {
  // jsdom has no modal dialogs.
  HTMLDialogElement.prototype.showModal = function () {
    this.setAttribute("open", "");
  };
});

test("one plate a page, by the digits' own keys and N for none; each answer is kept as it is given", async () => {
  const { sent, value } = await open();
  await start();
  for (const [number, key] of [[1, "7"], [2, "n"], [3, "0"]] as const) {
    await shown(number);
    expect(document.querySelectorAll(".answer")).toHaveLength(11);
    expect(document.querySelectorAll(".pictures img")).toHaveLength(1);
    press(key);
  }
  expect(await value).toEqual({ filter: "off", "plate-1": "7", "plate-2": "nothing", "plate-3": "0" });
  expect(sent.map(({ path, body }) => [path, body.question, body.choice])).toEqual([
    ["/api/session/plates/kept/", "filter", "off"],
    ["/api/session/plates/kept/", "plate-1", "7"],
    ["/api/session/plates/kept/", "plate-2", "nothing"],
    ["/api/session/plates/kept/", "plate-3", "0"],
  ]);
});

test("a digit is printed once on its button, none with its key", async () => {
  await open();
  await start();
  await shown(1);
  const said = [...document.querySelectorAll(".answer")].map((each) =>
    [...each.children].filter((part) => !(part as HTMLElement).hidden).map((part) => part.textContent),
  );
  expect(said).toEqual([...[..."0123456789"].map((digit) => [digit]), ["None", "N"]]);
});

test("what was kept is not asked again after a reload, nor the page before", async () => {
  const { sent, value } = await open({ filter: "off", "plate-1": "7" });
  await shown(2);
  press("3");
  await shown(3);
  press("4");
  expect(await value).toEqual({ filter: "off", "plate-1": "7", "plate-2": "3", "plate-3": "4" });
  expect(sent.map(({ body }) => body.question)).toEqual(["plate-2", "plate-3"]);
});

test("a held key answers one plate, not all", async () => {
  await open();
  await start();
  await shown(1);
  press("7");
  await shown(2);
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "7", repeat: true }));
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(find(".line").textContent).toContain("Picture 2 of 3");
});

test("the page waits for the question about filters", async () => {
  await open();
  await until(() => document.querySelector("form"));
  find<HTMLButtonElement>(".button.primary").click();
  expect(find(".complaint").textContent).not.toBe("");
  expect(document.querySelector(".board")).toBeNull();
});

test.each([
  ["before the first plate", async () => until(() => document.querySelector("form"))],
  ["in the middle", async () => start().then(() => shown(1))],
])("the check can be left out %s, and sends nothing then", async (_when, arrive) => {
  const { value, view } = await open();
  await arrive();
  const tool = find<HTMLButtonElement>(".tool, .sheet .link");
  expect(tool.textContent).toBe(view.desk.words.plates.leave_out);
  tool.click();
  find(".dialog .button.danger").click();
  expect(await value).toEqual({});
  expect(document.querySelector(".tool")).toBeNull();
});

test("it goes on if the person thinks better of it", async () => {
  const { value } = await open({ filter: "off", "plate-1": "7", "plate-2": "7" });
  await shown(3);
  find<HTMLButtonElement>(".tool").click();
  find(".dialog .button.primary").click();
  press("5");
  expect(await value).toMatchObject({ "plate-3": "5" });
});

test("an answer that the server refuses is left to the whole page, which the server refuses too", async () => {
  const { sent, value } = await open({}, 409);
  await start();
  await shown(1);
  press("7");
  expect(Object.keys(await value)).toContain("filter");
  expect(sent.length).toBeLessThan(4);
});

test("a plate that does not come is asked for again before it is answered", async () => {
  const { view } = await open();
  expect(view.page.questions).toHaveLength(4);
  const lost = vi.spyOn(view.desk.pictures, "load").mockResolvedValue({ failed: [media("plate-2")] });
  const again = platesPage(view);
  await start();
  await until(() => document.querySelector("[role=alert].short"));
  lost.mockRestore();
  find<HTMLButtonElement>("[role=alert] .button.primary").click();
  await shown(1);
  press("1");
  await shown(2);
  press("2");
  await shown(3);
  press("3");
  expect(await again).toMatchObject({ "plate-1": "1", "plate-2": "2", "plate-3": "3" });
});
