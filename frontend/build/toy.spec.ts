/** The toy paradigm's kind and gate, built into the page as a lab would build them, and run from the built file. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { compileFunction, constants } from "node:vm";
import { find, json, media, page, question, state, until } from "../src/cast";
import type { State, Step } from "../src/server/model";

const FRONTEND = join(import.meta.dirname, "..");
const out = mkdtempSync(join(tmpdir(), "toy-page-"));

beforeAll(() => {
  const vite = join(FRONTEND, "node_modules/vite/bin/vite.js");
  const env = { ...process.env, NODE_ENV: "production", LEGIBLE_PLUGINS: "tests/toy/frontend" };
  const asked = ["build", "--outDir", out, "--emptyOutDir", "--logLevel", "error"];
  execFileSync(process.execPath, [vite, ...asked], { cwd: FRONTEND, env, stdio: "inherit" });
}, 60_000);

afterAll(() => rmSync(out, { recursive: true }));

const PROMISE = question({ id: "promise", prompt: "I will read every text to its end." });
const GATE = state({ step: "promise" as Step, page: page("promise", [PROMISE], "<h2>A promise</h2>"), block: null });
const NO_EXIT = { method: "none", url: "", fields: {} };
const END = state({ step: "finish", page: page("debrief"), block: null, next: 1 });

function sorting(): State {
  const choices = ["left", "right", "neither"].map((value, index) => ({ value, text: value, key: "fjk"[index]! }));
  const text = { tokens: [{ text: "It is ", shade: null }, { text: "slow", shade: 0.8 }] };
  const content = { text, pair: [media("a"), media("b")], choices };
  const trial = { id: "t0", position: 0, kind: "sort", phase: "test" as const, content };
  return state({ block: { index: 0, count: 1, first: 0, trials: [trial], later: [], examples: [] }, total: 1 });
}

/** A server that goes from the gate to one trial to the end. */
function serve() {
  const calls: { path: string; body: Record<string, unknown> }[] = [];
  let now = GATE;
  vi.stubGlobal("fetch", async (input: unknown, init?: RequestInit) => {
    const path = String(input).replace("/api/", "");
    if (init?.body) calls.push({ path, body: JSON.parse(String(init.body)) as Record<string, unknown> });
    if (path === "sessions/") return json(200, { token: "t", session: GATE, query: null, sitting: "toy" });
    if (path === "session/promise/") now = sorting();
    if (path === "session/responses/") now = END;
    if (path === "session/responses/") return json(200, { next: 1, step: "finish", feedback: {} });
    if (path === "session/finish/") return json(200, { debrief: null, exit: NO_EXIT, asks_again: false });
    return json(200, now);
  });
  return calls;
}

test("the built page asks the toy's gate and shows the toy's trial", async () => {
  const calls = serve();
  vi.stubGlobal("Image", class extends Image { override decode = (): Promise<void> => Promise.resolve(); });
  const built = new DOMParser().parseFromString(readFileSync(join(out, "index.html"), "utf8"), "text/html");
  const script = built.querySelector("script")!.getAttribute("src")!.replace("/static/participant/", "");
  built.querySelector("script")!.remove();
  built.querySelector("meta[name=study]")!.setAttribute("content", "{}");
  document.head.innerHTML = built.head.innerHTML;
  document.body.innerHTML = built.body.innerHTML;
  // By Node itself, and as modules: the files load each other, as they do in a browser.
  writeFileSync(join(out, "package.json"), '{ "type": "module" }');
  const loader = { importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER };
  const run = compileFunction("return import(address)", ["address"], loader) as (address: string) => Promise<unknown>;
  await run(pathToFileURL(join(out, script)).href);

  await until(() => document.querySelector('[data-page="promise"]'));
  find<HTMLFormElement>("form").requestSubmit();
  expect(find(".complaint").textContent).toBe("Please answer this question.");
  find<HTMLInputElement>('[name="promise"]').click();
  find<HTMLFormElement>("form").requestSubmit();

  await until(() => document.querySelector('[data-page="block"] .button:not([disabled])'));
  find(".button.primary").click();
  await until(() => document.querySelector(".answer:not([aria-disabled])"));
  expect(find(".text p").textContent).toBe("It is slow");
  expect(document.querySelectorAll(".side .picture img")).toHaveLength(2);
  expect([...document.querySelectorAll(".answer kbd")].map((key) => key.textContent)).toEqual(["F", "J", "K"]);
  find('[data-value="neither"]').click();

  await until(() => document.querySelector('[data-page="finish"]'));
  const sent = Object.fromEntries(calls.map((call) => [call.path, call.body]));
  expect(sent["session/promise/"]).toEqual({ digest: "digest-promise", value: { promise: true } });
  expect(sent["session/responses/"]).toMatchObject({ responses: [{ trial: "t0", value: { choice: "neither" } }] });
});
