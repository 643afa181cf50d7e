// Reads the declarations (dist/**/*.d.ts) that `tsc` writes for the package's entry points: their names, their members
// and their comments. TypeScript 7 has no compiler API, so this is done on the text, which has the compiler's own
// regular form. The API reference and the tests of the documentation use it; the library must have been built.

import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The entry points in package.json: "pawl", "pawl/testing" …, each with the file of its declarations. */
export function entryPoints() {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return Object.entries(exports).flatMap(([path, { types }]) =>
    types === undefined ? [] : [{ name: path.replace(/^\./, "pawl"), file: join(root, types) }],
  );
}

/** Every name that the file exports, and the file that declares it. */
export function* exportsOf(file, seen = new Set()) {
  if (seen.has(file)) return;
  seen.add(file);
  const text = readFileSync(file, "utf8");
  for (const [, list, from] of text.matchAll(/^export (?:type )?\{([^}]*)\} from "([^"]+)";/gm)) {
    for (const item of list.split(",").map((part) => part.trim().replace(/^type /, ""))) {
      if (item === "") continue;
      const [name, as = name] = item.split(" as ");
      yield* exportOf(resolve(file, from), name, as);
    }
  }
  for (const [, from] of text.matchAll(/^export (?:type )?\* from "([^"]+)";/gm))
    yield* exportsOf(resolve(file, from), seen);
  for (const [, , name] of text.matchAll(
    /^export (?:declare )?(?:abstract )?(function|class|const|interface|type) (\w+)/gm,
  ))
    yield { file, name, as: name };
}

/** A file may re-export a name that another file declares. */
function* exportOf(file, name, as) {
  for (const exported of exportsOf(file)) {
    if (exported.as !== name) continue;
    yield { ...exported, as };
    return;
  }
}

const resolve = (from, path) => join(dirname(from), path.replace(/\.js$/, ".d.ts"));

/** A declaration, exported or not: its kind, and the text and comment of each overload. Null if the file has none. */
export function declarationOf(file, name) {
  const text = readFileSync(file, "utf8");
  const pattern = new RegExp(
    `^(?:export )?(?:declare )?(?:abstract )?(function|class|const|interface|type) ${name}\\b`,
    "gm",
  );
  const matches = [...text.matchAll(pattern)];
  if (matches.length === 0) return null;
  const [, kind] = matches[0];
  const overloads = matches.map(({ index }) => ({
    text: text.slice(index, endOf(text, index, kind)),
    comment: commentBefore(text, index),
  }));
  return { file, name, kind, overloads };
}

/** The declarations that a class or an interface extends and that are not themselves among the `exportedNames`. */
export const basesOf = (declaration, exportedNames) =>
  ancestorsOf(declaration, "extends").filter(({ name }) => !exportedNames.has(name));

/** @param clause "extends" or "implements" */
function ancestorsOf({ file, kind, overloads }, clause) {
  if (kind !== "class" && kind !== "interface") return [];
  const text = readFileSync(file, "utf8");
  const header = withoutTypeParameters(overloads[0].text.slice(0, bodyStart(overloads[0].text)));
  const [, names = ""] = new RegExp(` ${clause} (.*?)(?: implements |$)`, "s").exec(header) ?? [];
  return names
    .split(",")
    .map((name) => name.trim())
    .filter((name) => /^\w+$/.test(name))
    .flatMap((name) => {
      const from = new RegExp(`^import (?:type )?\\{[^}]*\\b${name}\\b[^}]*\\} from "([^"]+)";`, "m").exec(text)?.[1];
      const [exported] = from === undefined ? [] : exportOf(resolve(file, from), name, name);
      const declaration = declarationOf(exported?.file ?? file, name);
      return declaration === null ? [] : [declaration];
    });
}

/** `class A<T extends B<C>> extends D<T> {` → `class A extends D {` */
function withoutTypeParameters(header) {
  const shorter = header.replace(/<[^<>]*>/g, "");
  return shorter === header ? header : withoutTypeParameters(shorter);
}

/** The end of the declaration that begins here: its closing brace, or the semicolon outside of all brackets. */
function endOf(text, from, kind) {
  if (kind === "class" || kind === "interface") return closingBrace(text, bodyStart(text, from)) + 1;
  let depth = 0;
  for (let at = from; at < text.length; at = next(text, at)) {
    if ("{([".includes(text[at])) depth += 1;
    else if ("})]".includes(text[at])) depth -= 1;
    else if (text[at] === ";" && depth === 0) return at + 1;
  }
  return text.length;
}

/** The brace that opens the body of a class or an interface; type literals in its header are within angle brackets. */
function bodyStart(text, from = 0) {
  let depth = 0;
  for (let at = from; at < text.length; at = next(text, at)) {
    if (text[at] === "<") depth += 1;
    else if (text[at] === ">" && text[at - 1] !== "=") depth -= 1;
    else if (text[at] === "{" && depth === 0) return at;
  }
  return text.length;
}

function closingBrace(text, open) {
  let depth = 0;
  for (let at = open; at < text.length; at = next(text, at)) {
    if (text[at] === "{") depth += 1;
    else if (text[at] === "}" && --depth === 0) return at;
  }
  return text.length;
}

/** The position after the character, the string or the comment at this one. */
function next(text, at) {
  if (text.startsWith("/*", at)) return text.indexOf("*/", at) + 2;
  if (text[at] === '"' || text[at] === "'" || text[at] === "`") return text.indexOf(text[at], at + 1) + 1;
  return at + 1;
}

function commentBefore(text, index) {
  const before = text.slice(0, index).trimEnd();
  return before.endsWith("*/") ? before.slice(before.lastIndexOf("/**")) : null;
}

