/** A lab's own trial kinds and gates, built into the page without a change in the checkout. */
import { existsSync, readFileSync } from "node:fs";
import { resolve, sep } from "node:path";
import { parseAst, type Plugin } from "vite";

export const VARIABLE = "LEGIBLE_PLUGINS";
const VIRTUAL = "virtual:legible-plugins";
const NONE = "export const kinds = {}; export const gates = {};";
/** What the lab's index.ts exports, and the core's table of the same: file below src/, exported name, what one is. */
const TABLES = {
  kinds: { file: "plugins/kinds.ts", name: "KINDS", what: "a trial kind" },
  gates: { file: "pages/gates/index.ts", name: "GATES", what: "a gate" },
} as const;

/**
 * Puts the tables of the folder's index.ts behind `virtual:legible-plugins`, or empty ones if `folder` is empty. A
 * relative folder is taken from the checkout. Packages that the folder does not bring itself come from frontend/.
 */
export function ownPlugins(frontend: string, folder: string): Plugin {
  const home = folder === "" ? null : resolve(frontend, "..", folder);
  const index = home === null ? null : resolve(home, "index.ts");
  return {
    name: "legible-own-plugins",
    buildStart() {
      if (index === null) return;
      const fault = faultOf(frontend, index);
      if (fault !== null) throw new Error(`${VARIABLE}=${folder}: ${fault}`);
    },
    async resolveId(source, importer) {
      if (source === VIRTUAL) return `\0${VIRTUAL}`;
      const isOurs = home !== null && importer !== undefined && importer.startsWith(home + sep);
      if (!isOurs || /^[./\0]/.test(source)) return null;
      const own = await this.resolve(source, importer, { skipSelf: true });
      return own ?? this.resolve(source, resolve(frontend, "index.html"), { skipSelf: true });
    },
    load(id) {
      if (id !== `\0${VIRTUAL}`) return null;
      return index === null ? NONE : `export { kinds, gates } from ${JSON.stringify(index)};`;
    },
  };
}

/** Why the lab's index.ts cannot be built into the page, in a sentence; null if it can. */
function faultOf(frontend: string, index: string): string | null {
  if (!existsSync(index)) return `there is no ${index}; name a folder that has one, or leave it unset.`;
  for (const [name, table] of Object.entries(TABLES)) {
    const core = namesIn(resolve(frontend, "src", table.file), table.name);
    const own = namesIn(index, name);
    if (core === null || own === null) {
      const [file, missing] = own === null ? [index, name] : [table.file, table.name];
      return `${file} must say \`export const ${missing} = { … }\` with plain names and no spread; {} is none.`;
    }
    const taken = own.filter((one) => core.includes(one)).join(", ");
    if (taken !== "") return `${taken} is ${table.what} of the core (${core.join(", ")}); take another name.`;
  }
  return null;
}

/** The names in `export const NAME = { … }`, read and not executed; null if the table is not written out like that. */
export function namesIn(file: string, name: string): string[] | null {
  for (const statement of parseAst(readFileSync(file, "utf8"), { lang: "ts" }).body) {
    if (statement.type !== "ExportNamedDeclaration" || statement.declaration?.type !== "VariableDeclaration") continue;
    for (const { id, init } of statement.declaration.declarations) {
      if (id.type !== "Identifier" || id.name !== name || init === null) continue;
      const table = init.type === "TSSatisfiesExpression" ? init.expression : init;
      if (table.type !== "ObjectExpression") return null;
      const keys = table.properties.map((property) => (property.type === "Property" ? keyOf(property) : null));
      return keys.includes(null) ? null : keys.filter((key) => key !== null);
    }
  }
  return null;
}

function keyOf(property: { key: { type: string; name?: unknown; value?: unknown }; computed: boolean }): string | null {
  const { key, computed } = property;
  const given = key.type === "Identifier" && !computed ? key.name : key.value;
  return typeof given === "string" ? given : null;
}
