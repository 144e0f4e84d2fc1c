/** The specs' small world: a study with one block of two examples and two test trials. Never part of the bundle. */
import { Api } from "./server/api";
import type { Desk } from "./frame/page-context";
import { Draft } from "./trials/draft";
import { EventLog } from "./server/events";
import { FullScreen } from "./frame/fullscreen";
import { Pictures } from "./server/media";
import type {
  Choice,
  Example,
  Feedback,
  InstructedTrial,
  LearnTrial,
  Media,
  Page,
  PredictTrial,
  Question,
  Recorded,
  ResponseItem,
  State,
} from "./server/model";
import { Outbox } from "./server/outbox";
import { Shell } from "./frame/shell";
import { openStorage, type Storage } from "./server/storage";
import { en } from "./words";

export function media(name: string): Media {
  return { url: `/m/${name}`, width_px: 320, height_px: 320, alt: "Picture", is_said: false };
}

export const choices: Choice[] = [
  { value: "husky", text: "Husky", key: "f" },
  { value: "wolf", text: "Wolf", key: "j" },
];

export function learn(position: number): LearnTrial {
  const content = {
    image: media(`i${position}`),
    explanation: media(`x${position}`),
    text: null,
    label: "Wolf",
    choices,
  };
  return { id: `t${position}`, position, kind: "learn", phase: "train", content };
}

/** A training trial that asks for a guess first; its text is as long as its number. */
export function guess(position: number): LearnTrial {
  const text = { tokens: [{ text: "a ", shade: null }, { text: `word-${position}`, shade: 0.5 }] };
  const content = { image: null, explanation: null, text, label: null, choices };
  return { id: `t${position}`, position, kind: "learn", phase: "train", content };
}

export function predict(position: number): PredictTrial {
  const content = {
    image: media(`i${position}`),
    explanation: null,
    text: null,
    prompt: null,
    choices,
    reservoir: ["t0", "t1"],
  };
  return { id: `t${position}`, position, kind: "predict", phase: "test", content };
}

export function instructed(position: number, key = "3"): InstructedTrial {
  const four = ["1", "2", "3", "4"].map((value) => ({ value, text: value, key: value }));
  const content = { prompt: `Please press the key ${key}.`, choices: four, reservoir: ["t0", "t1"] };
  return { id: `t${position}`, position, kind: "instructed", phase: "test", content };
}

export function example(trial: string, label = "Wolf"): Example {
  return { trial, label, image: media(`tile-${trial}`), explanation: media(`tilex-${trial}`) };
}

export function state(changes: Partial<State> = {}): State {
  return {
    step: "trials",
    page: null,
    attempts_left: null,
    block: {
      index: 0,
      count: 1,
      first: 0,
      later: [],
      trials: [learn(0), learn(1), predict(2), predict(3)],
      examples: [example("t0"), example("t1")],
    },
    next: 0,
    total: 4,
    progress: { step: 5, steps: 6, done: 0.4, trials: 0.5, minutes: 8 },
    feedback: null,
    exit: null,
    study: {
      title: "Can you predict the machine?",
      language: "en",
      contact: "lab@example.org",
      instructions: "<h2>How it works</h2><p>Predict.</p>",
      picture_px: 320,
      answers_px: 60,
      tile_px: 112,
      min_view_ms: 0,
      gap_ms: 0,
      reservoir: "on_request",
      display: "beside",
      legend: null,
      presentation: {
        fullscreen: false,
        fixation_ms: 0,
        exposure_ms: null,
        mask_ms: 0,
        phases: "test",
        distance: "off",
      },
      sight: "",
      keys: ["f", "j"],
      origin: "human",
    },
    ...changes,
  };
}

/** Nothing was begun, and nothing is kept. */
export const noDraft = { text: null, keep: () => undefined };

export function page(kind: string, questions: Question[] = [], html = "<p>Text</p>"): Page {
  return { kind, digest: `digest-${kind}`, html, questions };
}

export function question(changes: Partial<Question>): Question {
  const shown = { image: null, text: null, label: null };
  const nothing = { choices: null, ...shown, low: null, high: null, min: null, max: null, max_length: null };
  return { id: "q", kind: "choice", prompt: "What?", required: true, ...nothing, ...changes };
}

