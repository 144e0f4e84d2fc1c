// @vitest-environment node
import { LANGUAGES, wordsFor } from "./index";
import { en } from "./en";

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
