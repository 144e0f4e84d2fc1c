import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { desk, find, until } from "../cast";
import type { Exit } from "../server/model";
import { de, en } from "../words";
import { finishPage, type Ending } from "./finish";

const STUDIES = join(process.cwd(), "..", "experiments", "studies");
const debriefs = readdirSync(STUDIES).map((slug) => readFileSync(join(STUDIES, slug, "debrief.md"), "utf8"));
const none: Exit = { method: "none", url: "", fields: {} };
const exits: Record<string, Exit> = {
  "a way back with a code": { method: "GET", url: "https://platform.example/complete?cc=C1A9X7QP", fields: {} },
  "a way back without a code": { method: "GET", url: "https://panel.example/done", fields: {} },
  "a form": { method: "POST", url: "https://platform.example/submit", fields: { completion: "C" } },
  "a code to be typed": { ...none, fields: { code: "C1" } },
  "no way back": none,
};
/** What an exit may speak of, and what must then be on the page. The platform's own button is not ours to show. */
const CONTROLS: [RegExp, string][] = [
  [/\bcode\b|\babschlusscode\b/i, ".code"],
  [/\bbutton\b|\bknopf\b|\bschaltfläche\b/i, ".return .button, .remove .button"],
  [/\blink\b/i, "a[href]"],
  [/\bbelow\b|\bunten\b/i, ".remove"],
  [/decide again\. If|noch einmal entscheiden\. Wenn/i, ".remove .button"],
  [/\bin \d+ (seconds?|Sekunden?)/i, ".return"],
];
const ENDINGS = Object.keys(exits).flatMap((exit) =>
  [true, false].flatMap((asks) => [true, false].map((framed) => ({ exit, asks, framed }))),
);

async function show(words: typeof en, changes: Partial<Ending>): Promise<void> {
  const given = { ...(await desk(fetch)), words };
  const plain: Ending = { title: "T", html: null, stored: 4, exit: none, pay: [], remove: null, invite: null, check: null };
  finishPage(given, { ...plain, ...changes }, () => undefined);
}

afterEach(() => vi.restoreAllMocks());

test.each([
  ["English", en],
  ["German", de],
])("no exit speaks of a control that it lacks, in %s and with every shipped debrief", async (_name, words) => {
  expect(debriefs.length).toBeGreaterThan(3);
  for (const { exit, asks, framed } of ENDINGS)
    for (const html of [null, `<p>${words.finish.left}</p>`, ...debriefs]) {
      if (framed) vi.spyOn(window, "parent", "get").mockReturnValue({} as Window);
      const remove = asks ? async (): Promise<boolean> => true : null;
      await show(words, { html, exit: exits[exit]!, remove, pay: ["1.40 USD"] });
      const text = find("main").textContent!.replace(words.finish.give_back, "");
      for (const [phrase, control] of CONTROLS)
        if (phrase.test(text)) expect(document.querySelector(control), `${exit}: ${phrase}`).not.toBeNull();
      vi.restoreAllMocks();
    }
});

test("it finds a planted promise", async () => {
  await show(en, { html: "<p>You may decide again, below.</p>" });
  const missing = CONTROLS.filter(([phrase, control]) => phrase.test(find("main").textContent!) && !document.querySelector(control));
  expect(missing.map(([, control]) => control)).toEqual([".remove"]);
});

test("it says what silence means, and of money only where something is paid", async () => {
  const remove = async (): Promise<boolean> => true;
  await show(en, { remove });
  expect(find(".remove p").textContent).toContain("If you choose neither, your answers are used.");
  expect(find("main").textContent).not.toMatch(/pay/i);
  await show(en, { remove, pay: ["You are paid 1.40 USD."] });
  expect(find(".remove p").textContent).toContain("Your payment does not depend on it.");
  expect(find(".pay").textContent).toBe("You are paid 1.40\u00a0USD.");
});

test.each([en, de])("every exit says what to do next", async (words) => {
  const { close, give_back, back, hand_in } = words.finish;
  for (const { exit, framed } of ENDINGS) {
    if (framed) vi.spyOn(window, "parent", "get").mockReturnValue({} as Window);
    await show(words, { exit: exits[exit]! });
    const text = find("main").textContent!;
    expect([close, give_back, back, hand_in].filter((said) => text.includes(said)), exit).toHaveLength(1);
    vi.restoreAllMocks();
  }
});

test("the result of the check comes only when it is asked for, and stops the way back", async () => {
  const check = vi.fn(async () => "<p>Not a diagnosis.</p>");
  await show(en, { exit: exits["a way back without a code"]!, check });
  expect(find("main").textContent).not.toContain("diagnosis");
  expect(check).not.toHaveBeenCalled();
  find(".check .button").click();
  await until(() => find(".check").textContent?.includes("Not a diagnosis."));
  expect(check).toHaveBeenCalledOnce();
  expect(find(".return").textContent).toContain(en.finish.stayed);
  expect(document.querySelector(".check .button")).toBeNull();
});

test("a result that does not come can be asked for again", async () => {
  const html = vi.fn<() => Promise<string | null>>().mockResolvedValueOnce(null).mockResolvedValue("<p>Here.</p>");
  await show(en, { check: html });
  find(".check .button").click();
  await until(() => find(".check").textContent?.includes(en.finish.check_failed));
  find(".check .button").click();
  await until(() => find(".check").textContent?.includes("Here."));
});

test.each([
  [true, 0, en.finish.invited],
  [false, 1, en.finish.not_invited],
])("it asks once whether the person may be invited: %s", async (agree, place, said) => {
  const invite = vi.fn(async () => true);
  await show(en, { invite });
  document.querySelectorAll<HTMLElement>(".invite .button")[place]!.click();
  await until(() => find(".invite").textContent?.includes(said));
  expect(invite).toHaveBeenCalledWith(agree);
  expect(document.querySelector(".invite .button")).toBeNull();
});

test("an answer that was not stored can be given again", async () => {
  await show(en, { invite: async () => false });
  find(".invite .button").click();
  await until(() => find(".invite").textContent?.includes(en.finish.invite_failed));
  expect(document.querySelectorAll(".invite .button")).toHaveLength(2);
});
