// @vitest-environment node
import { en, type Words } from "./en";
import { LANGUAGES } from "./index";
import { OVERRIDABLE, withPhrases } from "./override";

function leaf(words: Words, key: string): unknown {
  return key.split(".").reduce<unknown>((tree, name) => (tree as Record<string, unknown>)[name], words);
}

test.each(Object.entries(OVERRIDABLE))("it knows %s in every language, with as many arguments", (key, names) => {
  for (const words of Object.values(LANGUAGES)) {
    const phrase = leaf(words, key);
    if (names.length === 0) expect(phrase).toEqual(expect.any(String));
    else expect((phrase as (...given: unknown[]) => string).length).toBe(names.length);
  }
});

test.each(Object.entries(OVERRIDABLE))("it replaces %s and nothing else", (key, names) => {
  const text = ["New", ...names.map((name) => `{${name}}`)].join(" ");
  const given = names.map((_, index) => index + 2);
  const words = withPhrases(en, { [key]: text });
  const phrase = leaf(words, key);
  const said = typeof phrase === "function" ? (phrase as (...given: number[]) => string)(...given) : phrase;
  expect(said).toBe(["New", ...given].join(" "));
  for (const other of Object.keys(OVERRIDABLE)) if (other !== key) expect(leaf(words, other)).toBe(leaf(en, other));
  expect(leaf(en, key)).not.toBe(phrase);
});

test("it says one and many", () => {
  const { block } = withPhrases(en, { "block.test": "{count} sentence to sort | {count} sentences to sort" });
  expect([block.test(1), block.test(2)]).toEqual(["1 sentence to sort", "2 sentences to sort"]);
});

test("it leaves braces alone that are no argument", () => {
  expect(withPhrases(en, { "block.test": "{count} {constructor}" }).block.test(3)).toBe("3 {constructor}");
});

test.each(["leave.title", "trial", "errors.full.title", "constructor", "trial.nothing"])(
  "it does not replace %s, and says so",
  (key) => {
    const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
    expect(withPhrases(en, { [key]: "x" })).toEqual(en);
    expect(said.mock.calls[0]?.[0]).toContain(`"${key}" is no phrase`);
  },
);
