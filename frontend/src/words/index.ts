/**
 * The sentences of the page, by language. They stand as data beside the server's (experiments/wording/words); a study may
 * bring all of them in a language of its own, and say some of them otherwise.
 */
import german from "../../../experiments/wording/words/de.json";
import english from "../../../experiments/wording/words/en.json";
import { fillingIn, withPhrases, type Phrases } from "./phrases";

type Table = typeof english;
type Counted = { one: string; other: string };
export type Words = ReturnType<typeof wordsOf>;

/** Adding a language is one table here and one of the server's: the compiler names every missing sentence. */
const TABLES: Record<string, Table> = { de: german, en: english };

/**
 * The words for a language tag such as `de-AT`, with the study's phrases, the later over the earlier. A language that is
 * not there is English, unless the phrases are a whole table in it.
 */
export function wordsFor(tag: string, whole: Phrases = {}, ...phrases: (Phrases | undefined)[]): Words {
  const name = tag.toLowerCase().split("-")[0] ?? "";
  const known = Object.hasOwn(TABLES, name) ? name : "en";
  const table = [whole, ...phrases].reduce<Table>((said, some) => withPhrases(said, some ?? {}), TABLES[known]!);
  return wordsOf(table, Object.keys(whole).length > 0 ? tag : known);
}

