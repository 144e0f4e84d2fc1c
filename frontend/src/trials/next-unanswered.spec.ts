/** A guess and its reveal, whatever comes between the two: a reload, a lost connection, another tab. */
import { pressKey } from "@jspsych/test-utils";
import type { Problem } from "../server/api";
import { AnswerServer, desk, find, guess, json, predict, refusal, state, until } from "../cast";
import type { Desk } from "../frame/page-context";
import { Journey } from "../journey";
import type { State } from "../server/model";
import { openStorage, type Storage } from "../server/storage";
import { runBlock } from "./timeline";

/** Two guesses and a test trial, after `next` answers that the server has. */
function block(server: AnswerServer): State {
  const given = state();
  const next = server.stored.length;
  const trials = [guess(0), guess(1), predict(2)];
  const newest = server.stored.at(-1);
  const feedback = newest === undefined ? null : server.feedback(newest.trial);
  return { ...given, next, total: 3, feedback, block: { ...given.block!, trials, examples: [] } };
}

function telling(): AnswerServer {
  const server = new AnswerServer();
  Object.assign(server.labels, { t0: "Wolf", t1: "Husky" });
  return server;
}

/** The page as it is opened, also anew: with what storage has kept, and what the server says now. */
async function opened(server: AnswerServer, storage: Storage) {
  const given = await desk(server.fetch as typeof fetch, () => undefined, storage);
  // What waits is sent while the first page stands there.
  void given.outbox.flush();
  return { given, ...(await started(given, block(server))) };
}

async function started(given: Desk, from: State) {
  const stop = new AbortController();
  const run = runBlock(given, from, stop.signal);
  await until(() => document.querySelector(".button.primary:not([disabled])"));
  find(".button.primary").click();
  await until(() => document.querySelector(".board"));
  return { stop, run };
}

async function press(key: string): Promise<void> {
  await until(() => document.querySelector(".answer:not([aria-disabled])"));
  await pressKey(key);
}

async function passReveal(): Promise<string> {
  await until(() => document.querySelector(".next"));
  const board = find(".board");
  const label = find(".ask .label").textContent;
  await pressKey(" ");
  await until(() => !board.isConnected);
  return label;
}

const values = (server: AnswerServer): unknown[] => server.stored.map(({ value }) => value["choice"]);

test("each guess is stored before its answer is revealed, and the test follows", async () => {
  const server = telling();
  const { run } = await opened(server, await openStorage("plain"));
  await press("f");
  await until(() => document.querySelector(".next"));
  expect(values(server)).toEqual(["husky"]);
  expect(await passReveal()).toBe("Wolf");
  await press("f");
  expect(await passReveal()).toBe("Husky");
  find(".button.primary").click();
  await press("j");
  await run;
  expect(values(server)).toEqual(["husky", "husky", "wolf"]);
  expect(server.stored.map(({ trial }) => trial)).toEqual(["t0", "t1", "t2"]);
});

test("a reload between the answer and 'next' shows the reveal again; one after 'next' does not", async () => {
  const [server, storage] = [telling(), await openStorage("reload")];
  const first = await opened(server, storage);
  await press("j");
  await until(() => document.querySelector(".next"));
  first.stop.abort();
  await opened(server, storage);
  expect(find(".text p").textContent).toBe("a word-0");
  expect(find('[data-value="wolf"]').classList.contains("pressed")).toBe(true);
  expect(await passReveal()).toBe("Wolf");
  await until(() => document.querySelector(".answer:not([aria-disabled])"));
  const second = find(".board");
  await opened(server, storage);
  expect(find(".board")).not.toBe(second);
  expect(find(".text p").textContent).toBe("a word-1");
  expect(document.querySelector(".next, .label")).toBeNull();
  expect(values(server)).toEqual(["wolf"]);
});

