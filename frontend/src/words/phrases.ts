/** Sentences as data: what stands in braces is filled in, and a count chooses the form that its language has for it. */

export type Tree = { readonly [key: string]: string | Tree };
/** Sentences by path: "block.test.other". */
export type Phrases = Readonly<Record<string, string>>;
/** A sentence in the forms of its language, by the categories of CLDR; all have "other". */
export type Forms = { readonly other: string };
type Values = Readonly<Record<string, string | number>>;

const CATEGORIES = ["zero", "one", "two", "few", "many", "other"];

/** How the language of a tag fills a sentence, and a sentence in forms by its count. */
export function fillingIn(tag: string): {
  fill: (text: string, values: Values) => string;
  count: (forms: Forms, count: number, values?: Values) => string;
} {
  // Small counts and sizes of windows: no language needs a mark between their digits.
  const numbers = new Intl.NumberFormat(tag, { useGrouping: false });
  const rules = new Intl.PluralRules(tag);
  const fill = (text: string, values: Values): string =>
    text.replace(/\{(\w+)\}/g, (braced, name: string) => {
      const value = Object.hasOwn(values, name) ? values[name]! : braced;
      return typeof value === "number" ? numbers.format(value) : value;
    });
  const count = (forms: Forms, count: number, values: Values = {}): string =>
    fill((forms as Record<string, string>)[rules.select(count)] ?? forms.other, { count, ...values });
  return { fill, count };
}

/** The table with some of its sentences said otherwise. A path that it does not have changes nothing and is reported. */
export function withPhrases<T extends Tree>(table: T, phrases: Phrases): T {
  let tree: Tree = table;
  for (const [path, text] of Object.entries(phrases)) {
    const keys = path.split(".");
    if (hasSentence(tree, keys)) tree = replaced(tree, keys, text);
    else console.error(`"${path}" is no sentence of this page`);
  }
  return tree as T;
}

function hasSentence(tree: Tree, keys: string[]): boolean {
  const [last = "", ...above] = [...keys].reverse();
  const parent = above.reduceRight<string | Tree | undefined>(
    (inner, key) => (typeof inner === "object" && Object.hasOwn(inner, key) ? inner[key] : undefined),
    tree,
  );
  if (typeof parent !== "object") return false;
  return Object.hasOwn(parent, last) ? typeof parent[last] === "string" : isForms(parent) && CATEGORIES.includes(last);
}

function isForms(tree: Tree): boolean {
  return "other" in tree && Object.keys(tree).every((key) => CATEGORIES.includes(key));
}

function replaced(tree: Tree, [first = "", ...rest]: string[], text: string): Tree {
  return { ...tree, [first]: rest.length > 0 ? replaced(tree[first] as Tree, rest, text) : text };
}
