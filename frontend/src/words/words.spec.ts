// @vitest-environment node
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { de, en, LANGUAGES, wordsFor } from "./index";
import type { Phrases } from "./phrases";

type Tree = { [key: string]: unknown };

function leaves(tree: Tree, path = ""): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (const [key, value] of Object.entries(tree)) {
    const here = `${path}.${key}`;
    if (typeof value === "object" && value !== null)
      leaves(value as Tree, here).forEach((leaf, name) => found.set(name, leaf));
    else found.set(here, value);
  }
  return found;
}

function said(leaf: unknown): string {
  return typeof leaf === "function" ? String((leaf as (...args: unknown[]) => unknown)(2, 3)) : String(leaf);
}

test.each(Object.keys(LANGUAGES))("it has every word in %s", (code) => {
  const words = leaves(LANGUAGES[code]!);
  expect([...words.keys()].sort()).toEqual([...leaves(en).keys()].sort());
  for (const [name, leaf] of words) {
    expect(said(leaf).trim(), name).not.toBe("");
    // Every place in braces is filled: the names in the table are those that the page gives.
    if (typeof leaf === "function") expect(String((leaf as (...args: unknown[]) => unknown)(2, 3, 4, 5))).not.toMatch(/[{}]/);
  }
});

test("it has no English sentence left in German", () => {
  const german = leaves(de);
  const same = [...leaves(en)].filter(
    ([name, leaf]) => said(leaf).includes(" ") && said(german.get(name)) === said(leaf),
  );
  expect(same.map(([name]) => name)).toEqual([]);
});

/** Pages that blind studies do not have, and the name of a picture that their trials never show. */
const ELSEWHERE = /^\.(rating|training|decide)\.|^\.trial\.explanation$/;
const TELLING = /\bA\.?I\b|\bK\.?I\b|model|machine|predict|expla|legib|maschine|vorhers|erklär/i;

/** What the server says in place of the page's phrases in blind studies, from its own table. */
function blindPhrases(code: string): Phrases {
  const file = join(import.meta.dirname, "../../../experiments/wording/words", `${code}.toml`);
  const [, table = ""] = readFileSync(file, "utf8").split("[page.blind_review]\n");
  const rows = table.split("\n[")[0]!.matchAll(/^"([\w.]+)" = (".*")$/gm);
  return Object.fromEntries([...rows].map(([, key, text]) => [key!, JSON.parse(text!) as string]));
}

test.each(Object.keys(LANGUAGES))("no word of a blind study tells who or what gave an answer, in %s", (code) => {
  const phrases = blindPhrases(code);
  expect(Object.keys(phrases).length).toBeGreaterThan(10);
  const telling = (words: Tree): string[] =>
    [...leaves(words)].filter(([name, leaf]) => !ELSEWHERE.test(name) && TELLING.test(said(leaf))).map(([name]) => name);
  expect(telling(wordsFor(code, {}, phrases))).toEqual([]);
  // Without its phrases there are some: the words above are found.
  expect(telling(LANGUAGES[code]!).length).toBeGreaterThan(5);
});

test("it counts in words that fit one and many", () => {
  for (const words of Object.values(LANGUAGES)) {
    expect(words.offline(1)).not.toBe(words.offline(2).replace("2", "1"));
    expect(words.offline(0)).not.toContain("0");
  }
  expect(en.offline(3)).toBe("You are offline. 3 answers are kept here; please leave this page open.");
  expect([en.attempts_left(1), en.attempts_left(2)]).toEqual(["This is your last try.", "You have 2 tries left."]);
  expect(en.form.number(null, 7)).toBe("Please enter a whole number of at most 7.");
  expect([en.left(0.5), en.left(1.2), en.left(3)]).toEqual(["less than a minute left", "about 1 minute left", "about 3 minutes left"]);
});

test("it finds a language by its tag and falls back to English", () => {
  expect(wordsFor("de-AT").code).toBe("de");
  expect(wordsFor("xx").code).toBe("en");
  expect(wordsFor("constructor").code).toBe("en");
});

