/** The participant API over fetch: typed outcomes instead of exceptions, patience with networks, none with refusals. */
import type {
  CheckResult,
  Ended,
  ErrorBody,
  EventItem,
  Exit,
  Joined,
  Kept,
  Page,
  Pay,
  Recorded,
  ResponseItem,
  State,
  Told,
  Value,
} from "./model";

export interface Problem {
  /** The HTTP status; 0 where no answer came. */
  status: number;
  /** The server's code, or `offline` (no answer) or `server` (an answer that is not ours). */
  code: string;
  message: string;
  remedy: string;
  fields: Record<string, string>;
  next: number | null;
  exit: Exit | null;
  /** What the server asked for with Retry-After. */
  retry_after_ms: number | null;
}

export type Outcome<T> = { ok: true; value: T } | { ok: false; problem: Problem };

/** How the line to the server is: told after each request. */
export type Link = "up" | "offline" | "server";

export interface ApiOptions {
  base: string;
  fetch?: typeof fetch;
  wait?: (delay_ms: number) => Promise<void>;
  /** `said` is the server's own sentence, if it answered and asks to wait; else empty. */
  onLink?: (link: Link, said: string) => void;
  timeout_ms?: number;
}

const TIMEOUT_MS = 20_000;
const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;

/** Exponential, capped, with a fifth of jitter so that a room of people does not come back at once. */
export function backoff_ms(attempt: number, random: () => number = Math.random): number {
  const plain = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt);
  return Math.round(plain * (0.8 + 0.4 * random()));
}

/** Worth another try: no answer, an overloaded server, or one that is being restarted. */
export function isPassing(problem: Problem): boolean {
  return problem.status === 0 || problem.status === 429 || problem.status >= 500;
}

export class Api {
  private token: string | null = null;
  /** What the page came with; the server keeps none of it, and some ways back need it. */
  private query: string | null = null;
  private readonly fetch: typeof fetch;
  private readonly wait: (delay_ms: number) => Promise<void>;

  constructor(private readonly options: ApiOptions) {
    this.fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.wait = options.wait ?? waitOrOnline;
  }

  useToken(token: string): void {
    this.token = token;
  }

  /** `attempt` names this load of the page: the same one may ask again, another one may not use its signature. */
  async join(study: string, platform: string, query: string, attempt: string): Promise<Outcome<Joined>> {
    const outcome = await this.patiently<Joined>("POST", "sessions/", { study, platform, query, attempt });
    if (!outcome.ok) return outcome;
    this.token = outcome.value.token;
    this.query = query;
    return outcome;
  }

  state(): Promise<Outcome<State>> {
    return this.patiently("GET", "session/");
  }

  gate(kind: Page["kind"], digest: string, value: Value): Promise<Outcome<State>> {
    return this.patiently("POST", `session/${kind}/`, { digest, value });
  }

  /** Stores the answer to one question of a page and hears whether it is right. */
  tell(kind: Page["kind"], digest: string, question: string, choice: string): Promise<Outcome<Told>> {
    return this.patiently("POST", `session/${kind}/told/`, { digest, question, choice });
  }

  /** Keeps the answer to one question of a page that is sent as a whole later; nothing is said of it. */
  keep(kind: Page["kind"], digest: string, question: string, choice: string): Promise<Outcome<Kept>> {
    return this.patiently("POST", `session/${kind}/kept/`, { digest, question, choice });
  }

  /** One attempt: the person may press again. */
  checkResult(): Promise<Outcome<CheckResult>> {
    return this.once("GET", "session/check/");
  }

  /** One attempt, as well. */
  invitation(agree: boolean): Promise<Outcome<unknown>> {
    return this.once("POST", "session/invitation/", { agree });
  }

  /** One attempt: a person waits before an open dialog. */
  pay(reason: string): Promise<Outcome<Pay>> {
    return this.once("GET", `session/pay/?reason=${encodeURIComponent(reason)}`);
  }

  /** One attempt only: the outbox has its own patience and must stay able to count. */
  responses(responses: ResponseItem[]): Promise<Outcome<Recorded>> {
    return this.once("POST", "session/responses/", { responses });
  }

  /** One attempt, allowed to outlive the page. */
  events(events: EventItem[]): Promise<Outcome<unknown>> {
    return this.once("POST", "session/events/", { events }, true);
  }

  finish(comment: string | null): Promise<Outcome<Ended>> {
    return this.patiently("POST", "session/finish/", { comment, ...this.origin() });
  }

  withdraw(reason: string, erase: boolean): Promise<Outcome<Ended>> {
    return this.patiently("POST", "session/withdraw/", { reason, erase, ...this.origin() });
  }

  private origin(): { query?: string } {
    return this.query === null ? {} : { query: this.query };
  }

  private async patiently<T>(method: string, path: string, body?: unknown): Promise<Outcome<T>> {
    for (let attempt = 0; ; attempt += 1) {
      const outcome = await this.once<T>(method, path, body);
      if (outcome.ok || !isPassing(outcome.problem)) return outcome;
      await this.wait(outcome.problem.retry_after_ms ?? backoff_ms(attempt));
    }
  }

  private async once<T>(
    method: string,
    path: string,
    body?: unknown,
    keepalive = false,
  ): Promise<Outcome<T>> {
    const outcome = await this.exchange<T>(method, path, body, keepalive);
    if (outcome.ok || !isPassing(outcome.problem)) this.options.onLink?.("up", "");
    else if (outcome.problem.status === 0) this.options.onLink?.("offline", "");
    else this.options.onLink?.("server", outcome.problem.status === 429 ? outcome.problem.message : "");
    return outcome;
  }

  private async exchange<T>(
    method: string,
    path: string,
    body: unknown,
    keepalive: boolean,
  ): Promise<Outcome<T>> {
    const headers: Record<string, string> = { Accept: "application/json" };
    if (this.token !== null) headers["Authorization"] = `Bearer ${this.token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), this.options.timeout_ms ?? TIMEOUT_MS);
    try {
      const reply = await this.fetch(this.options.base + path, {
        method,
        headers,
        keepalive,
        cache: "no-store",
        credentials: "omit",
        signal: stop.signal,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await reply.text();
      return reply.ok ? accepted<T>(reply, text) : { ok: false, problem: problemFrom(reply, text) };
    } catch {
      return { ok: false, problem: problem(0, "offline") };
    } finally {
      clearTimeout(timer);
    }
  }
}

function accepted<T>(reply: Response, text: string): Outcome<T> {
  try {
    return { ok: true, value: JSON.parse(text) as T };
  } catch {
    // A proxy's log-in page comes with 200 too; it is no answer of ours.
    return { ok: false, problem: problem(reply.status === 200 ? 502 : reply.status, "server") };
  }
}

function problemFrom(reply: Response, text: string): Problem {
  const plain = problem(reply.status, "server");
  const after_s = Number(reply.headers.get("Retry-After"));
  if (after_s > 0) plain.retry_after_ms = after_s * 1_000;
  try {
    const body = JSON.parse(text) as Partial<ErrorBody>;
    return { ...plain, ...body.error, next: body.next ?? null, exit: body.exit ?? null };
  } catch {
    return plain;
  }
}

function problem(status: number, code: string): Problem {
  return { status, code, message: "", remedy: "", fields: {}, next: null, exit: null, retry_after_ms: null };
}

/** Waits, but wakes at once when the browser says that the network is back. */
export function waitOrOnline(delay_ms: number): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      clearTimeout(timer);
      window.removeEventListener("online", wake);
      resolve();
    };
    const timer = setTimeout(wake, delay_ms);
    window.addEventListener("online", wake);
  });
}
