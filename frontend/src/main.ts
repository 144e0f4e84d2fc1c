/** Opens the page: who is here, what was left behind, and off we go. */
import "./style/examples.css";
import "./style/questions.css";
import "./style/trials.css";
import "./style/rating.css";
import "./style/solving.css";
import "./style/reveal.css";
import "./style/presentation.css";
import "./style/pages.css";
import { Api, type Link, type Problem } from "./server/api";
import type { Desk } from "./frame/page-context";
import { h } from "./frame/dom";
import { Draft } from "./trials/draft";
import { EventLog } from "./server/events";
import { FullScreen } from "./frame/fullscreen";
import { Journey } from "./journey";
import { keys } from "./frame/keys";
import { Pictures } from "./server/media";
import type { Joined } from "./server/model";
import { Outbox } from "./server/outbox";
import { troublePage } from "./pages/trouble";
import { Shell } from "./frame/shell";
import { openStorage, type Storage } from "./server/storage";
import { loadTrials } from "./trials/trials";
import { wordsFor } from "./words";
import type { Phrases } from "./words/phrases";

export interface Config {
  study: string;
  platform: string;
  api: string;
  /** The study's language; empty where the server does not say. */
  language: string;
  /** Every sentence of this page, if the study brings them in a language of its own. */
  words: Phrases;
}

/** What the server wrote into the page's meta tag. */
export function readConfig(page: Document): Config {
  const text = page.querySelector<HTMLMetaElement>('meta[name="study"]')?.content ?? "";
  const config = JSON.parse(text) as Partial<Config>;
  const { study = "", platform = "", api = "/api/", language = "", words = {} } = config;
  return { study, platform, api, language, words };
}

export async function start(root: HTMLElement): Promise<void> {
  const config = readConfig(document);
  const words = wordsFor(config.language || navigator.language, config.words);
  const shell = new Shell(root, words);
  shell.show(h("section", { class: "wait" }, h("p", {}, words.connecting)));
  const api = new Api({ base: config.api, onLink: (link, said) => shell.linked(link, said) });
  // Joining again is how a reload resumes: the same address finds the same session and gets a new token.
  const query = location.search.replace(/^\?/, "");
  const joined = await api.join(config.study, config.platform, query, newAttempt());
  if (!joined.ok) return troublePage({ shell, words }, entryProblem(joined.problem), "");
  if (joined.value.query !== null) showQuery(joined.value.query);
  await travel(api, shell, await openStorage(joined.value.sitting), joined.value, config.words);
}

/** Nobody has entered anything yet: what does not fit is the address. */
function entryProblem(problem: Problem): Problem {
  return problem.code === "invalid" ? { ...problem, code: "bad_address" } : problem;
}

/** 128 random bits; works where the page is not a secure context, too. */
export function newAttempt(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Puts an address that lasts in the place of a signed one. A frame without an origin refuses; then nothing changes. */
function showQuery(query: string): void {
  try {
    history.replaceState(null, "", `?${query}`);
  } catch {
    // A reload then asks the platform for a new address.
  }
}

async function travel(api: Api, shell: Shell, storage: Storage, joined: Joined, whole: Phrases): Promise<void> {
  const state = joined.session;
  const words = wordsFor(state.study.language, whole, state.study.words);
  shell.speak(words);
  const events = new EventLog({ send: (batch) => api.events(batch) });
  const pictures = new Pictures({ log: (kind, data) => events.add(kind, data) });
  let journey: Journey | null = null;
  const outbox = await Outbox.open({
    storage,
    send: (batch) => api.responses(batch),
    onConflict: (problem) => journey?.conflict(problem),
    onCount: (count) => shell.count(count),
  });
  const reloads = await countReloads(storage, state.step === "trials");
  if (reloads > 0) events.add("reload", { reloads });
  await keys.restore(storage, state.study.keys);
  const fullscreen = new FullScreen(shell, events);
  const display = { fullscreen, refresh_ms: null };
  const draft = await Draft.open(storage);
  const desk: Desk = { api, outbox, events, pictures, shell, storage, draft, words, reloads, ...display };
  journey = new Journey(desk, state);
  events.watch();
  watchConnection(shell, outbox, draft);
  void outbox.flush();
  // While the person reads. What does not come now is asked for again when the trials begin, and said there.
  void loadTrials().catch(() => undefined);
  await journey.run();
  await events.flush();
}

/** How often the page was loaded again since the last answer. */
async function countReloads(storage: Storage, inTrials: boolean): Promise<number> {
  const before = await storage.read("reloads").catch(() => null);
  const reloads = before === null || !inTrials ? 0 : Number(before) + 1;
  await storage.write("reloads", String(reloads)).catch(() => undefined);
  return reloads;
}

function watchConnection(shell: Shell, outbox: Outbox, draft: Draft): void {
  const link = (now: Link) => () => shell.linked(now, "");
  shell.count(outbox.count);
  window.addEventListener("offline", link("offline"));
  window.addEventListener("online", link("up"));
  window.addEventListener("beforeunload", (event) => {
    // Kept on disk, answers go with the next visit; kept in memory only, they would be gone.
    if ((outbox.count > 0 && !outbox.survivesReload) || draft.isAtRisk) event.preventDefault();
  });
}

const root = document.getElementById("app");
if (root) void start(root);