function wordsOf(t: Table, code: string) {
  const { fill, count } = fillingIn(code);
  const minutes = (forms: { under: string; about: Counted }) => (left: number): string =>
    left < 0.75 ? forms.under : count(forms.about, Math.round(left), { minutes: Math.round(left) });
  const waiting = (forms: { none: string; kept: Counted }) => (kept: number): string =>
    kept === 0 ? forms.none : count(forms.kept, kept);
  const counted = (forms: Counted) => (number: number) => count(forms, number);
  /** One, and no other number, has a sentence of its own. */
  const alone = (only: string, more: Counted) => (number: number) => (number === 1 ? only : count(more, number));
  const place = (text: string) => (number: number, count: number) => fill(text, { number, count });
  const indexed = (text: string) => (index: number, count: number) => fill(text, { index, count });
  return {
    ...t,
    code,
    direction: t.direction as "ltr" | "rtl",
    progress: (percent: number) => fill(t.progress, { percent }),
    step: (step: number, steps: number) => fill(t.step, { step, steps }),
    left: minutes(t.left),
    /** The same on the line above a trial, which has little room. */
    left_short: (left: number) =>
      left < 0.75 ? t.left_short.under : fill(t.left_short.about, { minutes: Math.round(left) }),
    /** Nothing if there is no other part. */
    part: (part: number, parts: number) => (parts === 1 ? "" : fill(t.part, { part, parts })),
    number: place(t.number),
    offline: waiting(t.offline),
    server_silent: waiting(t.server_silent),
    loading: (done: number, total: number) => fill(t.loading, { done, total }),
    loading_failed: counted(t.loading_failed),
    device: { ...t.device, size: (width: number, height: number) => fill(t.device.size, { width, height }) },
    screen: {
      ...t.screen,
      tries: (done: number, tries: number) => fill(t.screen.tries, { done, tries }),
      result: (cm: number) => fill(t.screen.result, { cm }),
    },
    attempts_left: alone(t.attempts_left.last, t.attempts_left.more),
    practice: {
      ...t.practice,
      count: indexed(t.practice.count),
      right: (label: string) => fill(t.practice.right, { label }),
      wrong: (label: string) => fill(t.practice.wrong, { label }),
      kept: (choice: string) => fill(t.practice.kept, { choice }),
    },
    form: {
      ...t.form,
      number: (min: number | null, max: number | null) => {
        const { between, least, most, any } = t.form.number;
        const text = min !== null ? (max !== null ? between : least) : max !== null ? most : any;
        return fill(text, { ...(min !== null && { min }), ...(max !== null && { max }) });
      },
      missing: alone(t.form.missing.only, t.form.missing.more),
    },
    plates: { ...t.plates, count: indexed(t.plates.count) },
    block: {
      ...t.block,
      title: (part: number, parts: number) =>
        parts === 1 ? t.block.title.only : fill(t.block.title.part, { part, parts }),
      back: (next: number, total: number) => fill(t.block.back, { next, total }),
      train: counted(t.block.train),
      test: counted(t.block.test),
      key: counted(t.block.key),
      done: (done: number, parts: number) => fill(t.block.done, { done, parts }),
      left: minutes(t.block.left),
      told: counted(t.block.told),
    },
    trial: {
      ...t.trial,
      /** For those who do not see the grey: the marked words, the darkest first. */
      marked: (words: string) => fill(t.trial.marked, { words }),
      sides: [t.trial.sides.first, t.trial.sides.second],
    },
    /** The two ends of the scale of colours, the lower one first. */
    legend: {
      importance: [t.legend.importance.less, t.legend.importance.more] as [string, string],
      sides: [t.legend.sides.against, t.legend.sides.for] as [string, string],
    },
    rating: {
      ...t.rating,
      place: place(t.rating.place),
      /** The name of a point at an end of the scale, with the digit that stands on it. */
      end: (point: number, meaning: string) => fill(t.rating.end, { point: String(point), meaning }),
      /** `numbers` is a list of numbers in words of the language: "1, 3, and 5". */
      missing: (open: number, numbers: string) => count(t.rating.missing, open, { numbers }),
    },
    solve: {
      ...t.solve,
      place: place(t.solve.place),
      sizes: [t.solve.sizes.small, t.solve.sizes.medium, t.solve.sizes.large] as [string, string, string],
      /** What the keyboard does. `has_letters`: no answer has the keys B and E. */
      hint: {
        ...t.solve.hint,
        more: (has_letters: boolean) => (has_letters ? t.solve.hint.letters : t.solve.hint.more),
      },
      cells: counted(t.solve.cells),
      cell: (row: number, column: number, is_marked: boolean, cells: number) =>
        count(is_marked ? t.solve.cell.marked : t.solve.cell.unmarked, cells, { row, column }),
      marked: counted(t.solve.marked),
      chosen: (answer: string) => fill(t.solve.chosen, { answer }),
      both: (answer: string, cells: number) => count(t.solve.both, cells, { answer }),
      aside: counted(t.solve.aside),
      no_answer: (cells: number) => (cells === 0 ? t.solve.no_answer.none : t.solve.no_answer.marks),
    },
    review: { ...t.review, place: place(t.review.place) },
    training: {
      ...t.training,
      count: indexed(t.training.count),
      /** What is told has the points that fit and why: "2 to 4: …". */
      fits: (told: string) => fill(t.training.fits, { told }),
      differs: (told: string) => fill(t.training.differs, { told }),
      kept: (point: string) => fill(t.training.kept, { point }),
    },
    reservoir: {
      ...t.reservoir,
      title: (count: number) => fill(t.reservoir.title, { count }),
      show: (count: number) => fill(t.reservoir.show, { count }),
      tile: (index: number, label: string) => fill(t.reservoir.tile, { index, label }),
    },
    keys: {
      ...t.keys,
      now: (keys: string) => fill(t.keys.now, { keys }),
      place: (index: number, count: number) =>
        count !== 2
          ? fill(t.keys.place.number, { number: index + 1 })
          : index === 0
            ? t.keys.place.left
            : t.keys.place.right,
      reset: (keys: string) => fill(t.keys.reset, { keys }),
      used: (keys: string) => fill(t.keys.used, { keys }),
    },
    finish: {
      ...t.finish,
      stored: alone(t.finish.stored.only, t.finish.stored.all),
      automatic: (seconds: number) => count(t.finish.automatic, seconds, { seconds }),
      hand_in_automatic: (seconds: number) => count(t.finish.hand_in_automatic, seconds, { seconds }),
    },
    trouble: {
      ...t.trouble,
      cannot_show: (kind: string) => fill(t.trouble.cannot_show, { kind }),
      write_to: (contact: string) => fill(t.trouble.write_to, { contact }),
    },
  };
}

export const en = wordsFor("en");
export const de = wordsFor("de");
/** Every language that the page brings. */
export const LANGUAGES: Record<string, Words> = { de, en };
