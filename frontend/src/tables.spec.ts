// @vitest-environment node
/** Kinds and gates are decided in their tables: no other module may compare with one or key anything by one. */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import ts from "typescript";
import { namesIn as keysOf } from "../build/own-plugins.ts";

const HERE = import.meta.dirname;
const KINDS = keysOf(join(HERE, "plugins/kinds.ts"), "KINDS")!;
const GATES = keysOf(join(HERE, "pages/gates/index.ts"), "GATES")!;
const NAMES = new Set([...KINDS, ...GATES]);
/** The tables, the types of the wire, and the words, which are data by name. */
const TABLES = ["plugins/kinds.ts", "pages/gates/index.ts", "server/model.ts", "server/wire.ts", "words/index.ts"];
/** The same word for something else. */
const OTHERWISE = new Map([
  ["pages/gates/consent.ts", "device"], // a field of what consent sends
  ["journey.ts", "questions"], // a field of a page
  ["pages/gates/form.ts", "questions"], // a class of the style sheet
  ["plugins/rate/index.ts", "questions"], // those of a rating
  ["plugins/rate/form.ts", "questions"],
  ["pages/gates/training.ts", "questions"],
]);

/** Names of kinds and gates that the source has as literals or as keys of an object. */
function namesIn(source: string): string[] {
  const named: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node)) named.push(node.text);
    else if (ts.isObjectLiteralElementLike(node) && node.name && ts.isIdentifier(node.name)) named.push(node.name.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile("source.ts", source, ts.ScriptTarget.ES2022));
  return named.filter((name) => NAMES.has(name));
}

function modules(): string[] {
  const files = readdirSync(HERE, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files
    .map((entry) => relative(HERE, join(entry.parentPath, entry.name)))
    .filter((name) => /\.ts$/.test(name) && !/(\.spec|\.d|^cast)\.ts$/.test(name) && !TABLES.includes(name));
}

test.each(modules())("%s decides nothing by the name of a kind or a gate", (name) => {
  const named = namesIn(readFileSync(join(HERE, name), "utf8"));
  expect(named.filter((word) => OTHERWISE.get(name) !== word)).toEqual([]);
});

test.each([
  ['if (trial.kind === "learn") show();', "learn"],
  ["switch (page.kind) { case `quiz`: break; }", "quiz"],
  ['["solve", "x"].includes(kind);', "solve"],
  ["const seconds = { rate: 3 };", "rate"],
  ["const pages = { plates() {} };", "plates"],
])("it sees a decision: %s", (source, name) => {
  expect(namesIn(source)).toEqual([name]);
});
