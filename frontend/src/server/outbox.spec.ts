import "fake-indexeddb/auto";
import { IDBFactory } from "fake-indexeddb";
import type { Outcome, Problem } from "./api";
import { AnswerServer, item, noWait } from "../cast";
import type { Recorded, ResponseItem } from "./model";
import { Outbox } from "./outbox";
import { openStorage } from "./storage";

type Send = (responses: ResponseItem[]) => Promise<Outcome<Recorded>>;

const passing: Outcome<never> = { ok: false, problem: problem(0, "offline") };

function problem(status: number, code: string): Problem {
  return { status, code, message: "", remedy: "", fields: {}, next: null, exit: null, retry_after_ms: null };
}

function sender(server: AnswerServer): Send {
  return async (responses) => {
    try {
      const reply = await server.fetch("/api/session/responses/", { body: JSON.stringify({ responses }) });
      const body = (await reply.json()) as Recorded & { error: { code: string } };
      return reply.ok
        ? { ok: true, value: body }
        : { ok: false, problem: problem(reply.status, body.error.code) };
    } catch {
      return passing;
    }
  };
}

async function open(
  send: Send,
  conflicts: Problem[] = [],
  counts: number[] = [],
  wait = noWait,
): Promise<Outbox> {
  return Outbox.open({
    storage: await openStorage("ada"),
    send,
    onConflict: (found) => conflicts.push(found),
    onCount: (count) => counts.push(count),
    wait,
  });
}

const never = (): Promise<void> => new Promise(() => undefined);

beforeEach(() => {
  indexedDB = new IDBFactory();
});

test("it sends in order and says how many wait", async () => {
  const server = new AnswerServer();
  const counts: number[] = [];
  const outbox = await open(sender(server), [], counts);
  await outbox.add(item(0));
  await outbox.add(item(1));
  await outbox.flush();
  expect(server.stored.map((stored) => stored.trial)).toEqual(["t0", "t1"]);
  expect(counts[0]).toBe(1);
  expect(counts.at(-1)).toBe(0);
});

test("it hands on what the server reveals, once the answer is stored, and as often as it is asked", async () => {
  const server = new AnswerServer();
  server.labels["t1"] = "Husky";
  server.offline = true;
  const outbox = await open(sender(server));
  await outbox.add(item(0));
  await outbox.add(item(1));
  let isTold = false;
  const reply = outbox.reply("t1").then((told) => ((isTold = true), told));
  await noWait();
  expect(isTold).toBe(false);
  server.offline = false;
  const told = { trial: "t1", choice: "wolf", label: "Husky", correct: false };
  expect(await reply).toEqual(told);
  expect(await outbox.reply("t1")).toEqual(told);
  expect(await outbox.reply("t0")).toBeNull();
});

test("a reply that was lost is asked for again, and is the same", async () => {
  const server = new AnswerServer();
  server.labels["t0"] = "Wolf";
  const plain = sender(server);
  let is_lost = true;
  const lossy: Send = async (batch) => {
    const reply = await plain(batch);
    if (!is_lost) return reply;
    is_lost = false;
    return passing;
  };
  const outbox = await open(lossy);
  await outbox.add(item(0));
  expect(await outbox.reply("t0")).toEqual({ trial: "t0", choice: "wolf", label: "Wolf", correct: true });
  expect(server.stored).toHaveLength(1);
  expect(server.batches).toEqual([1, 1]);
});

test("it survives a reload while offline, and then stores every answer once", async () => {
  const server = new AnswerServer();
  server.offline = true;
  const before = await open(sender(server), [], [], never);
  for (const position of [0, 1, 2]) await before.add(item(position));
  expect(before.count).toBe(3);

  server.offline = false;
  const after = await open(sender(server));
  expect(after.count).toBe(3);
  expect(after.holds("t2")).toBe(true);
  await after.flush();
  expect(server.stored).toHaveLength(3);
  expect((await open(sender(server))).count).toBe(0);
});

test("it keeps trying until the network is back", async () => {
  const server = new AnswerServer();
  server.offline = true;
  let tries = 0;
  const outbox = await open(sender(server), [], [], async () => {
    tries += 1;
    if (tries === 4) server.offline = false;
  });
  await outbox.add(item(0));
  await outbox.flush();
  expect(tries).toBe(4);
  expect(server.stored).toHaveLength(1);
});

