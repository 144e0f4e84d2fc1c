import { expect, test } from "vitest";
import { Keys, mistakeIn, printed } from "./keys";
import { openStorage } from "../server/storage";

const CHECK = ["d", "f", "j", "k"];

test("it answers with the study's keys until others are chosen", () => {
  const keys = new Keys();
  expect(keys.for(["f", "j"])).toEqual(["f", "j"]);
  keys.choose(["f", "j"], ["A", "s"]);
  expect(keys.for(["f", "j"])).toEqual(["a", "s"]);
  expect(keys.replaces(["f", "j"])).toBe(true);
  expect(keys.for([" "])).toEqual([" "]);
  keys.choose(["f", "j"], ["f", "j"]);
  expect(keys.replaces(["f", "j"])).toBe(false);
});

test.each([
  [["a", "s"], ["d", "a", "s", "k"]],
  [["d", "j"], ["f", "d", "j", "k"]],
  [["j", "f"], ["d", "j", "f", "k"]],
  [["j", "k"], ["d", "j", "k", "f"]],
  [["d", "k"], ["f", "d", "k", "j"]],
])("a board with more keys has each of them once: %s", (mine, expected) => {
  const keys = new Keys();
  keys.choose(["f", "j"], mine);
  expect(keys.for(CHECK)).toEqual(expected);
  expect(new Set(keys.for(CHECK)).size).toBe(CHECK.length);
});

test.each([
  [["a", "s"], null],
  [["ф", "я"], null],
  [["1", "2"], null],
  [["a", "A"], "clash"],
  [["a", " "], "unusable"],
  [["a", "/"], "unusable"],
  [["a", "Tab"], "unusable"],
  [["a", ""], "unusable"],
])("it tells keys that do not do: %s", (mine, mistake) => {
  expect(mistakeIn(mine)).toBe(mistake);
});

test("it keeps them over a reload, and forgets those of another study", async () => {
  const storage = await openStorage("keys");
  const before = new Keys();
  before.choose(["f", "j"], ["a", "s"]);
  await before.save(storage);
  const after = new Keys();
  await after.restore(storage, ["f", "j"]);
  expect(after.for(["f", "j"])).toEqual(["a", "s"]);
  await after.restore(storage, ["1", "2", "3"]);
  expect(after.for(["1", "2", "3"])).toEqual(["1", "2", "3"]);
});

test("it tells the boards at once", () => {
  const keys = new Keys();
  let heard = 0;
  const stop = keys.listen(() => (heard += 1));
  keys.choose(["f", "j"], ["a", "s"]);
  stop();
  keys.choose(["f", "j"], ["f", "j"]);
  expect(heard).toBe(1);
});

test("a letter is printed as a capital if that is one character", () => {
  expect([printed("f"), printed("ß"), printed("я"), printed("7")]).toEqual(["F", "ß", "Я", "7"]);
});
