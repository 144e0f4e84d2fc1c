/** What a trial shows above its question: a picture beside its explanation, a text with grey behind words, a pair. */
import { h } from "../frame/dom";
import { legend } from "../trials/legend";
import type { Media, Side, Text, Token } from "../server/model";
import type { Words } from "../words";
import type { Shown } from "./kind";

export interface Stimulus {
  image?: Media | null;
  explanation?: Media | null;
  text?: Text | null;
  pair?: [Side, Side] | null;
}

export type Given = Pick<Shown, "display" | "legend" | "words" | "picture">;

/** The places of the stimulus; a trial without any keeps the places of a picture empty, so that nothing moves. */
export function stimulus(shown: Stimulus, given: Given): HTMLElement {
  const { image = null, explanation = null, text = null, pair = null } = shown;
  given = { ...given, picture: eachOnce(given.picture) };
  const hasPictures = image !== null || (text === null && (explanation !== null || pair === null));
  const explained = given.words.trial.explanation;
  const parts = [
    hasPictures ? pictures(image, explanation, given) : null,
    text === null ? null : textBlock(text, given.words),
    // What explains a text by a picture stands below it.
    hasPictures || explanation === null
      ? null
      : h("div", { class: "pictures alone" }, place(explanation, explained, given, given.legend)),
    pair === null ? null : pairBlock(pair, given),
  ].filter((part) => part !== null);
  return parts.length === 1 ? parts[0]! : h("div", { class: "stimuli" }, ...parts);
}

/** The page has one element per address; a picture that stands in two places needs two. */
export function eachOnce(picture: Given["picture"]): Given["picture"] {
  const used = new Set<HTMLImageElement>();
  return (media) => {
    const image = picture(media);
    if (used.has(image)) return image.cloneNode() as HTMLImageElement;
    used.add(image);
    return image;
  };
}

/**
 * A picture alone stands in the middle, one with its explanation beside it around the middle. Without any there is
 * an empty place, so that question and answers stay where they are.
 */
function pictures(image: Media | null, explanation: Media | null, given: Given): HTMLElement {
  const { original, explanation: explained } = given.words.trial;
  if (given.display === "beside" && image !== null && explanation !== null) return besides(image, explanation, given);
  const [caption, meaning] = explanation === null ? [original, null] : [explained, given.legend];
  return h("div", { class: "pictures alone" }, place(explanation ?? image, caption, given, meaning));
}

/** Both places are there with or without what stands in them, so that the picture stands where it stands. */
export function besides(image: Media | null, explanation: Media | null, given: Given): HTMLElement {
  const { original, explanation: explained } = given.words.trial;
  const both = [place(image, original, given), place(explanation, explained, given, given.legend)];
  return h("div", { class: "pictures beside" }, ...both);
}

function place(
  media: Media | null,
  caption: string,
  given: Given,
  meaning: Given["legend"] = null,
): HTMLElement {
  if (media === null) return h("div", { class: "place empty" });
  return h(
    "figure",
    { class: "place" },
    h("div", { class: "picture" }, given.picture(media)),
    // Bars and words say themselves what they mean.
    h("figcaption", {}, caption, media.is_said ? null : legend(meaning, given.words)),
  );
}

/**
 * Words as words: they wrap, can be read aloud and enlarged; the label names what it is and nothing about it. Every
 * word is an element of its own, marked or not, so that marks change neither lines nor places. Who does not see the
 * grey is told the marked words after the text: spoken between the words, marks would tear the sentence apart, and
 * most screen readers keep silent about them.
 */
export function textBlock(text: Text, words: Words): HTMLElement {
  const marked = markedWords(text.tokens);
  return h(
    "figure",
    { class: "text", "aria-label": words.trial.text },
    // The text's own direction counts, whatever the language of the interface.
    h("p", { dir: "auto" }, ...wordsOf(text)),
    marked.length === 0 ? null : h("figcaption", { class: "sr-only" }, words.trial.marked(marked.join(", "))),
  );
}

/** Each word and each space of a text, with the grey of its piece behind it. */
export function wordsOf(text: Text): HTMLElement[] {
  return text.tokens.flatMap(pieces);
}

function pieces({ text, shade }: Token): HTMLElement[] {
  return (text.match(/\s+|\S+/g) ?? []).map((part) => {
    const word = h("span", {}, part);
    if (!isMarked(shade)) return word;
    const grey = greyOf(shade);
    word.className = "shaded";
    word.style.backgroundColor = `rgb(${grey}, ${grey}, ${grey})`;
    word.style.setProperty("--shade", String(Math.min(shade, 1)));
    return word;
  });
}

function isMarked(shade: number | null): shade is number {
  return shade !== null && shade > 0;
}

/** What is marked, the darkest first, as it stands in the text. */
function markedWords(tokens: Token[]): string[] {
  const marked = tokens.filter((token) => isMarked(token.shade) && token.text.trim() !== "");
  return marked.sort((a, b) => b.shade! - a.shade!).map((token) => token.text.trim());
}

const WHITE = 255;
/** As in stimuli/render/tokens.py, so that page and stored picture agree. Black letters on it have 5.3 to 1. */
const DARKEST = 128;

/** The grey behind a word, 0 to 255; a shade outside 0 to 1 counts as the nearer end. */
export function greyOf(shade: number): number {
  return Math.round(WHITE - Math.min(Math.max(shade, 0), 1) * (WHITE - DARKEST));
}

const PARTS = ["image", "text", "mark", "sentence"] as const;

/** A and B beside each other in equal columns, what explains them below; each row is as high as its higher half. */
export function pairBlock(pair: [Side, Side], given: Given): HTMLElement {
  const rows = PARTS.filter((part) => pair.some((side) => side[part] !== null));
  const sides = pair.map((side, index) => {
    const name = given.words.trial.sides[index]!;
    return h(
      "div",
      { class: "side", role: "group", "aria-label": name },
      h("p", { class: "side-name", "aria-hidden": "true" }, name),
      ...rows.map((part) => sidePart(side, part, given)),
    );
  });
  const isTall = rows.includes("image") && rows.includes("mark");
  const block = h("div", { class: isTall ? "pair tall" : "pair" }, ...sides);
  block.style.setProperty("--rows", String(rows.length + 1));
  return block;
}

/** An absent part keeps its place: the other half's must not move up beside something else. */
function sidePart(side: Side, part: (typeof PARTS)[number], given: Given): HTMLElement {
  const { words, picture } = given;
  const isPicture = part === "image" || part === "mark";
  const media = isPicture ? side[part] : null;
  if (media !== null) return h("div", { class: "picture" }, picture(media));
  if (part === "text" && side.text !== null) return textBlock(side.text, words);
  if (part === "sentence" && side.sentence !== null) return h("p", { dir: "auto" }, side.sentence);
  return h("div", { class: isPicture ? "picture" : null });
}