test("it may send twice when the acknowledgement is lost", async () => {
  const server = new AnswerServer();
  const honest = sender(server);
  let losses = 1;
  const outbox = await open(async (responses) => {
    const reply = await honest(responses);
    return losses-- > 0 ? passing : reply;
  });
  await outbox.add(item(0));
  await outbox.flush();
  expect(server.batches).toEqual([1, 1]);
  expect(server.stored).toHaveLength(1);
  expect(outbox.count).toBe(0);
});

test("it takes a second answer to the same trial for the first one", async () => {
  const outbox = await open(async () => passing, [], [], never);
  await outbox.add(item(0, "wolf"));
  await outbox.add(item(0, "husky"));
  expect(outbox.count).toBe(1);
});

test("it drops its copy when the server holds another answer", async () => {
  const server = new AnswerServer();
  server.stored.push(item(0, "husky"));
  const conflicts: Problem[] = [];
  const outbox = await open(sender(server), conflicts);
  await outbox.add(item(0, "wolf"));
  await outbox.flush();
  expect(conflicts.map((found) => found.code)).toEqual(["contradiction"]);
  expect(outbox.count).toBe(0);
  expect((await open(sender(server))).count).toBe(0);
});

test("it keeps its copy when another tab has taken over", async () => {
  const conflicts: Problem[] = [];
  const outbox = await open(async () => ({ ok: false, problem: problem(401, "no_session") }), conflicts);
  await outbox.add(item(0));
  await outbox.flush();
  expect(conflicts).toHaveLength(1);
  expect(outbox.count).toBe(1);
});

test("it sends at most fifty at once", async () => {
  const server = new AnswerServer();
  server.offline = true;
  const before = await open(sender(server), [], [], never);
  for (let position = 0; position < 70; position += 1) await before.add(item(position));
  server.offline = false;
  const after = await open(sender(server));
  await after.flush();
  expect(server.batches).toEqual([50, 20]);
  expect(server.stored).toHaveLength(70);
});

test("it saves the good answers when one of a batch is refused", async () => {
  const stored: string[] = [];
  const send: Send = async (responses) => {
    if (responses.some((response) => response.trial === "t1"))
      return { ok: false, problem: problem(400, "invalid") };
    stored.push(...responses.map((response) => response.trial));
    return { ok: true, value: { next: stored.length, step: "trials", feedback: {} } };
  };
  const before = await open(async () => passing, [], [], never);
  for (const position of [0, 1]) await before.add(item(position));
  const conflicts: Problem[] = [];
  const after = await open(send, conflicts);
  await after.flush();
  expect(stored).toEqual(["t0"]);
  expect(conflicts.map((found) => found.status)).toEqual([400]);
});

test("it works from memory where IndexedDB does not open, and says so", async () => {
  vi.stubGlobal("indexedDB", {
    open: () => {
      throw new DOMException("denied", "SecurityError");
    },
  });
  const server = new AnswerServer();
  const outbox = await open(sender(server));
  expect(outbox.survivesReload).toBe(false);
  await outbox.add(item(0));
  await outbox.flush();
  expect(server.stored).toHaveLength(1);
  vi.unstubAllGlobals();
});

test("it keeps people on one computer apart", async () => {
  const storage = await openStorage("bo");
  await storage.put({ order: 1, item: item(0) });
  expect((await open(async () => passing)).count).toBe(0);
});

test("what it has sent stays answered: the state that the page has may be older", async () => {
  const outbox = await open(sender(new AnswerServer()));
  await outbox.add(item(0));
  await outbox.flush();
  expect(outbox.count).toBe(0);
  expect(outbox.holds("t0")).toBe(true);
  expect(outbox.holds("t1")).toBe(false);
});

test("what the server refused is to be answered again", async () => {
  const outbox = await open(async () => ({ ok: false, problem: problem(409, "out_of_turn") }));
  await outbox.add(item(0));
  await outbox.flush();
  expect(outbox.holds("t0")).toBe(false);
});
