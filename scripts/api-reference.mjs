// `node scripts/api-reference.mjs [--write]`
//
// Makes the API reference, docs/api.md, from the declarations that `tsc` writes for the package's entry points. Without
// --write it only compares the page with them (exit code 1 if they differ). The library must have been built.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { basesOf, commentText, declarationOf, entryPoints, exportsOf } from "./declarations.mjs";

const root = new URL("..", import.meta.url).pathname;
const page = join(root, "docs/api.md");

/** What each entry point is for, in the order of the page. */
const entries = [
  ["pawl", "Define, start, work, look."],
  ["pawl/http", "The HTTP API."],
  ["pawl/testing", "Tests with virtual time, crashes at every commit, and the suite for stores."],
  ["pawl/otel", "OpenTelemetry."],
  ["pawl/prometheus", "The Prometheus endpoint."],
];

export function apiReference() {
  const files = new Map(entryPoints().map(({ name, file }) => [name, file]));
  const sections = entries.map(([name, purpose]) => section(name, purpose, files.get(name)));
  return `# API reference\n\nMade from the types, by \`node scripts/api-reference.mjs --write\`. How things are used is in the [guides](README.md).\n\n${sections.join("\n")}`;
}

function section(name, purpose, file) {
  const exported = [...exportsOf(file)];
  const names = new Set(exported.map(({ name }) => name));
  const found = exported.map((declared) => describe(declared, names));
  const parts = ["function", "class", "const", "interface", "type"].flatMap((kind) => {
    const ofKind = found.filter((declared) => declared.kind === kind).sort((a, b) => a.as.localeCompare(b.as, "en"));
    if (ofKind.length === 0) return [];
    return [
      `### ${titles[kind]}\n`,
      ...ofKind.map(({ as, doc, text }) => `#### ${as}\n\n${doc}\`\`\`dts\n${text}\n\`\`\`\n`),
    ];
  });
  return `## \`${name}\`\n\n${purpose}\n\n${parts.join("\n")}`;
}

const titles = { function: "Functions", class: "Classes", const: "Values", interface: "Interfaces", type: "Types" };

/** The text of a declaration (of a function, all its overloads), and its comment as prose. */
function describe({ file, name, as }, exportedNames) {
  const declaration = declarationOf(file, name);
  const { kind, overloads } = declaration;
  // The page shows what a class inherits from a class that is not exported.
  const bases = kind === "class" ? basesOf(declaration, exportedNames) : [];
  const texts = [declaration, ...bases].flatMap((part) => part.overloads.map(({ text }) => tidy(text)));
  return { as, kind, doc: proseOf(overloads[0].comment), text: texts.join("\n\n") };
}

/** Without the private members. */
function tidy(block) {
  return block
    .replace(/^export (declare )?/, "")
    .split("\n")
    .filter((line) => !/^\s*(private |#private|declare )/.test(line))
    .join("\n");
}

function proseOf(comment) {
  if (comment === null) return "";
  // Examples belong to the guides, where they are executed.
  const prose = commentText(comment)
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
