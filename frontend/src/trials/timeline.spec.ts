import { pressKey } from "@jspsych/test-utils";
import { openTrials, picturesOf } from "./block";
import { AnswerServer, desk, example, find, instructed, item, json, learn, media, predict, state, until } from "../cast";
import type { Desk } from "../frame/page-context";
import type { AnyTrial, State } from "../server/model";
import { CannotShow } from "../plugins/kind";
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
    ...{ index: 0, count: 1, first: 0, later: [] },
    trials: [learn(0), predict(1)],
    examples: [example("t0"), example("t9")],
  };
  const urls = picturesOf(block, [predict(1)]).map((media) => media.url);
  expect(urls).toEqual(["/m/i1", "/m/tile-t0", "/m/tilex-t0"]);
});

test("it loads the pictures of a kind that it knows nothing about, wherever they are", () => {
  const content = { pair: [media("a"), { image: media("b"), mark: null }], text: { tokens: [] }, choices: [] };
  const trial = { ...predict(0), kind: "sort", content };
  const urls = picturesOf({ index: 0, count: 1, first: 0, later: [], trials: [trial], examples: [example("t0")] }, [trial]);
  expect(urls.map((one) => one.url)).toEqual(["/m/a", "/m/b"]);
});

function blockOf(...trials: AnyTrial[]): State {
  const given = state();
  return { ...given, block: { ...given.block!, trials } };
}

test.each([
  ["a kind that it has never heard of", { ...predict(1), kind: "weigh" }, "weigh"],
  ["a name that every object has", { ...predict(1), kind: "constructor" }, "constructor"],
])("it shows nothing at all in place of %s", async (_what, trial, kind) => {
  const server = new AnswerServer();
  const given = await desk(server.fetch as typeof fetch);
  const before = document.body.innerHTML;
  const run = runBlock(given, blockOf(learn(0), trial), new AbortController().signal);
  const error = await run.catch((problem: unknown) => problem);
  expect(error).toBeInstanceOf(CannotShow);
  expect((error as CannotShow).kind).toBe(kind);
  expect(document.body.innerHTML).toBe(before);
  expect(server.stored).toHaveLength(0);
});

test("it does not mind a kind that it lacks among the trials that are answered", async () => {
  const server = new AnswerServer();
  server.stored.push(item(0));
  const given = await desk(server.fetch as typeof fetch);
  const { run } = await begin(given, { ...blockOf({ ...predict(0), kind: "weigh" }, predict(1)), next: 1 });
  find(".button.primary").click();
  await answer("f");
  await run;
  expect(server.stored[1]?.value).toEqual({ choice: "husky" });
});

test("it runs texts and instructed checks among the others", async () => {
  const server = new AnswerServer();
  const given = await desk(server.fetch as typeof fetch);
  const text = { tokens: [{ text: "a ", shade: null }, { text: "word", shade: 1 }] };
  const example = { ...learn(0), content: { ...learn(0).content, image: null, explanation: null, text } };
  const asked = { ...predict(1), content: { ...predict(1).content, image: null, text } };
  const { run } = await begin(given, blockOf(example, asked, instructed(2)));
  find(".button.primary").click();
  await until(() => document.querySelector(".text"));
  expect(find(".text p").textContent).toBe("a word");
  expect(document.querySelector(".place")).toBeNull();
  for (const key of [" ", "j", "3"]) await answer(key);
  await run;
  const values = server.stored.map((stored) => stored.value);
  expect(values).toEqual([{ seen: true }, { choice: "wolf" }, { choice: "3" }]);
});