test("it says a study's phrases, and leaves braces alone that are no argument", () => {
  const phrases = { "block.test.one": "{count} sentence", "block.test.other": "{count} {constructor}", "help.short": "New" };
  const words = wordsFor("en", {}, phrases);
  expect([words.block.test(1), words.block.test(2), words.help.short]).toEqual(["1 sentence", "2 {constructor}", "New"]);
  expect(words.block.train(2)).toBe(en.block.train(2));
  expect(en.help.short).not.toBe("New");
});

test.each(["trial", "leave.nothing", "constructor", "trial.nothing.more", "help.short.other", "leave.reasons.many", "block.test.1"])(
  "it does not replace %s, and says so",
  (path) => {
    const error = vi.spyOn(console, "error").mockImplementation(() => undefined);
    expect(JSON.stringify(wordsFor("en", {}, { [path]: "x" }))).toBe(JSON.stringify(en));
    expect(error.mock.calls[0]?.[0]).toContain(`"${path}" is no sentence`);
  },
);

/** A whole table of a language, of one sentence. */
function whole(forms: Phrases): Phrases {
  return Object.fromEntries(Object.entries(forms).map(([form, text]) => [`block.test.${form}`, text]));
}

test("a language of the study's own counts by its own rules", () => {
  // By CLDR: 21 is counted as 1, 3 and 22 as few, 5 and 11 as many.
  const russian = wordsFor("ru", whole({ one: "{count} картина", few: "{count} картины", many: "{count} картин", other: "{count} картины" }));
  expect([1, 21, 3, 22, 5, 11].map(russian.block.test)).toEqual(
    ["1 картина", "21 картина", "3 картины", "22 картины", "5 картин", "11 картин"],
  );
  const welsh = wordsFor("cy", whole({ zero: "dim", one: "un", two: "dau", few: "tri", many: "chwech", other: "{count}" }));
  expect([0, 1, 2, 3, 6, 7].map(welsh.block.test)).toEqual(["dim", "un", "dau", "tri", "chwech", "7"]);
});

test("a language of the study's own has its digits, its direction and its tag", () => {
  const words = wordsFor("ar-EG", { direction: "rtl", skip: "تخطي", step: "الخطوة {step} من {steps}" });
  expect([words.code, words.direction, words.skip]).toEqual(["ar-EG", "rtl", "تخطي"]);
  expect(words.step(2, 13)).toBe("الخطوة ٢ من ١٣");
  // What is printed on a key or a button stands as it is there.
  expect(words.rating.end(5, "x")).toBe("5, x");
});

/** The server's rules of languages: what a file must have, and which way its pages are written. */
const RULES = readFileSync(join(import.meta.dirname, "../../../experiments/wording/language_rules.toml"), "utf8");
const rows = (table: string): [string, string[]][] =>
  [...RULES.split(`[${table}]`)[1]!.split("\n[")[0]!.matchAll(/^"?([a-z_ ]+?)"? = "+\n?([^"]+)"/gm)].map(
    ([, key, text]) => [key!, text!.trim().split(/\s+/)],
  );

test("the server knows the forms of every language that the browser counts in", () => {
  const known = new Map(rows("forms").flatMap(([forms, tags]) => tags.map((tag) => [tag, forms] as const)));
  expect(known.size).toBeGreaterThan(200);
  for (const [tag, forms] of known) {
    const rules = new Intl.PluralRules(tag);
    const met = new Set(Array.from({ length: 2001 }, (_, count) => rules.select(count)));
    expect([...met].sort(), tag).toEqual(forms.split(" ").sort());
  }
});

test("the server knows which languages are written from right to left", () => {
  const { scripts = [], languages = [], regions = [], regions_left = [] } = Object.fromEntries(rows("right_to_left"));
  expect([scripts.length, languages.length, regions.length].every((count) => count > 8)).toBe(true);
  const isLeft = (tag: string): boolean => scripts.includes(new Intl.Locale(tag).maximize().script ?? "");
  expect([...languages, ...regions].filter((tag) => !isLeft(tag))).toEqual([]);
  expect(regions_left.filter(isLeft)).toEqual([]);
  for (const tag of ["ar", "fa", "he", "ur"]) expect(languages).toContain(tag);
  const counted = rows("forms").flatMap(([, tags]) => tags);
  expect(counted.filter((tag) => isLeft(tag) !== languages.includes(tag))).toEqual([]);
});
