import { find, json, refusal, state, until } from "./cast";
import { newAttempt, readConfig, start } from "./main";

function written(config: Record<string, unknown>): Document {
  const page = document.implementation.createHTMLDocument();
  const meta = page.createElement("meta");
  meta.name = "study";
  meta.content = JSON.stringify(config);
  page.head.append(meta);
  return page;
}

beforeEach(() => {
  document.head.innerHTML = '<meta name="study" content="{}">';
});

test("it reads what the server wrote, and does without the language and its sentences", () => {
  const config = { study: "wolf", platform: "prolific", api: "/api/" };
  const whole = { ...config, language: "uk", words: { skip: "Перейти" } };
  expect(readConfig(written(whole))).toEqual(whole);
  expect(readConfig(written(config))).toEqual({ ...config, language: "", words: {} });
});

test("it names each load of the page anew", () => {
  expect(newAttempt()).toMatch(/^[0-9a-f]{32}$/);
  expect(newAttempt()).not.toBe(newAttempt());
});

test.each([["via=k&resume=r", "?via=k&resume=r"], [null, "?SESSION_ID=s1"]])(
  "it puts an address that lasts (%s) into the address bar",
  async (query, search) => {
    history.replaceState(null, "", "?SESSION_ID=s1");
    const bodies: Record<string, unknown>[] = [];
    const ended = state({ step: "finish", page: null, block: null });
    vi.stubGlobal("fetch", async (_input: unknown, init?: RequestInit) => {
      bodies.push(JSON.parse(String(init?.body)) as Record<string, unknown>);
      return json(200, { token: "t", session: ended, query, sitting: "abc", debrief: null, exit: null, pay: [] });
    });
    document.body.innerHTML = '<div id="app"></div>';
    await start(find("#app"));
    await until(() => bodies.length > 1);
    expect(location.search).toBe(search);
    expect(bodies[0]).toMatchObject({ query: "SESSION_ID=s1" });
    expect(bodies[1]).toEqual({ comment: null, query: "SESSION_ID=s1" });
    vi.unstubAllGlobals();
  },
);

test("it goes on where the address bar may not be changed", async () => {
  vi.spyOn(history, "replaceState").mockImplementation(() => {
    throw new DOMException("no origin", "SecurityError");
  });
  const ended = state({ step: "finish", page: null, block: null });
  vi.stubGlobal("fetch", async () =>
    json(200, { token: "t", session: ended, query: "a=b", sitting: "abc", debrief: null, exit: null, pay: [] }),
  );
  document.body.innerHTML = '<div id="app"></div>';
  await start(find("#app"));
  await until(() => document.querySelector('[data-page="finish"]'));
  vi.unstubAllGlobals();
});

test("it speaks of the address where nobody has entered anything", async () => {
  vi.stubGlobal("fetch", async () => refusal(400, "invalid", { query: "lacks SESSION_ID" }));
  document.body.innerHTML = '<div id="app"></div>';
  await start(find("#app"));
  expect(find("h1").textContent).toBe("This address does not work");
  vi.unstubAllGlobals();
});

test("it says a study's own phrases in place of its own", async () => {
  const first = state();
  const words = { "phase.test": "Sorting", "block.test.one": "one text", "block.test.other": "{count} texts" };
  const session = { ...first, study: { ...first.study, words } };
  vi.stubGlobal("fetch", async () => json(200, { token: "t", session, query: null, sitting: "words" }));
  vi.stubGlobal("Image", class extends Image { override decode = (): Promise<void> => Promise.resolve(); });
  document.body.innerHTML = '<div id="app"></div>';
  void start(find("#app"));
  await until(() => document.querySelector('[data-page="block"]'));
  expect([...document.querySelectorAll("li")].map((line) => line.textContent)).toEqual([
    "2 examples with the machine's answer",
    "2 texts",
  ]);
  vi.unstubAllGlobals();
});