test("it runs a block in order and stores every answer", async () => {
  const server = new AnswerServer();
  const given = await desk(server.fetch as typeof fetch);
  const { run } = await begin(given, state());
  expect(find("h1").textContent).toBe("Ready to start");
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

test("a preview of one trial goes straight to it, once", async () => {
  const server = new AnswerServer();
  const given = await desk(server.fetch as typeof fetch);
  history.replaceState(null, "", "?preview=signed&at=trial");
  const seen = state();
  const run = runBlock(given, { ...seen, study: { ...seen.study, origin: "preview" } }, new AbortController().signal);
  for (const key of [" ", " ", "f", "j"]) await answer(key);
  await run;
  expect(server.stored).toHaveLength(4);
  const again = await begin(await desk(new AnswerServer().fetch as typeof fetch), {
    ...{ ...seen, study: { ...seen.study, origin: "preview" } },
    next: 3,
  });
  history.replaceState(null, "", "?");
  expect(find("h1").textContent).toBe("Welcome back");
  again.stop.abort();
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

test("it says truthfully how far it is, and goes on by itself with each answer", async () => {
  const server = new AnswerServer();
  server.stored.push(item(0), item(1));
  const given = await desk(server.fetch as typeof fetch);
  // Two of four trials are answered: before them lies .4 of 8 minutes, and a trial is .125 of the whole.
  await begin(given, state({ next: 2, progress: { step: 5, steps: 6, done: 0.4, trials: 0.5, minutes: 8 } }));
  const now = (): string | null => find('[role="progressbar"]').getAttribute("aria-valuenow");
  expect(now()).toBe("40");
  expect(find(".line").textContent).toBe("Step 5 of 6 · about 5 minutes left");
  find(".button.primary").click();
  await answer("f");
  expect(now()).toBe("53");
  await until(() => document.querySelector(".answer"));
  expect(find(".line").textContent).toBe("Predicting · 2 of 2 · about 4 min left");
});

test("it names what comes by what it is: pages that ask for a key are no pictures", async () => {
  const given = await desk(new AnswerServer().fetch as typeof fetch);
  await begin(given, blockOf(learn(0), predict(1), instructed(2), predict(3)));
  expect([...document.querySelectorAll("li")].map((line) => line.textContent)).toEqual([
    "1 example with the machine's answer",
    "2 pictures where you predict the answer",
    "1 page that asks you to press a key",
  ]);
});

test("it says between two parts what is done, how long the rest takes, and that a pause is fine", async () => {
  const given = await desk(new AnswerServer().fetch as typeof fetch);
  const first = state();
  await begin(given, { ...first, block: { ...first.block!, index: 1, count: 3 } });
  const text = document.body.textContent;
  for (const said of ["1 of 3 parts", "about 5 minutes", "A short pause is fine"]) expect(text).toContain(said);
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

/** A server that hands out one trial at a time of a block of these; the state that a page joins with is its first. */
async function oneByOne(trials: AnyTrial[], changes: Partial<State["study"]> = {}) {
  const server = new AnswerServer();
  const asked: number[] = [];
  const whole = blockOf(...trials);
  const now = (): State => {
    const next = server.stored.length;
    const later = trials.slice(next + 1);
    const kinds = [...new Set(later.map(({ kind }) => kind))];
    const counted = kinds.map((kind) => ({ kind, phase: "test" as const, count: later.filter((each) => each.kind === kind).length }));
    const block = next < trials.length ? { ...whole.block!, trials: [trials[next]!], later: counted, count: 2 } : null;
    return { ...whole, block, next, total: trials.length + 1, study: { ...whole.study, ...changes } };
  };
  const fetching = async (input: unknown, init?: RequestInit): Promise<Response> => {
    if (!String(input).endsWith("session/") || server.offline) return server.fetch(input, init);
    asked.push(server.stored.length);
    return json(200, now());
  };
  const given = await desk(fetching as typeof fetch);
  return { server, given, asked, first: now() };
}

const judged = [{ value: "accept", text: "Accept", key: "f" }, { value: "reject", text: "Reject", key: "j" }]; // prettier-ignore

function review(position: number): AnyTrial {
  const content = { image: media(`i${position}`), mark: null, text: null, answer: `${position}`, choices: judged };
  return { id: `t${position}`, position, kind: "review", phase: "test", content };
}

test("what is handed out one at a time follows without a page between, and counts as one block", async () => {
  const { server, given, asked, first } = await oneByOne([review(0), review(1), instructed(2), review(3)]);
  const { run } = await begin(given, first);
  expect([...document.querySelectorAll("li")].map((line) => line.textContent)).toEqual([
    "3 pictures where you predict the answer",
    "1 page that asks you to press a key",
  ]);
  const pages: string[] = [];
  const watch = new MutationObserver(() => pages.push(find("main").textContent.trim()));
  find(".button.primary").click();
  await until(() => document.querySelector(".board"));
  watch.observe(find("main"), { childList: true, subtree: true });
  const lines: string[] = [];
  for (const key of ["f", "j", "3", "f"]) {
    await until(() => document.querySelector(".answer") && isActive());
    lines.push(find(".line").textContent);
    await answer(key);
  }
  await run;
  expect(server.stored.map((stored) => stored.value)).toEqual([{ accept: true }, { accept: false }, { choice: "3" }, { accept: true }]);
  // After the last one of the block nothing is asked for here: where the session stands is for the journey.
  expect(asked).toEqual([1, 2, 3]);
  expect(lines.map((line) => line.split(" · ").slice(0, 2).join(" · "))).toEqual([
    "Part 1 of 2 · Task 1 of 4", "Part 1 of 2 · Task 2 of 4", "Part 1 of 2 · Predicting", "Part 1 of 2 · Task 4 of 4",
  ]); // prettier-ignore
  for (const shown of pages.slice(0, -1)) expect(shown === "" || /Answer: \d|Press|press/.test(shown), shown).toBe(true);
});

test("the blank between two of them covers the way to the server, and is no shorter", async () => {
  const { given, first } = await oneByOne([review(0), review(1)], { gap_ms: 250 });
  await begin(given, first);
  find(".button.primary").click();
  await until(() => document.querySelector(".answer") && isActive());
  const [board, loaded] = [find(".board"), vi.spyOn(given.pictures, "load")];
  // Seen when it happens: a busy machine asks later.
  const gone = new Promise<number>((resolve) => {
    const watch = new MutationObserver(() => {
      if (!board.isConnected) resolve(performance.now());
    });
    watch.observe(document.body, { childList: true, subtree: true });
  });
  await pressKey("f");
  const from_ms = await gone;
  await until(() => loaded.mock.results.length > 0);
  await loaded.mock.results[0]!.value;
  // Decoded while the page is still blank.
  expect([document.querySelector(".board"), find("main").textContent.trim()]).toEqual([null, ""]);
  await until(() => document.querySelector(".board"));
  expect(performance.now() - from_ms).toBeGreaterThanOrEqual(240);
});

test("without a network it says that it waits, keeps the answer, and comes back to a blank before the next one", async () => {
  const { server, given, first } = await oneByOne([review(0), review(1)], { gap_ms: 60 });
  await begin(given, first);
  find(".button.primary").click();
  await until(() => document.querySelector(".answer") && isActive());
  server.offline = true;
  await answer("f");
  await until(() => document.querySelector(".wait"));
  expect([find(".wait").textContent, find(".strip").textContent]).toEqual([
    "One moment…", "You are offline. 1 answer is kept here; please leave this page open.",
  ]); // prettier-ignore
  const seen: string[] = [];
  new MutationObserver(() => seen.push(document.querySelector(".wait") ? "wait" : document.querySelector(".board") ? "board" : "blank")).observe(find("main"), { childList: true, subtree: true }); // prettier-ignore
  server.offline = false;
  await until(() => document.querySelector(".board"));
  expect([...new Set(seen)]).toEqual(["blank", "board"]);
});

test("a reload in the middle of them comes back, and says where", async () => {
  const { server, given } = await oneByOne([review(0), review(1)]);
  server.stored.push(item(0));
  const again = (await given.api.state()) as { value: State };
  await begin(given, again.value);
  expect(find("h1").textContent).toBe("Welcome back");
  expect(find("main").textContent).toContain("number 2 of 3");
});

test("it says when pictures do not load and tries again on request", async () => {
  const given = await desk(new AnswerServer().fetch as typeof fetch);
  const { Pictures } = await import("../server/media");
  let broken = true;
  const load = async (): Promise<HTMLImageElement> => {
    if (broken) throw new Error("no picture");
    return new Image();
  };
  given.pictures = new Pictures({ load, tries: 2, wait: () => Promise.resolve() });
  void runBlock(given, state(), new AbortController().signal);
  await until(() => document.querySelector('[role="alert"]'));
  expect(find("h1").textContent).toBe("Not all pictures were loaded");
  broken = false;
  find(".button.primary").click();
  await until(() => document.querySelector('[data-page="block"] .button:not([disabled])'));
});

test.each([
  ["test", [false, true, false]],
  ["all", [true, true, false]],
] as const)("mark and limit are for the phases that the study names (%s), and never for a check", async (phases, staged) => {
  vi.spyOn(HTMLCanvasElement.prototype, "getContext").mockReturnValue(null);
  const server = new AnswerServer();
  const given = await desk(server.fetch as typeof fetch);
  const from = blockOf(learn(0), predict(1), instructed(2));
  const presentation = { ...from.study.presentation, fixation_ms: 20, exposure_ms: 20, mask_ms: 20, phases };
  const { run } = await begin(given, { ...from, study: { ...from.study, presentation } });
  find(".button.primary").click();
  for (const [index, key] of [" ", "f", "3"].entries()) {
    await until(() => document.querySelector(".answer") && isActive());
    expect(document.querySelector(".staged") !== null).toBe(staged[index]);
    if (staged[index]) await until(() => document.querySelector('[data-sight="empty"]'));
    await answer(key);
  }
  await run;
  expect(server.stored.map((stored) => stored.context?.frames !== undefined)).toEqual([true, true, true]);
});

test("the display is measured once for a page, and told", async () => {
  const told: unknown[] = [];
  const server = new AnswerServer();
  const given = await desk(server.fetch as typeof fetch);
  given.events.add = (kind, data) => void told.push([kind, Object.keys(data ?? {})]);
  for (const position of [0, 1]) {
    const from = blockOf(predict(position));
    const presentation = { ...from.study.presentation, fixation_ms: 20 };
    const { run } = await begin(given, { ...from, next: position, study: { ...from.study, presentation } });
    find(".button.primary").click();
    await answer("f");
    await run;
  }
  expect(told).toEqual([["display", ["refresh_ms"]]]);
});
