/** The page between trials whose answers are revealed and those that follow without. */
import { pressKey } from "@jspsych/test-utils";
import { AnswerServer, desk, find, guess, instructed, learn, predict, state, until } from "../cast";
import type { AnyTrial, State } from "../server/model";
import { openStorage, type Storage } from "../server/storage";
import { runBlock } from "./timeline";
import { untoldOf } from "./feedback-pending";

const TRIALS = [guess(0), guess(1), predict(2), instructed(3), predict(4)];
const PAGE = '[data-page="untold"]';

function blockOf(trials: AnyTrial[], server: AnswerServer): State {
  const given = state();
  const newest = server.stored.at(-1);
  const feedback = newest === undefined ? null : server.feedback(newest.trial);
  const block = { ...given.block!, trials, examples: [] };
  return { ...given, next: server.stored.length, total: trials.length, feedback, block };
}

function telling(): AnswerServer {
  const server = new AnswerServer();
  Object.assign(server.labels, { t0: "Wolf", t1: "Husky" });
  return server;
}

/** The page as it is opened, also anew; its first page is left standing. */
async function opened(server: AnswerServer, storage: Storage, trials: AnyTrial[] = TRIALS) {
  const given = await desk(server.fetch as typeof fetch, () => undefined, storage);
  const stop = new AbortController();
  const run = runBlock(given, blockOf(trials, server), stop.signal);
  await until(() => document.querySelector(".button.primary:not([disabled])"));
  return { given, stop, run };
}

async function press(key: string): Promise<void> {
  await until(() => document.querySelector(".answer:not([aria-disabled])"));
  const board = find(".board");
  await pressKey(key);
  await until(() => !board.isConnected || board.querySelector(".next"));
}

async function guessAndPass(): Promise<void> {
  await press("f");
  const board = find(".board");
  await pressKey(" ");
  await until(() => !board.isConnected);
}

const title = (): string => find("h1").textContent;
const listed = (): string[] => [...document.querySelectorAll("li")].map((line) => line.textContent);

test("after the last reveal it says what was, what comes, and that no answer is told", async () => {
  const server = telling();
  const { run } = await opened(server, await openStorage("between"));
  expect(title()).toBe("Ready to start");
  find(".button.primary").click();
  await guessAndPass();
  expect(document.querySelector(PAGE)).toBeNull();
  await guessAndPass();
  expect(title()).toBe("Now without the answers");
  expect(find(PAGE).textContent).toContain("You have done 2 examples and saw the answer after each of them.");
  expect(find(PAGE).textContent).toContain("no answer is shown");
  expect(listed()).toEqual(["2 pictures where you predict the answer", "1 page that asks you to press a key"]);
  expect(document.activeElement).toBe(find(".button.primary"));
  // Of 5 trials, which are half of 8 minutes, 2 are done; before them lay .4 of all.
  expect(find(".line").textContent).toBe("Step 5 of 6 · about 3 minutes left");
  expect(find('[role="progressbar"]').getAttribute("aria-valuenow")).toBe("60");
  expect(server.stored).toHaveLength(2);
  const held = { key: "Enter", repeat: true, bubbles: true, cancelable: true };
  const isTaken = (changes: object): boolean =>
    find(".button.primary").dispatchEvent(new KeyboardEvent("keydown", { ...held, ...changes }));
  // A held key presses nothing, but it scrolls.
  expect([isTaken({}), isTaken({ repeat: false }), isTaken({ key: "ArrowDown" })]).toEqual([false, true, true]);
  find(".button.primary").click();
  for (const key of ["j", "3", "f"]) await press(key);
  await run;
  expect(server.stored.map(({ value }) => value["choice"])).toEqual(["husky", "husky", "wolf", "3", "husky"]);
  expect(server.stored[2]?.context).toMatchObject({ reloads: 0, focus_losses: 0 });
});

test("opened anew at this place, it comes once, in place of a welcome", async () => {
  const [server, storage] = [telling(), await openStorage("anew")];
  const first = await opened(server, storage);
  find(".button.primary").click();
  await guessAndPass();
  await guessAndPass();
  first.stop.abort();
  await first.run;
  const { run } = await opened(server, storage);
  expect(title()).toBe("Now without the answers");
  expect(find(PAGE).textContent).toContain("2 examples");
  find(".button.primary").click();
  await press("j");
  expect(document.querySelector(PAGE)).toBeNull();
  for (const key of ["3", "f"]) await press(key);
  await run;
  expect(server.stored).toHaveLength(5);
});

test("opened anew before the last reveal was passed, it waits for that", async () => {
  const [server, storage] = [telling(), await openStorage("unpassed")];
  const first = await opened(server, storage);
  find(".button.primary").click();
  await guessAndPass();
  await press("j");
  first.stop.abort();
  await first.run;
  await opened(server, storage);
  expect(title()).toBe("Welcome back");
  find(".button.primary").click();
  await until(() => document.querySelector(".next"));
  expect(find(".label").textContent).toBe("Husky");
  await pressKey(" ");
  await until(() => document.querySelector(PAGE));
  expect(server.stored).toHaveLength(2);
});

test("opened anew after it was passed, the person is welcomed and goes on", async () => {
  const [server, storage] = [telling(), await openStorage("passed")];
  const first = await opened(server, storage);
  find(".button.primary").click();
  await guessAndPass();
  await guessAndPass();
  find(".button.primary").click();
  await press("j");
  await until(() => server.stored.length === 3);
  first.stop.abort();
  await opened(server, storage);
  expect(title()).toBe("Welcome back");
  find(".button.primary").click();
  await until(() => document.querySelector(".answer"));
  expect(document.querySelector(PAGE)).toBeNull();
});

test("called off on it, nothing of the test is shown", async () => {
  const server = telling();
  const { run, stop } = await opened(server, await openStorage("off"));
  find(".button.primary").click();
  await guessAndPass();
  await guessAndPass();
  stop.abort();
  await run;
  expect(document.querySelector(".board")).toBeNull();
  expect(server.stored).toHaveLength(2);
});

test("a connection that is lost on it loses no answer", async () => {
  const server = telling();
  const { run } = await opened(server, await openStorage("lost"));
  find(".button.primary").click();
  await guessAndPass();
  await guessAndPass();
  server.offline = true;
  find(".button.primary").click();
  for (const key of ["j", "3", "f"]) await press(key);
  await until(() => find(".strip").textContent.includes("3 answers are kept here"));
  server.offline = false;
  await run;
  expect(server.stored).toHaveLength(5);
});

test("examples that show their answers at once are followed by the test at once", async () => {
  const server = new AnswerServer();
  const { run } = await opened(server, await openStorage("shown"), [learn(0), predict(1)]);
  find(".button.primary").click();
  await press(" ");
  expect(document.querySelector(PAGE)).toBeNull();
  await press("f");
  await run;
});

test("it stands after the last reveal of a block, and only before its test", async () => {
  const of = async (...trials: AnyTrial[]) => untoldOf(blockOf(trials, telling()).block!);
  expect(await of(predict(1), guess(0))).toEqual({ first: predict(1), told: 1 });
  expect(await of(guess(0), predict(1), guess(2), instructed(3))).toEqual({ first: instructed(3), told: 2 });
  expect(await of(guess(0), learn(1), predict(2))).toBeNull();
  expect(await of(guess(0), guess(1))).toBeNull();
  expect(await of(learn(0), predict(1))).toBeNull();
  const other = { ...learn(1), kind: "elsewhere" } as unknown as AnyTrial;
  expect(await of(other, guess(2), predict(3))).toEqual({ first: predict(3), told: 1 });
});
