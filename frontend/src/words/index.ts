/** The language of the interface: the study's, or until that is known the browser's. */
import { de } from "./de";
import { en, type Words } from "./en";

export type { Words };

/** Adding a language is one file that fills `Words` and one entry here. */
export const LANGUAGES: Record<string, Words> = { de, en };

/** The words for a language tag such as `de-AT`; English where the language is not there. */
export function wordsFor(tag: string): Words {
  return LANGUAGES[tag.toLowerCase().split("-")[0] ?? ""] ?? en;
}
