/** What survives a reload: IndexedDB where it opens, else memory (inside some platforms' iframes it does not). */
import type { ResponseItem } from "./model";

export interface Kept {
  order: number;
  item: ResponseItem;
}

export interface Storage {
  readonly survivesReload: boolean;
  load(): Promise<Kept[]>;
  put(kept: Kept): Promise<void>;
  remove(orders: number[]): Promise<void>;
  read(name: string): Promise<string | null>;
  write(name: string, value: string): Promise<void>;
}

const OPEN_TIMEOUT_MS = 2_000;
const RESPONSES = "responses";
const NOTES = "notes";

/** `key` is the server's name for the sitting: the same after a reload, and it spells out nobody. */
export async function openStorage(key: string): Promise<Storage> {
  try {
    return new Database(await openDatabase(), key);
  } catch {
    return new Memory();
  }
}

class Memory implements Storage {
  readonly survivesReload = false;
  private readonly kept = new Map<number, Kept>();
  private readonly notes = new Map<string, string>();

  async load(): Promise<Kept[]> {
    return [...this.kept.values()].sort((a, b) => a.order - b.order);
  }

  async put(kept: Kept): Promise<void> {
    this.kept.set(kept.order, kept);
  }

  async remove(orders: number[]): Promise<void> {
    for (const order of orders) this.kept.delete(order);
  }

  async read(name: string): Promise<string | null> {
    return this.notes.get(name) ?? null;
  }

  async write(name: string, value: string): Promise<void> {
    this.notes.set(name, value);
  }
}

class Database implements Storage {
  readonly survivesReload = true;

  constructor(
    private readonly database: IDBDatabase,
    private readonly key: string,
  ) {}

  async load(): Promise<Kept[]> {
    const range = IDBKeyRange.bound([this.key, 0], [this.key, Infinity]);
    const rows: Kept[] = await done(this.store(RESPONSES, "readonly").getAll(range));
    return rows.sort((a, b) => a.order - b.order);
  }

  async put(kept: Kept): Promise<void> {
    await done(this.store(RESPONSES, "readwrite").put(kept, [this.key, kept.order]));
  }

  async remove(orders: number[]): Promise<void> {
    const store = this.store(RESPONSES, "readwrite");
    await Promise.all(orders.map((order) => done(store.delete([this.key, order]))));
  }

  async read(name: string): Promise<string | null> {
    const value: unknown = await done(this.store(NOTES, "readonly").get([this.key, name]));
    return typeof value === "string" ? value : null;
  }

  async write(name: string, value: string): Promise<void> {
    await done(this.store(NOTES, "readwrite").put(value, [this.key, name]));
  }

  private store(name: string, mode: IDBTransactionMode): IDBObjectStore {
    return this.database.transaction(name, mode).objectStore(name);
  }
}

function openDatabase(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    // Some private windows never answer: then memory must do.
    const timer = setTimeout(() => reject(new Error("IndexedDB did not answer")), OPEN_TIMEOUT_MS);
    const request = indexedDB.open("legible", 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore(RESPONSES);
      request.result.createObjectStore(NOTES);
    };
    request.onsuccess = () => {
      clearTimeout(timer);
      resolve(request.result);
    };
    request.onerror = () => {
      clearTimeout(timer);
      reject(request.error ?? new Error("IndexedDB does not open"));
    };
  });
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("IndexedDB refused"));
  });
}