test("a guess that was never sent goes with the next visit, which reveals its answer first", async () => {
  const [server, storage] = [telling(), await openStorage("kept")];
  const first = await opened(server, storage);
  server.offline = true;
  await press("f");
  await until(() => first.given.outbox.count === 1);
  await until(() => !find(".strip").hidden);
  expect(find(".strip").textContent).toContain("1 answer is kept here");
  expect(document.querySelector(".next")).toBeNull();
  first.stop.abort();
  first.given.outbox.stop();
  server.offline = false;
  await opened(server, storage);
  expect(await passReveal()).toBe("Wolf");
  await until(() => find(".text p").textContent === "a word-1");
  expect(values(server)).toEqual(["husky"]);
});

test("without a connection it waits with text and answers in sight, and goes on by itself", async () => {
  const server = telling();
  await opened(server, await openStorage("offline"));
  server.offline = true;
  await press("f");
  await until(() => find(".ask").textContent === "One moment: your answer is on its way.");
  expect(find(".text p").textContent).toBe("a word-0");
  server.offline = false;
  expect(await passReveal()).toBe("Wolf");
  expect(find(".strip").hidden).toBe(true);
});

test("where another tab answered otherwise, that answer stands, and its reveal is shown", async () => {
  const server = telling();
  // The other tab has said "wolf" meanwhile.
  const answers = server.fetch;
  const elsewhere = { trial: "t0", value: { choice: "wolf" }, rt_ms: 1, shown_ms: 1 };
  let journey: Journey | null = null;
  const given = await desk(
    (async (input: RequestInfo | URL, init?: RequestInit) => {
      if (String(input).endsWith("session/")) return json(200, block(server));
      return answers(input, init);
    }) as typeof fetch,
    () => journey?.conflict(problemOf(409)),
  );
  journey = new Journey(given, block(server));
  void journey.run();
  await begin();
  server.stored.push(elsewhere);
  await press("f");
  await begin("Welcome back");
  expect(await passReveal()).toBe("Wolf");
  expect(values(server)).toEqual(["wolf"]);
});

test("a refused guess is asked for again, and nothing is revealed", async () => {
  const server = telling();
  let refuses = true;
  let journey: Journey | null = null;
  const given = await desk(
    (async (input: RequestInfo | URL, init?: RequestInit) => {
      if (String(input).endsWith("session/")) return json(200, block(server));
      if (String(input).endsWith("responses/") && refuses) return (refuses = false), refusal(400, "invalid");
      return server.fetch(input, init);
    }) as typeof fetch,
    () => journey?.conflict(problemOf(400)),
  );
  journey = new Journey(given, block(server));
  void journey.run();
  await begin();
  const refused = find(".board");
  await press("f");
  await until(() => !refused.isConnected);
  await begin();
  expect(document.querySelector(".next, .label")).toBeNull();
  await press("j");
  expect(await passReveal()).toBe("Wolf");
  expect(values(server)).toEqual(["wolf"]);
});

test("the reveal of a block's last trial is shown although nothing is left to answer", async () => {
  const [server, storage] = [telling(), await openStorage("last")];
  server.stored.push({ trial: "t0", value: { choice: "wolf" }, rt_ms: 1, shown_ms: 1 });
  const from = block(server);
  const given = await desk(server.fetch as typeof fetch, () => undefined, storage);
  const { run } = await started(given, { ...from, block: { ...from.block!, trials: [guess(0)] } });
  expect(await passReveal()).toBe("Wolf");
  await run;
  expect(values(server)).toEqual(["wolf"]);
});

function problemOf(status: number): Problem {
  return { status, code: "", message: "", remedy: "", fields: {}, next: null, exit: null, retry_after_ms: null };
}

async function begin(title = ""): Promise<void> {
  await until(() => document.querySelector('[data-page="block"] .button:not([disabled])'));
  if (title !== "") expect(find("h1").textContent).toBe(title);
  find(".button.primary").click();
  await until(() => document.querySelector(".board"));
}
