/** Pictures, loaded and decoded before they are needed. */
import { backoff_ms, waitOrOnline } from "./api";
import type { EventKind, Media } from "./model";

export interface LoaderOptions {
  parallel?: number;
  tries?: number;
  wait?: (delay_ms: number) => Promise<void>;
  load?: (media: Media) => Promise<HTMLImageElement>;
  log?: (kind: EventKind, data: Record<string, unknown>) => void;
}

export interface Loaded {
  failed: Media[];
}

/** Keeps decoded pictures by address, so that a trial shows one without a frame of delay. */
export class Pictures {
  private readonly ready = new Map<string, HTMLImageElement>();

  constructor(private readonly options: LoaderOptions = {}) {}

  /** The decoded picture; one that was not loaded beforehand loads where it stands. */
  element(media: Media): HTMLImageElement {
    const image = this.ready.get(media.url) ?? picture(media);
    image.alt = media.alt;
    return image;
  }

  /** Loads all, a few at a time, each with several tries; what failed for good is returned, not thrown. */
  async load(
    wanted: Media[],
    onProgress: (done: number, total: number) => void = () => undefined,
  ): Promise<Loaded> {
    const unique = new Map(wanted.map((media) => [media.url, media]));
    const todo = [...unique.values()].filter((media) => !this.ready.has(media.url));
    const total = todo.length;
    const failed: Media[] = [];
    let done = 0;
    onProgress(done, total);
    const lane = async (): Promise<void> => {
      for (let media = todo.shift(); media !== undefined; media = todo.shift()) {
        if (!(await this.loadOne(media))) failed.push(media);
        done += 1;
        onProgress(done, total);
      }
    };
    await Promise.all(Array.from({ length: this.options.parallel ?? 4 }, lane));
    return { failed };
  }

  private async loadOne(media: Media): Promise<boolean> {
    const tries = this.options.tries ?? 4;
    for (let attempt = 0; attempt < tries; attempt += 1) {
      try {
        this.ready.set(media.url, await (this.options.load ?? decode)(media));
        return true;
      } catch {
        const last = attempt + 1 === tries;
        this.options.log?.(last ? "media_failed" : "media_retry", { attempt: attempt + 1 });
        if (!last) await (this.options.wait ?? waitOrOnline)(backoff_ms(attempt));
      }
    }
    return false;
  }
}

function picture(media: Media): HTMLImageElement {
  const image = new Image(media.width_px, media.height_px);
  image.decoding = "sync";
  image.draggable = false;
  image.src = media.url;
  return image;
}

async function decode(media: Media): Promise<HTMLImageElement> {
  const image = picture(media);
  await image.decode();
  return image;
}
