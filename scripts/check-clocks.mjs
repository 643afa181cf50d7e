// Part of `npm run check`: clocks, timers and random sources are used in src/runtime/ alone. Everything else gets them
// from a `Runtime` that it is given, so that a test or a simulation can own time and chance. Tests are exempt.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./run.mjs";

const home = "src/runtime/";

/** Reached through a variable that is called a runtime, these are a runtime's own. */
const ofRuntime = String.raw`(?<![rR]untime\s*\??\.\s*)`;
const timers = "setTimeout|setInterval|setImmediate|clearTimeout|clearInterval|clearImmediate";
const randomness = "randomBytes|randomUUID|randomInt|randomFill|randomFillSync|getRandomValues";

/** In code without comments and the contents of strings. */
const forbiddenInCode = [
  [/\bDate\s*\.\s*now\b/g, "runtime.now()"],
  [/\bnew\s+Date\b(?!\s*\(\s*[^\s)])/g, "new Date(runtime.now())"],
  [/(?<!\bnew\s+)\bDate\s*\(/g, "new Date(runtime.now())"],
  [/\bperformance\b/g, "runtime.monotonic()"],
  [/\bhrtime\b/g, "runtime.threadClock()"],
  [/\bMath\s*\.\s*random\b/g, "runtime.random()"],
  [/\bAbortSignal\s*\.\s*timeout\b/g, "runtime.setTimeout()"],
  [new RegExp(String.raw`${ofRuntime}\b(?:${timers})\b`, "g"), "the timers of a runtime"],
  [new RegExp(String.raw`${ofRuntime}\b(?:${randomness})\b`, "g"), "runtime.randomBytes()"],
];

/** In code without comments: modules are named by strings. */
const forbiddenModules = [
  [
    /(?<=\b(?:from|import|import\s*\(|require\s*\()\s*["'`])(?:node:)?timers(?:\/promises)?(?=["'`])/g,
    "runtime/wait.js",
  ],
  [/(?<=\b(?:from|import|import\s*\(|require\s*\()\s*["'`])(?:node:)?perf_hooks(?=["'`])/g, "runtime.monotonic()"],
];

/** The exit code: 0 when all is well. */
export function checkClocks() {
  const problems = sources().flatMap((file) =>
    directUses(readFileSync(join(root, file), "utf8")).map(
      ({ line, use, instead }) => `${file}:${line}  ${use}: use ${instead}`,
    ),
  );
  for (const problem of problems) console.error(problem);
  return problems.length === 0 ? 0 : 1;
}

const sources = () =>
  readdirSync(join(root, "src"), { recursive: true })
    .map((path) => `src/${path.replaceAll("\\", "/")}`)
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && !file.startsWith(home))
    .sort();

function directUses(text) {
  const { code, withStrings } = stripped(text);
  const found = [];
  const look = (where, rules) => {
    for (const [pattern, instead] of rules) {
      for (const { 0: use, index } of where.matchAll(pattern))
        found.push({ line: text.slice(0, index).split("\n").length, use: use.trim(), instead });
    }
  };
  look(code, forbiddenInCode);
  look(withStrings, forbiddenModules);
  return found.sort((a, b) => a.line - b.line);
}

/** After these a slash begins a regular expression, not a division. */
const beforeRegExp = /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|void|await|yield))\s*$/;

/**
 * The text with blanks for comments and regular expressions (`withStrings`), and for the contents of strings as well
 * (`code`). The code within `${…}` stays. Every character keeps its place.
 */
function stripped(text) {
  let code = "";
  let withStrings = "";
  const blank = (part) => part.replace(/[^\n]/g, " ");
  const skip = (part) => {
    code += blank(part);
    withStrings += blank(part);
  };
  const keep = (part) => {
    code += part;
    withStrings += part;
  };
  const quote = (part) => {
    const end = part.endsWith("${") ? "(" : '"';
    code += part.length < 2 ? " " : `"${blank(part.slice(1, -1))}${end}`;
    withStrings += part;
  };
  /** How many braces are open in each `${…}` that is open. */
  const nested = [];
  const rest = (pattern, at) => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0] ?? text[at];
  };
  for (let at = 0; at < text.length; ) {
    const char = text[at];
    let part = char;
    const closesNested = char === "}" && nested.at(-1) === 0;
    if (text.startsWith("//", at)) skip((part = rest(/[^\n]*/y, at)));
    else if (text.startsWith("/*", at)) skip((part = rest(/\/\*[\s\S]*?\*\//y, at)));
    else if (char === '"' || char === "'") quote((part = rest(/(["'])(?:\\[\s\S]|(?!\1)[^\\\n])*\1/y, at)));
    else if (char === "/" && beforeRegExp.test(code.slice(-40)))
      skip((part = rest(/\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/\w*/y, at)));
    else if (char === "`" || closesNested) {
      if (closesNested) nested.pop();
      part = rest(/[`}](?:\\[\s\S]|(?!\$\{)[^`\\])*(?:`|\$\{)/y, at);
      quote(part);
      if (part.endsWith("${")) nested.push(0);
    } else {
      if (nested.length > 0 && char === "{") nested.push(nested.pop() + 1);
      if (nested.length > 0 && char === "}") nested.push(nested.pop() - 1);
      keep(part);
    }
    at += part.length;
  }
  return { code, withStrings };
}
