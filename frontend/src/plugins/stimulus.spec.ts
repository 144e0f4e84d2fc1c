import { readFileSync } from "node:fs";
import { join } from "node:path";
import { media } from "../cast";
import type { Media, Side, Text } from "../server/model";
import { en } from "../words";
import { greyOf, stimulus, type Stimulus } from "./stimulus";

const SCALE = { colours: ["#440154", "#21918c", "#fde725"], ends: "importance" as const };

function shown(
  given: Stimulus,
  display: "beside" | "overlay" = "beside",
  legend: typeof SCALE | null = null,
): HTMLElement {
  const picture = (one: Media): HTMLImageElement => Object.assign(new Image(), { alt: one.alt, src: one.url });
  const element = stimulus(given, { display, legend, words: en, picture });
  document.body.replaceChildren(element);
  return element;
}

function text(...tokens: [string, number | null][]): Text {
  return { tokens: tokens.map(([word, shade]) => ({ text: word, shade })) };
}

function side(changes: Partial<Side> = {}): Side {
  return { image: null, mark: null, text: null, sentence: null, ...changes };
}

/** WCAG 2.2, relative luminance and contrast of two greys, 0 to 255. */
function contrast(one: number, other: number): number {
  const luminance = (grey: number): number => {
    const share = grey / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

test("it sets words as words, with grey behind those that have a shade", () => {
  const block = shown({ text: text(["The film is ", null], ["witty", 1], [" and ", 0], ["slow", 0.5], [".", null]) });
  expect(block.querySelector("p")?.textContent).toBe("The film is witty and slow.");
  const greys = [...block.querySelectorAll<HTMLElement>(".shaded")].map((word) => [
    word.textContent,
    word.style.backgroundColor,
  ]);
  expect(greys).toEqual([
    ["witty", "rgb(128, 128, 128)"],
    ["slow", "rgb(192, 192, 192)"],
  ]);
  expect(block.querySelector("img, svg, canvas")).toBeNull();
});

test("marks change nothing of a text but the grey: the same elements, whatever pieces it comes in", () => {
  const marked = shown({ text: text(["The ", null], ["film", 1], [" is  ", null], ["slow", 0.5], [".\n", null]) });
  const skeleton = (): unknown =>
    [...document.querySelectorAll(".text p > *")].map((word) => [word.tagName, word.children.length, word.textContent]);
  const before = [skeleton(), marked.querySelector("p")?.textContent];
  const plain = shown({ text: text(["The film is  slow", null], [".\n", null]) });
  expect([skeleton(), plain.querySelector("p")?.textContent].at(1)).toBe(before[1]);
  expect(plain.querySelector(".shaded, [style]")).toBeNull();
  const other = shown({ text: text(["The", 0.2], [" ", null], ["film", null], [" is  ", null], ["slow", 1], [".\n", null]) });
  expect(skeleton()).toEqual(before[0]);
  expect(other.querySelectorAll("[class]")).toHaveLength(3);
});

test("who does not see the grey hears the marked words after the text, the darkest first; none if none is", () => {
  const block = shown({ text: text(["The ", 0.2], ["film ", 1], ["is", null], [" ", 0.9], ["slow", 0.5]) });
  const said = block.querySelector("figcaption.sr-only")!;
  expect(said.textContent).toBe("Marked, the darkest first: film, slow, The.");
  expect(block.querySelector("p")!.compareDocumentPosition(said)).toBe(Node.DOCUMENT_POSITION_FOLLOWING);
  expect(shown({ text: text(["The film.", null]) }).querySelector("figcaption")).toBeNull();
});

test("its letters can be read on every shade, and more weight is darker", () => {
  const css = readFileSync(join(import.meta.dirname, "../style/trials.css"), "utf8");
  expect(/\.text p \{[^}]*\bcolor: #000;/.test(css)).toBe(true);
  const greys = Array.from({ length: 101 }, (_, share) => greyOf(share / 100));
  for (const grey of greys) expect(contrast(grey, 0)).toBeGreaterThanOrEqual(4.5);
  for (const [index, grey] of greys.slice(1).entries()) expect(grey).toBeLessThan(greys[index]!);
  expect(contrast(0, 255)).toBeCloseTo(21, 5);
});

test("a shade that is none counts as the nearer end", () => {
  expect([greyOf(-1), greyOf(0), greyOf(1), greyOf(7)]).toEqual([255, 255, 128, 128]);
  const block = shown({ text: text(["a", Number.NaN], ["b", -0.3]) });
  expect(block.querySelector(".shaded")).toBeNull();
});

test("it sets a text with markup as text, keeps its lines, and follows its own direction", () => {
  const nasty = "<img src=x onerror=alert(1)>\nשלום";
  const block = shown({ text: text([nasty, 0.4]) });
  expect(block.querySelector("p")?.textContent).toBe(nasty);
  expect(block.querySelector("img")).toBeNull();
  expect(block.querySelector("p")?.dir).toBe("auto");
});

test("the labels of texts and pairs name what they are, not what they mean", () => {
  shown({ text: text(["wolf", 1]), pair: [side({ image: media("a") }), side({ image: media("b") })] });
  const labels = [...document.querySelectorAll("[aria-label]")].map((element) => element.getAttribute("aria-label"));
  expect(labels).toEqual(["Text", "A", "B"]);
});

test("it keeps the place of a picture empty if there is nothing to show", () => {
  const empty = '<div class="pictures alone"><div class="place empty"></div></div>';
  expect(shown({}).outerHTML).toBe(empty);
  expect(shown({}, "overlay").outerHTML).toBe(empty);
});

test("it shows a picture beside its explanation, or the explanation in its place", () => {
  const both = { image: media("i"), explanation: media("x") };
  const captions = (): (string | null)[] => [...document.querySelectorAll("figcaption")].map((one) => one.textContent);
  shown(both);
  expect(captions()).toEqual(["Picture", "Explanation"]);
  shown(both, "overlay");
  expect(captions()).toEqual(["Explanation"]);
});

test("it says what colours mean under the explanation, and nowhere else", () => {
  const both = { image: media("i"), explanation: media("x") };
  shown(both, "beside", SCALE);
  const captions = [...document.querySelectorAll("figcaption")].map((one) => one.textContent);
  expect(captions).toEqual(["Picture", "Explanationless importantmore important"]);
  const bar = document.querySelector<HTMLElement>(".legend-bar")!;
  expect(bar.style.backgroundImage).toContain("linear-gradient(to right");
  shown({ image: media("i") }, "beside", SCALE);
  expect(document.querySelector(".legend")).toBeNull();
  shown(both, "overlay", SCALE);
  expect(document.querySelectorAll(".legend")).toHaveLength(1);
  shown(both, "beside", null);
  expect(document.querySelector(".legend")).toBeNull();
  // Bars and words are no map, in whatever study of maps they stand.
  const bars = { ...media("x"), is_said: true };
  for (const display of ["beside", "overlay"] as const) {
    shown({ image: media("i"), explanation: bars }, display, SCALE);
    expect(document.querySelector(".legend")).toBeNull();
  }
});

test("it shows the picture that explains a text below the text, and no empty place", () => {
  const block = shown({ text: text(["one", null]), explanation: media("x") });
  expect([...block.children].map((part) => part.className)).toEqual(["text", "pictures alone"]);
  expect(block.querySelectorAll("img")).toHaveLength(1);
  expect(block.querySelector(".empty")).toBeNull();
});

test("it sets two sides beside each other, in rows of the same parts", () => {
  const a = side({ image: media("a"), mark: media("am"), sentence: "red <b>stripes</b>" });
  const b = side({ image: media("b"), sentence: "blue dots" });
  const pair = shown({ pair: [a, b] });
  const parts = [...pair.querySelectorAll(".side")].map((half) => [...half.children].map((part) => part.className));
  expect(parts[0]).toEqual(parts[1]);
  expect(pair.style.getPropertyValue("--rows")).toBe("4");
  expect(pair.querySelectorAll("img")).toHaveLength(3);
  expect(pair.querySelector("b")).toBeNull();
  expect([...pair.querySelectorAll(".side-name")].map((name) => name.textContent)).toEqual(["A", "B"]);
});

test("it shows the same picture in both sides, although the page keeps one element of it", () => {
  const kept = new Map<string, HTMLImageElement>();
  const picture = ({ url }: Media): HTMLImageElement => {
    kept.set(url, kept.get(url) ?? Object.assign(new Image(), { src: url }));
    return kept.get(url)!;
  };
  const marked = (mark: string): Side => side({ image: media("a"), mark: media(mark) });
  const pair = stimulus({ pair: [marked("x"), marked("y")] }, { display: "beside", legend: null, words: en, picture });
  const sources = [...pair.querySelectorAll(".side")].map((half) =>
    [...half.querySelectorAll("img")].map((image) => image.getAttribute("src")),
  );
  expect(sources).toEqual([
    ["/m/a", "/m/x"],
    ["/m/a", "/m/y"],
  ]);
});

test("it sets a pair of texts with their shades", () => {
  const pair = shown({ pair: [side({ text: text(["one", 1]) }), side({ text: text(["two", null]) })] });
  expect([...pair.querySelectorAll(".text p")].map((block) => block.textContent)).toEqual(["one", "two"]);
  expect(pair.querySelectorAll(".shaded")).toHaveLength(1);
});
