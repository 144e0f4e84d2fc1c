import "fake-indexeddb/auto";
import { until } from "../cast";
import { Draft } from "./draft";
import { openStorage, type Storage } from "../server/storage";

/** The note, once it has these words. */
async function note(storage: Storage, words: string): Promise<void> {
  while (!(await storage.read("draft"))?.includes(words)) await new Promise((resolve) => setTimeout(resolve, 1));
}

test("what was begun of a trial is there for the next page, and for no other trial", async () => {
  const draft = await Draft.open(await openStorage("a"));
  draft.keep("t1", "one");
  draft.keep("t1", "two");
  const storage = await openStorage("a");
  await note(storage, "two");
  const again = await Draft.open(storage);
  expect([again.of("t1"), again.of("t2")]).toEqual(["two", null]);
  expect((await Draft.open(await openStorage("b"))).of("t1")).toBeNull();
});

test("an answered trial leaves nothing behind", async () => {
  const storage = await openStorage("c");
  const draft = await Draft.open(storage);
  draft.keep("t1", "one");
  draft.drop();
  await note(storage, "null");
  expect([draft.of("t1"), (await Draft.open(storage)).of("t1")]).toEqual([null, null]);
});

/** A storage that takes each note only when it is told to. */
function slow() {
  const written: string[] = [];
  let release = (): void => undefined;
  const write = (_name: string, text: string): Promise<void> => {
    written.push(text);
    return new Promise((resolve) => (release = resolve));
  };
  const storage = { survivesReload: true, read: async () => null, write } as unknown as Storage;
  return { written, storage, release: () => release() };
}

test("of many changes while one is written, the newest alone follows", async () => {
  const { written, storage, release } = slow();
  const draft = await Draft.open(storage);
  for (const text of ["a", "b", "c", "d"]) draft.keep("t", text);
  expect(written.map((text) => JSON.parse(text).text)).toEqual(["a"]);
  release();
  await until(() => written.length === 2);
  expect(JSON.parse(written[1]!).text).toBe("d");
});

test("a full disk stops nobody, and what only memory holds is at risk", async () => {
  const write = () => Promise.reject(new Error("full"));
  const storage = { survivesReload: false, read: async () => null, write } as unknown as Storage;
  const draft = await Draft.open(storage);
  expect(draft.isAtRisk).toBe(false);
  draft.keep("t", "one");
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect([draft.of("t"), draft.isAtRisk]).toEqual(["one", true]);
});
