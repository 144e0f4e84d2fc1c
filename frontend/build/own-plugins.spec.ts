// @vitest-environment node
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";
import { namesIn, VARIABLE } from "./own-plugins.ts";

const FRONTEND = join(import.meta.dirname, "..");
let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "own-plugins-"));
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

/** What the build says against the lab's index.ts; "" if it builds. */
async function built(index: string | null, named = folder): Promise<string> {
  if (index !== null) writeFileSync(join(folder, "index.ts"), index);
  vi.stubEnv(VARIABLE, named);
  const configFile = join(FRONTEND, "vite.config.ts");
  const config = { root: FRONTEND, configFile, logLevel: "silent" as const, build: { write: false } };
  return build(config).then(
    () => "",
    (error: Error) => error.message,
  );
}

test("it builds without a lab's folder", async () => {
  expect(await built(null, "")).toBe("");
});

test("it builds names that the core does not have", async () => {
  expect(await built("export const kinds = { weigh: {} }; export const gates: Record<string, unknown> = {};")).toBe("");
  expect(await built('export const kinds = { "sort-2": {} } satisfies object; export const gates = {};')).toBe("");
});

test.each([
  ["export const kinds = { learn: {} }; export const gates = {};", 'learn is a trial kind of the core (learn, '],
  ["export const kinds = {}; export const gates = { plates: {} };", 'plates is a gate of the core (device, '],
  ["const rate = {}; export const kinds = { weigh: {}, rate }; export const gates = {};", 'rate is a trial kind'],
])("it refuses %s", async (index, said) => {
  const message = await built(index);
  expect(message).toContain(said);
  expect(message).toContain("take another name.");
});

test.each([
  ["a table that is made elsewhere", "export const kinds = Object.fromEntries([]); export const gates = {};", "kinds"],
  ["a table that takes over another", "const a = {}; export const kinds = { ...a }; export const gates = {};", "kinds"],
  ["a name that is computed", 'const a = "b"; export const kinds = { [a]: 1 }; export const gates = {};', "kinds"],
  ["a table that is missing", "export const kinds = {};", "gates"],
])("it refuses %s, as its names cannot be read", async (_what, index, name) => {
  expect(await built(index)).toContain(`must say \`export const ${name} = { … }\``);
});

test("it refuses a folder without an index.ts", async () => {
  const message = await built(null);
  expect(message).toContain(`${VARIABLE}=${folder}: there is no `);
  expect(message).toContain("name a folder that has one");
});

test("it reads the core's names from the tables that the page uses", () => {
  const names = (file: string, name: string): string[] | null => namesIn(join(FRONTEND, "src", file), name);
  expect(names("plugins/kinds.ts", "KINDS")).toEqual(["learn", "predict", "instructed", "review", "solve", "rate", "decide"]);
  const gates = ["device", "consent", "plates", "instructions", "quiz", "practice", "training", "questions", "screen"];
  expect(names("pages/gates/index.ts", "GATES")).toEqual(gates);
});
