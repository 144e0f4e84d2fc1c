/** Opens the page: who is here, what was left behind, and off we go. */
import "./style/questions.css";
import "./style/trials.css";
import "./style/pages.css";
import { Api, type Link } from "./api";
import type { Desk } from "./desk";
import { h } from "./dom";
import { EventLog } from "./events";
import { Journey } from "./journey";
import { Pictures } from "./media";
import type { Joined } from "./model";
import { Outbox } from "./outbox";
import { troublePage } from "./pages/trouble";
import { Shell } from "./shell";
import { openStorage, sittingKey, type Storage } from "./storage";
import { wordsFor } from "./words";

export interface Config {
  study: string;
  platform: string;
  api: string;
}

/** What the server wrote into the page's meta tag. */
export function readConfig(page: Document): Config {
  const text = page.querySelector<HTMLMetaElement>('meta[name="legible"]')?.content ?? "";
  const config = JSON.parse(text) as Partial<Config>;
  return { study: config.study ?? "", platform: config.platform ?? "", api: config.api ?? "/api/" };
}

export async function start(root: HTMLElement): Promise<void> {
  const config = readConfig(document);
  const words = wordsFor(navigator.language);
  const shell = new Shell(root, words);
  shell.show(h("section", { class: "wait" }, h("p", {}, words.connecting)));
  const api = new Api({ base: config.api, onLink: (link) => shell.linked(link) });
  const storage = await openStorage(sittingKey(`${config.study}|${config.platform}|${location.search}`));
  // Joining again is how a reload resumes: the same address finds the same session and gets a new token.
  const joined = await api.join(config.study, config.platform, location.search.replace(/^\?/, ""));
  if (!joined.ok) return troublePage({ shell, words }, joined.problem, "");
  await travel(api, shell, storage, joined.value);
}

async function travel(api: Api, shell: Shell, storage: Storage, joined: Joined): Promise<void> {
  const state = joined.session;
  const words = wordsFor(state.study.language);
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
  const desk: Desk = { api, outbox, events, pictures, shell, storage, words, reloads };
  journey = new Journey(desk, state);
  events.watch();
  watchConnection(shell, outbox);
  void outbox.flush();
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

function watchConnection(shell: Shell, outbox: Outbox): void {
  const link = (now: Link) => () => shell.linked(now);
  shell.count(outbox.count);
  window.addEventListener("offline", link("offline"));
  window.addEventListener("online", link("up"));
  window.addEventListener("beforeunload", (event) => {
    // Kept on disk, answers go with the next visit; kept in memory only, they would be gone.
    if (outbox.count > 0 && !outbox.survivesReload) event.preventDefault();
  });
}

const root = document.getElementById("app");
if (root) void start(root);
