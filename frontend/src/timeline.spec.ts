import { pressKey } from "@jspsych/test-utils";
import { openTrials, picturesOf } from "./block";
import { AnswerServer, desk, example, find, item, learn, predict, state, until } from "./cast";
import type { Desk } from "./desk";
import type { State } from "./model";
import { runBlock } from "./timeline";

const isActive = (): boolean => !find(".answer").hasAttribute("aria-disabled");

async function answer(key: string): Promise<void> {
  await until(() => document.querySelector(".answer") && isActive());
  const board = find(".board");
  await pressKey(key);
  await until(() => !board.isConnected);
}

async function begin(given: Desk, from: State) {
  const stop = new AbortController();
  let over = false;
  const run = runBlock(given, from, stop.signal).then(() => (over = true));
  await until(() => document.querySelector(".button.primary:not([disabled])"));
  return { stop, run, isOver: () => over };
}

test("it leaves out what the server has and what waits in the outbox", () => {
  const trials = openTrials(state({ next: 1 }), (id) => id === "t1");
  expect(trials.map((trial) => trial.id)).toEqual(["t2", "t3"]);
});

test("it loads the pictures of the remaining trials and of their examples, and no others", () => {
  const block = {
    index: 0,
    count: 1,
    trials: [learn(0), predict(1)],
    examples: [example("t0"), example("t9")],
  };
  const urls = picturesOf(block, [predict(1)]).map((media) => media.url);
  expect(urls).toEqual(["/m/i1", "/m/tile-t0", "/m/tilex-t0"]);
});

test("it runs a block in order and stores every answer", async () => {
  const server = new AnswerServer();
  const given = await desk(server.fetch as typeof fetch);
  const { run } = await begin(given, state());
  expect(find("h1").textContent).toBe("Part 1 of 1");
  find(".button.primary").click();
  for (const key of [" ", " ", "f", "j"]) await answer(key);
  await run;
  const values = server.stored.map((stored) => stored.value);
  expect(values).toEqual([{ seen: true }, { seen: true }, { choice: "husky" }, { choice: "wolf" }]);
  expect(server.stored[2]?.context).toMatchObject({
    input: "keyboard",
    side: "left",
    focus_losses: 0,
    reloads: 0,
  });
});

test("it resumes after a reload at the trial that is next", async () => {
  const server = new AnswerServer();
  server.stored.push(item(0), item(1), item(2));
  const given = { ...(await desk(server.fetch as typeof fetch)), reloads: 1 };
  const { run } = await begin(given, state({ next: 3 }));
  expect(find("h1").textContent).toBe("Welcome back");
  expect(document.body.textContent).toContain("number 4 of 4");
  find(".button.primary").click();
  await answer("j");
  await run;
  expect(server.stored).toHaveLength(4);
  expect(server.stored[3]?.context?.reloads).toBe(1);
});

test("it says truthfully how far it is", async () => {
  const given = await desk(new AnswerServer().fetch as typeof fetch);
  await begin(given, state({ next: 3 }));
  const bar = find('[role="progressbar"]');
  expect([bar.getAttribute("aria-valuenow"), bar.getAttribute("aria-valuemax")]).toEqual(["3", "4"]);
});

test("it goes on without a network and waits for it at the end of the block", async () => {
  const server = new AnswerServer();
  server.stored.push(item(0), item(1));
  const given = await desk(server.fetch as typeof fetch);
  const { run, isOver } = await begin(given, state({ next: 2 }));
  find(".button.primary").click();
  server.offline = true;
  await answer("f");
  await answer("j");
  await until(() => !find(".strip").hidden);
  expect(find(".strip").textContent).toContain("2 answers are kept here");
  expect(isOver()).toBe(false);
  server.offline = false;
  await run;
  expect(server.stored).toHaveLength(4);
  expect(find(".strip").hidden).toBe(true);
});

test("it stops at once, without an answer, when the server goes first", async () => {
  const server = new AnswerServer();
  const given = await desk(server.fetch as typeof fetch);
  const { run, stop } = await begin(given, state());
  find(".button.primary").click();
  await until(() => document.querySelector(".answer"));
  stop.abort();
  await run;
  expect(given.outbox.count).toBe(0);
  expect(server.stored).toHaveLength(0);
});

test("it says when pictures do not load and tries again on request", async () => {
  const given = await desk(new AnswerServer().fetch as typeof fetch);
  const { Pictures } = await import("./media");
  let broken = true;
  const load = async (): Promise<HTMLImageElement> => {
    if (broken) throw new Error("no picture");
    return new Image();
  };
  given.pictures = new Pictures({ load, tries: 2, wait: () => Promise.resolve() });
  void runBlock(given, state(), new AbortController().signal);
  await until(() => document.querySelector('[role="alert"]'));
  expect(find("h1").textContent).toBe("Some pictures did not load");
  broken = false;
  find(".button.primary").click();
  await until(() => document.querySelector('[data-page="block"] .button:not([disabled])'));
});
