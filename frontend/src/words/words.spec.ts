// @vitest-environment node
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LANGUAGES, wordsFor } from "./index";
import { en } from "./en";
import { withPhrases } from "./override";

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
  for (const [name, leaf] of words) expect(said(leaf).trim(), name).not.toBe("");
});

test("it has no English sentence left in German", () => {
  const german = leaves(LANGUAGES["de"]!);
  const same = [...leaves(en)].filter(
    ([name, leaf]) => said(leaf).includes(" ") && said(german.get(name)) === said(leaf),
  );
  expect(same.map(([name]) => name)).toEqual([]);
});

/** Pages that blind studies do not have, and the name of a picture that their trials never show. */
const ELSEWHERE = /^\.(rating|training|decide)\.|^\.trial\.explanation$/;
const TELLING = /\bA\.?I\b|\bK\.?I\b|model|machine|predict|expla|legib|maschine|vorhers|erklär/i;

/** What the server says in place of the page's phrases in blind studies, from its own table. */
function blindPhrases(code: string): Record<string, string> {
  const file = join(import.meta.dirname, "../../../experiments/words", `${code}.toml`);
  const [, table = ""] = readFileSync(file, "utf8").split("[page.blind_review]\n");
  const rows = table.split("\n[")[0]!.matchAll(/^"([\w.]+)" = (".*")$/gm);
  return Object.fromEntries([...rows].map(([, key, text]) => [key!, JSON.parse(text!) as string]));
}

test.each(Object.keys(LANGUAGES))("no word of a blind study tells who or what gave an answer, in %s", (code) => {
  const phrases = blindPhrases(code);
  expect(Object.keys(phrases).length).toBeGreaterThan(10);
  const telling = (words: Tree): string[] =>
    [...leaves(words)].filter(([name, leaf]) => !ELSEWHERE.test(name) && TELLING.test(said(leaf))).map(([name]) => name);
  expect(telling(withPhrases(LANGUAGES[code]!, phrases))).toEqual([]);
  // Without its phrases there are some: the words above are found.
  expect(telling(LANGUAGES[code]!).length).toBeGreaterThan(5);
});

test("it counts in words that fit one and many", () => {
  for (const words of Object.values(LANGUAGES)) {
    expect(words.offline(1)).not.toBe(words.offline(2).replace("2", "1"));
    expect(words.offline(0)).not.toContain("0");
  }
  expect(en.offline(3)).toBe("You are offline. 3 answers are kept here; please leave this page open.");
});

test("it finds a language by its tag and falls back to English", () => {
  expect(wordsFor("de-AT").code).toBe("de");
  expect(wordsFor("xx").code).toBe("en");
});
