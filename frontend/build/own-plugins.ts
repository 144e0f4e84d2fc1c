/** A lab's own trial kinds and gates, built into the page without a change in the checkout. */
import { existsSync } from "node:fs";
import { resolve, sep } from "node:path";
import { parseAst, type Plugin } from "vite";

export const VARIABLE = "LEGIBLE_PLUGINS";
const VIRTUAL = "virtual:legible-plugins";
const NONE = "export const kinds = {}; export const gates = {};";
/** What the lab's index.ts exports, and the core's table of the same: file below src/, exported name, what one is. */
const TABLES = {
  kinds: { file: "plugins/kinds.ts", name: "KINDS", what: "a trial kind" },
  gates: { file: "pages/gates.ts", name: "GATES", what: "a gate" },
} as const;

/**
 * Puts the tables of the folder's index.ts behind `virtual:legible-plugins`, or empty ones if `folder` is empty. A
 * relative folder is taken from the checkout. Packages that the folder does not bring itself come from frontend/.
 */
export function ownPlugins(frontend: string, folder: string): Plugin {
  const home = folder === "" ? null : resolve(frontend, "..", folder);
  const index = home === null ? null : resolve(home, "index.ts");
  const core = Object.values(TABLES).map((table) => resolve(frontend, "src", table.file));
  const names = new Map<string, string[]>();
  return {
    name: "legible-own-plugins",
    enforce: "post",
    buildStart() {
      if (index !== null && !existsSync(index))
        throw new Error(`${VARIABLE}=${folder}: there is no ${index}; name a folder that has one, or leave it unset.`);
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
    transform(code, id) {
      const table = Object.values(TABLES)[core.indexOf(id)];
      if (table !== undefined) names.set(table.name, namesIn(code, table.name, table.file));
      if (id === index) for (const name of Object.keys(TABLES)) names.set(name, namesIn(code, name, index));
      return null;
    },
    buildEnd(error) {
      if (error !== undefined || index === null) return;
      for (const [name, table] of Object.entries(TABLES)) {
        const taken = refusal(table.what, names.get(name) ?? [], names.get(table.name) ?? []);
        if (taken !== null) throw new Error(`${VARIABLE}=${folder}: ${taken}`);
      }
    },
  };
}

/** Why a lab's names cannot be taken; null if they can. */
export function refusal(what: string, own: string[], core: string[]): string | null {
  const taken = own.filter((name) => core.includes(name));
  if (taken.length === 0) return null;
  return `${taken.map((name) => `"${name}"`).join(", ")} is ${what} of the core (${core.join(", ")}); take another name.`;
}

/** The names in `export const NAME = { … }`; nothing is executed, so the table must be written out there. */
export function namesIn(code: string, name: string, file: string): string[] {
  for (const statement of parseAst(code).body) {
    if (statement.type !== "ExportNamedDeclaration" || statement.declaration?.type !== "VariableDeclaration") continue;
    for (const { id, init } of statement.declaration.declarations) {
      if (id.type !== "Identifier" || id.name !== name || init?.type !== "ObjectExpression") continue;
      const keys = init.properties.map((property) => (property.type === "Property" ? keyOf(property.key) : null));
      if (keys.every((key) => key !== null)) return keys;
    }
  }
  throw new Error(`${file} must say \`export const ${name} = { … }\` with plain names and no spread; {} is none.`);
}

function keyOf(key: { type: string; name?: unknown; value?: unknown }): string | null {
  const given = key.type === "Identifier" ? key.name : key.value;
  return typeof given === "string" ? given : null;
}
