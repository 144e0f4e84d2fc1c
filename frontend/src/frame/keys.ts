/** The keys that a person answers with: the study's, or others of their choice. Sides and values stay as they are. */
import type { Storage } from "../server/storage";

const NOTE = "keys";

export class Keys {
  /** The study's key, and the person's for it. */
  private chosen = new Map<string, string>();
  private readonly listeners = new Set<() => void>();

  /** What is pressed for each of a board's own keys. A key that became another answer's goes where that came from. */
  for(keys: string[]): string[] {
    const origin = new Map([...this.chosen].map(([from, to]) => [to, from]));
    return keys.map((key) => {
      const mine = this.chosen.get(key);
      if (mine !== undefined) return mine;
      let free = key;
      for (let from = origin.get(free); from !== undefined; from = origin.get(free)) free = from;
      return free;
    });
  }

  /** Whether these keys are pressed otherwise than the study says. */
  replaces(keys: string[]): boolean {
    return this.for(keys).some((key, index) => key !== keys[index]);
  }

  choose(keys: string[], mine: string[]): void {
    const pairs = keys.map((key, index): [string, string] => [key, (mine[index] ?? key).toLowerCase()]);
    this.chosen = new Map(pairs.filter(([key, own]) => key !== own));
    for (const listener of [...this.listeners]) listener();
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  async save(storage: Storage): Promise<void> {
    await storage.write(NOTE, JSON.stringify([...this.chosen])).catch(() => undefined);
  }

  /** What was chosen before a reload; nothing if that is unknown or belongs to other keys. */
  async restore(storage: Storage, keys: string[]): Promise<void> {
    const note = await storage.read(NOTE).catch(() => null);
    const before = new Map(JSON.parse(note ?? "[]") as [string, string][]);
    const mine = keys.map((key) => before.get(key) ?? key);
    this.choose(keys, mistakeIn(mine) === null ? mine : keys);
  }
}

/** One person sits before the page, and every board asks here. */
export const keys = new Keys();

/** What stands against these keys. Other keys than letters and digits scroll, search or move the focus. */
export function mistakeIn(mine: string[]): "clash" | "unusable" | null {
  if (mine.some((key) => !/^[\p{L}\p{N}]$/u.test(key))) return "unusable";
  return new Set(mine.map((key) => key.toLowerCase())).size < mine.length ? "clash" : null;
}

/** As it is printed on a button. */
export function printed(key: string): string {
  // Some letters have no capital of one character.
  const capital = key.toUpperCase();
  return [...capital].length === 1 ? capital : key;
}
