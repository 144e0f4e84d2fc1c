/** A study's own phrases in place of the interface's, for what the interface would say about the task. */
import type { Words } from "./en";
import table from "./overridable.json";

/** The phrases that a study may replace, and the names that may stand in braces in each. */
export const OVERRIDABLE: Readonly<Record<string, readonly string[]>> = table;

type Tree = { readonly [key: string]: unknown };

/**
 * `phrases` is text by key: "{count} sentences to sort". Two forms, for one and for more, are divided by " | ":
 * "{count} sentence | {count} sentences". A key that is not in the table changes nothing and is reported.
 */
export function withPhrases(words: Words, phrases: Readonly<Record<string, string>>): Words {
  let tree: Tree = words;
  for (const [key, text] of Object.entries(phrases)) {
    const names = Object.hasOwn(OVERRIDABLE, key) ? OVERRIDABLE[key]! : null;
    if (names === null) console.error(`"${key}" is no phrase that a study can replace: see words/overridable.json`);
    else tree = replaced(tree, key.split("."), names.length > 0 ? filling(text, names) : text);
  }
  return tree as Words;
}

function replaced(tree: Tree, [first = "", ...rest]: string[], leaf: unknown): Tree {
  return { ...tree, [first]: rest.length > 0 ? replaced(tree[first] as Tree, rest, leaf) : leaf };
}

/** A function of the phrase's arguments, as the interface's own phrase is. */
function filling(text: string, names: readonly string[]): (...given: unknown[]) => string {
  const forms = text.split(" | ");
  return (...given) => {
    const form = given[names.indexOf("count")] === 1 ? forms[0] : forms.at(-1);
    return form!.replace(/\{(\w+)\}/g, (braced, name: string) =>
      names.includes(name) ? String(given[names.indexOf(name)]) : braced,
    );
  };
}
