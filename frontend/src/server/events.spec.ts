import type { Outcome } from "./api";
import { EventLog, uuid } from "./events";
import type { EventItem } from "./model";

const stored: Outcome<unknown> = { ok: true, value: {} };

function refused(status: number): Outcome<unknown> {
  const problem = {
    status,
    code: "",
    message: "",
    remedy: "",
    fields: {},
    next: null,
    exit: null,
    retry_after_ms: null,
  };
  return { ok: false, problem };
}

test("it sends what happened, with the trial and the time", async () => {
  const sent: EventItem[] = [];
  const log = new EventLog({ send: async (events) => (sent.push(...events), stored), now_ms: () => 1234.4 });
  log.trial = "t3";
  log.add("tile_enlarged", { example: "t0" });
  await log.flush();
  expect(sent).toMatchObject([{ kind: "tile_enlarged", trial: "t3", at_ms: 1234, data: { example: "t0" } }]);
  expect(sent[0]?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test("it sends the same ids again when no answer came", async () => {
  const batches: string[][] = [];
  const log = new EventLog({
    send: async (events) => {
      batches.push(events.map((event) => event.id));
      return batches.length === 1 ? refused(0) : stored;
    },
  });
  log.add("offline");
  await log.flush();
  await log.flush();
  await log.flush();
  expect(batches).toHaveLength(2);
  expect(batches[0]).toEqual(batches[1]);
});

test("it drops what the server does not want", async () => {
  let sends = 0;
  const log = new EventLog({ send: async () => ((sends += 1), refused(409)) });
  log.add("paste");
  await log.flush();
  await log.flush();
  expect(sends).toBe(1);
});

test("it counts one loss of focus for a blur and the hiding that follows", () => {
  const log = new EventLog({ send: async () => stored });
  log.watch();
  window.dispatchEvent(new Event("blur"));
  window.dispatchEvent(new Event("blur"));
  window.dispatchEvent(new Event("focus"));
  expect(log.focus_losses).toBe(1);
});

test("it makes different ids", () => {
  expect(new Set(Array.from({ length: 200 }, uuid)).size).toBe(200);
});
