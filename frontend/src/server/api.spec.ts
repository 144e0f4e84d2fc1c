import { Api, backoff_ms, isPassing, type ApiOptions, type Link } from "./api";
import { json, noWait, refusal, state } from "../cast";

function api(replies: (Response | Error)[], options: Partial<ApiOptions> = {}) {
  const calls: { url: string; init: RequestInit }[] = [];
  const fetching = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    calls.push({ url: String(input), init: init ?? {} });
    const reply = replies.shift();
    if (reply === undefined) throw new Error("one request too many");
    if (reply instanceof Error) throw reply;
    return reply;
  };
  return { api: new Api({ base: "/api/", fetch: fetching, wait: noWait, ...options }), calls };
}

test("it joins without a token and speaks with the token and its own query afterwards", async () => {
  const joined = { token: "abc", session: state(), query: null, sitting: "s" };
  const { api: line, calls } = api([json(201, joined), json(200, state()), json(200, {}), json(200, {})]);
  await line.join("wolf", "local", "person=ada", "load-1");
  await line.state();
  await line.finish("fine");
  await line.withdraw("time", false);
  expect(calls[0]?.url).toBe("/api/sessions/");
  expect(JSON.parse(String(calls[0]?.init.body))).toEqual({
    study: "wolf",
    platform: "local",
    query: "person=ada",
    attempt: "load-1",
  });
  const sent = calls.slice(2).map((call): unknown => JSON.parse(String(call.init.body)));
  expect(sent).toEqual([
    { comment: "fine", query: "person=ada" },
    { reason: "time", erase: false, query: "person=ada" },
  ]);
  expect(calls[0]?.init.headers).not.toHaveProperty("Authorization");
  expect(calls[1]?.init.headers).toHaveProperty("Authorization", "Bearer abc");
  expect(calls[1]?.init.credentials).toBe("omit");
});

test("it tries again when there is no answer, and tells how the line is", async () => {
  const links: Link[] = [];
  const replies = [
    new TypeError("Failed to fetch"),
    new Response("bad gateway", { status: 502 }),
    json(200, state()),
  ];
  const { api: line, calls } = api(replies, { onLink: (link) => links.push(link) });
  const outcome = await line.state();
  expect(outcome.ok).toBe(true);
  expect(calls).toHaveLength(3);
  expect(links).toEqual(["offline", "server", "up"]);
});

test("it waits as long as the server asks for", async () => {
  const waits: number[] = [];
  const wait = async (delay_ms: number): Promise<void> => void waits.push(delay_ms);
  const said: string[] = [];
  const busy = json(429, { error: { code: "too_many", message: "All places are held." } }, { "Retry-After": "7" });
  const onLink = (_: Link, sentence: string): void => void said.push(sentence);
  const { api: line } = api([busy, json(200, state())], { wait, onLink });
  await line.state();
  expect(said).toEqual(["All places are held.", ""]);
  expect(waits).toEqual([7_000]);
});

test.each([
  [401, "no_session"],
  [403, "not_admitted"],
  [404, "no_study"],
  [409, "taken_part"],
  [410, "full"],
])("it takes %i %s as final", async (status, code) => {
  const { api: line, calls } = api([refusal(status, code, { "value.age": "18 to 120" })]);
  const outcome = await line.state();
  expect(calls).toHaveLength(1);
  expect(outcome).toMatchObject({
    ok: false,
    problem: { status, code, fields: { "value.age": "18 to 120" } },
  });
});

test("it gives up on a request that hangs", async () => {
  const hanging = (_input: RequestInfo | URL, init?: RequestInit): Promise<Response> =>
    new Promise((_resolve, reject) =>
      init?.signal?.addEventListener("abort", () => reject(new Error("aborted"))),
    );
  const line = new Api({ base: "/api/", fetch: hanging, timeout_ms: 5 });
  const outcome = await line.responses([]);
  expect(outcome).toMatchObject({ ok: false, problem: { status: 0, code: "offline" } });
});

test("it does not take a proxy's log-in page for an answer", async () => {
  const { api: line } = api([new Response("<html>Log in</html>", { status: 200 }), json(200, state())]);
  expect((await line.state()).ok).toBe(true);
});

test("it sends answers once only, because the outbox has the patience", async () => {
  const { api: line, calls } = api([new TypeError("Failed to fetch")]);
  const outcome = await line.responses([]);
  expect(outcome.ok).toBe(false);
  expect(calls).toHaveLength(1);
});

test("it lets events outlive the page", async () => {
  const { api: line, calls } = api([json(200, {})]);
  await line.events([]);
  expect(calls[0]?.init.keepalive).toBe(true);
});

test("it backs off exponentially up to a quarter of a minute", () => {
  const middle = [0, 1, 2, 3, 4, 5, 20].map((attempt) => backoff_ms(attempt, () => 0.5));
  expect(middle).toEqual([500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
});

test("it tells passing trouble from refusals", () => {
  const problem = {
    code: "",
    message: "",
    remedy: "",
    fields: {},
    next: null,
    exit: null,
    retry_after_ms: null,
  };
  const passing = [0, 429, 500, 503].map((status) => isPassing({ ...problem, status }));
  const final = [400, 401, 403, 404, 409, 410, 413].map((status) => isPassing({ ...problem, status }));
  expect(passing).toEqual([true, true, true, true]);
  expect(final).not.toContain(true);
});