export function item(position: number, choice = "wolf"): ResponseItem {
  return { trial: `t${position}`, value: { choice }, rt_ms: 900, shown_ms: 1020 };
}

/** Almost no wait, but one that lets everything else go on. */
export const noWait = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));

/** A server for answers alone: in order, twice is fine, otherwise is a contradiction. */
export class AnswerServer {
  readonly stored: ResponseItem[] = [];
  readonly batches: number[] = [];
  offline = false;
  /** The label that the reply to an answer reveals, by trial. */
  readonly labels: Record<string, string> = {};

  readonly fetch = async (input: unknown, init?: RequestInit): Promise<Response> => {
    if (this.offline) throw new TypeError("Failed to fetch");
    const body: unknown = init?.body ? JSON.parse(String(init.body)) : null;
    if (String(input).endsWith("responses/"))
      return this.receive((body as { responses: ResponseItem[] }).responses);
    return json(200, {});
  };

  private receive(responses: ResponseItem[]): Response {
    this.batches.push(responses.length);
    for (const response of responses) {
      const before = this.stored.find((stored) => stored.trial === response.trial);
      if (before && JSON.stringify(before.value) !== JSON.stringify(response.value))
        return refusal(409, "contradiction");
      if (!before && response.trial !== `t${this.stored.length}`) return refusal(409, "out_of_turn");
      if (!before) this.stored.push(response);
    }
    const told = responses.map(({ trial }) => [trial, this.feedback(trial)] as const);
    const feedback = Object.fromEntries(told.filter((row): row is [string, Feedback] => row[1] !== null));
    const recorded: Recorded = { next: this.stored.length, step: "trials", feedback };
    return json(200, recorded);
  }

  /** What it says, whenever it is asked, to the answer that it has stored; null: nothing. */
  feedback(trial: string): Feedback | null {
    const label = this.labels[trial];
    const choice = this.stored.find((stored) => stored.trial === trial)?.value["choice"];
    if (label === undefined || typeof choice !== "string") return null;
    return { trial, choice, label, correct: choices.find(({ text }) => text === label)?.value === choice };
  }
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { "Content-Type": "application/json", ...headers },
  });
}

export function refusal(status: number, code: string, fields: Record<string, string> = {}): Response {
  return json(status, {
    error: { code, message: "No.", remedy: "Do this.", fields },
    next: null,
    exit: null,
  });
}

export async function desk(
  fetching: typeof fetch,
  onConflict: () => void = () => undefined,
  given?: Storage,
): Promise<Desk> {
  document.body.innerHTML = '<div id="app"></div>';
  const shell = new Shell(document.getElementById("app")!, en);
  const api = new Api({ base: "/api/", fetch: fetching, wait: noWait, onLink: (link, said) => shell.linked(link, said) });
  const storage = given ?? (await openStorage(`sitting-${Math.random()}`));
  const outbox = await Outbox.open({
    storage,
    send: (batch) => api.responses(batch),
    onConflict,
    onCount: (count) => shell.count(count),
    wait: noWait,
  });
  const pictures = new Pictures({ load: async () => new Image(), wait: noWait });
  const events = new EventLog({ send: (batch) => api.events(batch) });
  const display = { fullscreen: new FullScreen(shell, events), refresh_ms: null };
  const draft = await Draft.open(storage);
  return { api, outbox, events, pictures, shell, storage, draft, words: en, reloads: 0, ...display };
}

/** Waits until what is on the page now has been seen: the first frame may have begun before it, the second has not. */
export async function painted(): Promise<void> {
  for (let frame = 0; frame < 3; frame += 1) await new Promise((resolve) => requestAnimationFrame(resolve));
}

/**
 * Lets promises, timers and animation frames go by until something holds. The limit is generous: the time of a
 * simulated press is drawn and has a long tail, and other work may run on the machine.
 */
export async function until(holds: () => unknown, limit_ms = 12_000): Promise<void> {
  const end_ms = performance.now() + limit_ms;
  while (!holds()) {
    if (performance.now() > end_ms)
      throw new Error(`still not: ${holds.toString()}\n${document.body.innerHTML}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

export function find<T extends HTMLElement = HTMLElement>(selector: string): T {
  const found = document.querySelector<T>(selector);
  if (found === null) throw new Error(`nothing like ${selector} in ${document.body.innerHTML}`);
  return found;
}
