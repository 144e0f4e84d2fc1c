import { media } from "../cast";
import { Pictures } from "./media";

const wait = (): Promise<void> => Promise.resolve();

test("it loads a few at a time, each once, and tells how far it is", async () => {
  let now = 0;
  let most = 0;
  const load = async (): Promise<HTMLImageElement> => {
    now += 1;
    most = Math.max(most, now);
    await new Promise((resolve) => setTimeout(resolve, 1));
    now -= 1;
    return new Image();
  };
  const progress: string[] = [];
  const pictures = new Pictures({ load, wait, parallel: 3 });
  const wanted = ["a", "b", "c", "d", "e", "a"].map(media);
  const { failed } = await pictures.load(wanted, (done, total) => progress.push(`${done}/${total}`));
  expect(failed).toEqual([]);
  expect(most).toBe(3);
  expect(progress[0]).toBe("0/5");
  expect(progress.at(-1)).toBe("5/5");
});

test("it tries again, logs each try, and names what failed for good", async () => {
  const log: string[] = [];
  let flaky = 0;
  const load = async (wanted: { url: string }): Promise<HTMLImageElement> => {
    if (wanted.url === "/m/gone" || flaky++ === 0) throw new Error("broken");
    return new Image();
  };
  const pictures = new Pictures({ load, wait, tries: 2, parallel: 1, log: (kind) => log.push(kind) });
  const { failed } = await pictures.load([media("flaky"), media("gone")]);
  expect(failed.map((lost) => lost.url)).toEqual(["/m/gone"]);
  expect(log).toEqual(["media_retry", "media_retry", "media_failed"]);
});

test("it hands out the decoded picture itself", async () => {
  const decoded = new Image();
  const pictures = new Pictures({ load: async () => decoded, wait });
  await pictures.load([media("a")]);
  expect(pictures.element(media("a"))).toBe(decoded);
  expect(decoded.alt).toBe("Picture");
});