/** The text of a JSDoc comment, without its stars. */
export function commentText(comment) {
  return comment
    .replace(/^\/\*\*/, "")
    .replace(/\*\/$/, "")
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, ""))
    .join("\n")
    .trim();
}

/**
 * The public members of a declaration, those of type literals within it included: `{ path, comment }`, the path being
 * "Store.rollback.discard". An overloaded member is listed once, with the comment of its first overload.
 */
export function membersOf({ name, kind, overloads }) {
  const members = new Map();
  const add = (path, comment) => members.has(path) || members.set(path, { path, comment });
  for (const { text } of overloads) {
    if (kind === "class" || kind === "interface") readMembers(text, bodyStart(text), name, add);
    else readType(text, 0, name, add);
  }
  return [...members.values()];
}

/** Reads the members between the braces; returns the position after the closing one. */
function readMembers(text, open, path, add) {
  let comment = null;
  let at = open + 1;
  while (text[at] !== "}" && at < text.length) {
    if (/\s/.test(text[at])) at += 1;
    else if (text.startsWith("/*", at)) {
      const end = next(text, at);
      comment = text.slice(at, end);
      at = end;
    } else {
      const name = memberName(text.slice(at));
      const memberPath = `${path}.${name}`;
      if (name !== null && !isDiscriminant(text.slice(at))) add(memberPath, comment);
      at = readType(text, at, memberPath, name === null ? () => {} : add);
      comment = null;
    }
  }
  return at + 1;
}

/** Null for a member that is not public, begins with an underscore (it carries a type only), or has a symbol or an index for a name. */
function memberName(text) {
  if (/^(private |protected |#private)/.test(text)) return null;
  const [modifiers] = /^(?:(?:static|readonly|abstract|declare|override|get|set) )*/.exec(text);
  const rest = text.slice(modifiers.length);
  if (rest.startsWith("_")) return null;
  if (/^[(<]/.test(rest)) return "()";
  return /^[\w$]+/.exec(rest)?.[0] ?? /^"([^"]+)"/.exec(rest)?.[1] ?? null;
}

/** `readonly kind: "step";`: the name of the variant, which says all there is to say. */
const isDiscriminant = (text) => /^(?:readonly )?\w+(?:: | = )"[^"]*";/.test(text);

/** Reads a type up to the semicolon at its end, and the members of the type literals in it; returns the position after. */
function readType(text, from, path, add) {
  /** The brackets that are open, each with the text that stands directly within it, since the last comma. */
  const groups = [{ opener: "", direct: "" }];
  let at = from;
  while (at < text.length) {
    const group = groups.at(-1);
    const character = text[at];
    if (character === ";" && groups.length === 1) return at + 1;
    if (character === "}" && groups.length === 1) return at;
    if (character === "{") {
      at = isTypeLiteral(text, at, group) ? readMembers(text, at, path, add) : closingBrace(text, at) + 1;
      group.direct += "{}";
      continue;
    }
    if ("(<[".includes(character)) groups.push({ opener: character, direct: "" });
    else if (")]".includes(character) || (character === ">" && text[at - 1] !== "=")) groups.pop();
    else if (character === ",") group.direct = "";
    else if (!text.startsWith("/*", at)) group.direct += text.slice(at, next(text, at));
    at = next(text, at);
  }
  return at;
}

/** Not a pattern of parameters, a mapped type, or the constraint of a type parameter or of a condition. */
function isTypeLiteral(text, open, { opener, direct }) {
  if (opener === "(" && direct.trim() === "" && /^\s*:/.test(text.slice(closingBrace(text, open) + 1))) return false;
  if (/^\{\s*(?:[-+]?readonly )?\[\w+ in /.test(text.slice(open))) return false;
  return !/\bextends\b[^?]*$/.test(direct);
}

/**
 * Every public name and member of the package, each once: `{ entry, file, path, kind, comment }`, the file being that of
 * the source and the comment null where there is none. Editors show the comment of an interface for the members of a
 * class that implements it, and the comment of a class for its constructor: these count as comments here, too.
 */
export function publicApi() {
  const api = new Map();
  for (const { name: entry, file: entryFile } of entryPoints()) {
    const exported = [...exportsOf(entryFile)];
    const exportedNames = new Set(exported.map(({ name }) => name));
    const add = ({ file, kind }, path, comment) => {
      const source = relative(root, file).replace(/^dist\/(.*)\.d\.ts$/, "src/$1.ts");
      const key = `${source}:${path}`;
      if (!api.has(key)) api.set(key, { entry, file: source, path, kind, comment });
    };
    const addMembers = (declaration) => {
      const members = membersOf(declaration);
      const inherited = inheritedComments(declaration, members);
      for (const { path, comment } of members) add(declaration, path, comment ?? inherited.get(path) ?? null);
      for (const base of basesOf(declaration, exportedNames)) addMembers(base);
    };
    for (const { file, name } of exported) {
      const declaration = declarationOf(file, name);
      add(declaration, name, declaration.overloads[0].comment);
      addMembers(declaration);
    }
  }
  return [...api.values()];
}

/** The comments that members of a class have from the interfaces that it implements and from the class itself. */
function inheritedComments(declaration, members) {
  const { name, overloads } = declaration;
  const comments = new Map([[`${name}.constructor`, overloads[0].comment]]);
  for (const base of ancestorsOf(declaration, "implements"))
    for (const { path, comment } of membersOf(base)) comments.set(path.replace(base.name, name), comment);
  // An option of the constructor that becomes a property of the same name.
  for (const { path, comment } of members) comments.set(path.replace(".", ".constructor."), comment);
  return comments;
}
