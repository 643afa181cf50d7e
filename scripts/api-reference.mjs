// `node scripts/api-reference.mjs [--write]`
//
// The API reference, docs/api.md, made of the declarations that `tsc` writes for the package's entry points. Without
// --write it is only compared with what is there (exit code 1 when it differs). The library must have been built.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = new URL("..", import.meta.url).pathname;
const page = join(root, "docs/api.md");

/** What each entry point is for, in the order of the page. */
const entries = [
  ["pawl", "Define, start, work, look."],
  ["pawl/testing", "Tests with virtual time, crashes at every commit, and the suite for stores."],
  ["pawl/otel", "OpenTelemetry."],
  ["pawl/prometheus", "The Prometheus endpoint."],
];

export function apiReference() {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const sections = entries.flatMap(([name, purpose]) => {
    const types = exports[name === "pawl" ? "." : `./${name.slice("pawl/".length)}`]?.types;
    return types === undefined ? [] : [section(name, purpose, join(root, types))];
  });
  return `# API reference\n\nMade from the types, by \`node scripts/api-reference.mjs --write\`. How things are used is in the [guides](README.md).\n\n${sections.join("\n")}`;
}

function section(name, purpose, file) {
  const exported = [...exportsOf(file)];
  const names = new Set(exported.map((one) => one.name));
  const found = exported.map((one) => ({ ...one, ...declarationOf(one.file, one.name, names) }));
  const parts = ["function", "class", "const", "interface", "type"].flatMap((kind) => {
    const ofKind = found.filter((one) => one.kind === kind).sort((a, b) => a.as.localeCompare(b.as, "en"));
    if (ofKind.length === 0) return [];
    return [
      `### ${titles[kind]}\n`,
      ...ofKind.map((one) => `#### ${one.as}\n\n${one.doc}\`\`\`dts\n${one.text}\n\`\`\`\n`),
    ];
  });
  return `## \`${name}\`\n\n${purpose}\n\n${parts.join("\n")}`;
}

const titles = { function: "Functions", class: "Classes", const: "Values", interface: "Interfaces", type: "Types" };

/** Every name that the file exports, and the file that declares it. */
function* exportsOf(file, seen = new Set()) {
  if (seen.has(file)) return;
  seen.add(file);
  const text = readFileSync(file, "utf8");
  for (const [, list, from] of text.matchAll(/^export (?:type )?\{([^}]*)\} from "([^"]+)";/gm)) {
    for (const item of list.split(",").map((one) => one.trim().replace(/^type /, ""))) {
      if (item === "") continue;
      const [name, as = name] = item.split(" as ");
      yield* through(resolve(file, from), name, as);
    }
  }
  for (const [, from] of text.matchAll(/^export (?:type )?\* from "([^"]+)";/gm))
    yield* exportsOf(resolve(file, from), seen);
  for (const [, , name] of text.matchAll(declarations)) yield { file, name, as: name };
}

/** A file may only pass on what another one declares. */
function* through(file, name, as) {
  for (const one of exportsOf(file)) {
    if (one.as !== name) continue;
    yield { ...one, as };
    return;
  }
}

const resolve = (from, path) => join(dirname(from), path.replace(/\.js$/, ".d.ts"));

const declarations = /^export (?:declare )?(?:abstract )?(function|class|const|interface|type) (\w+)/gm;

/**
 * The text of a declaration (for a function, all its overloads), and its comment as prose. `names`: the names that have
 * an entry on the page.
 */
function declarationOf(file, name, names) {
  const text = readFileSync(file, "utf8");
  const pattern = new RegExp(
    `^export (?:declare )?(?:abstract )?(function|class|const|interface|type) ${name}\\b`,
    "gm",
  );
  const found = [...text.matchAll(pattern)];
  const [, kind] = found[0];
  const blocks = found.map(({ index }) => text.slice(index, endOf(text, index, kind)));
  const bases = kind === "class" ? basesOf(file, text, blocks[0], names) : [];
  return { kind, doc: commentBefore(text, found[0].index), text: [...blocks.map(tidy), ...bases].join("\n\n") };
}

/** Inherited members are part of a class, also if the base class is not exported. */
function basesOf(file, text, block, names) {
  const [, base] = /^[^{]* extends (\w+)/.exec(block) ?? [];
  if (names.has(base)) return [];
  const from = new RegExp(`^import (?:type )?\\{[^}]*\\b${base}\\b[^}]*\\} from "([^"]+)";`, "m").exec(text)?.[1];
  return from === undefined ? [] : [declarationOf(resolve(file, from), base, names).text];
}

/** The end of the declaration that starts here: its closing brace, or the semicolon outside of all brackets. */
function endOf(text, from, kind) {
  const closes = kind === "class" || kind === "interface";
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at];
    if (text.startsWith("/*", at)) at = text.indexOf("*/", at) + 1;
    else if (character === '"' || character === "`") at = text.indexOf(character, at + 1);
    else if ("{([".includes(character)) depth += 1;
    else if ("})]".includes(character)) {
      depth -= 1;
      if (depth === 0 && closes && character === "}") return at + 1;
    } else if (character === ";" && depth === 0) return at + 1;
  }
  return text.length;
}

/** Removes private members. */
function tidy(block) {
  return block
    .replace(/^export (declare )?/, "")
    .split("\n")
    .filter((line) => !/^\s*(private |#private|declare )/.test(line))
    .join("\n");
}

function commentBefore(text, index) {
  const before = text.slice(0, index).trimEnd();
  if (!before.endsWith("*/")) return "";
  const comment = before.slice(before.lastIndexOf("/**"));
  const lines = comment
    .replace(/^\/\*\*/, "")
    .replace(/\*\/$/, "")
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, ""));
  // Examples belong to the guides, where they are executed.
  const prose = lines
    .join("\n")
    .replace(/```[\s\S]*?```/g, "")
    .replace(/@example[\s\S]*$/, "")
    .trim();
  return prose === "" ? "" : `${prose}\n\n`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const made = apiReference();
  if (process.argv.includes("--write")) writeFileSync(page, made);
  else if (!existsSync(page) || readFileSync(page, "utf8") !== made) {
    console.error("docs/api.md is not what the types say; run `node scripts/api-reference.mjs --write`.");
    process.exitCode = 1;
  }
}
