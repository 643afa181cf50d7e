/**
 * Hooks that Node calls while it loads the user's modules. Older Node versions run them asynchronously in a separate
 * thread, newer ones synchronously in the main thread, so the hooks return what `next` returns and never await it.
 */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { nodeReadsTypeScript, transpile } from "./transpiler.js";

interface ResolveContext {
  readonly parentURL?: string | undefined;
}

interface Resolved {
  readonly url: string;
  readonly format?: string;
  readonly shortCircuit?: boolean;
}

interface Loaded {
  readonly format: string;
  readonly source?: unknown;
  readonly shortCircuit?: boolean;
}

type LoadListener = (path: string) => void;

/** Called with the path of each user file that is loaded. */
let onLoad: LoadListener | null = null;

/** Sets the listener where the hooks run in the main thread. */
export function setLoadListener(listener: LoadListener): void {
  onLoad = listener;
}

/** Node calls this function where the hooks run in a separate thread. */
export function initialize(data?: { readonly port?: { postMessage(path: string): void } }): void {
  const port = data?.port;
  if (port !== undefined) onLoad = (path) => port.postMessage(path);
}

/** Whether TypeScript has to be transpiled by a tool of the user's project. */
export const needsTranspiler = !nodeReadsTypeScript;

export function resolve<Answer>(
  specifier: string,
  context: ResolveContext,
  next: (specifier: string, context: ResolveContext) => Answer,
): Answer | Resolved {
  const pawlUrl = pawlModuleUrl(specifier);
  if (pawlUrl !== null) return { url: pawlUrl, format: "module", shortCircuit: true };
  return next(findTypeScriptSpecifier(specifier, context.parentURL) ?? specifier, context);
}

export function load<Answer>(
  url: string,
  context: object,
  next: (url: string, context: object) => Answer,
): Answer | Loaded {
  if (onLoad !== null && isUserFile(url)) onLoad(fileURLToPath(url));
  const path = url.startsWith("file:") && isTypeScript(url) ? fileURLToPath(url) : null;
  if (path === null) return next(url, context);
  const source = readFileSync(path, "utf8");
  // The syntax decides, not package.json: `npm init` marks packages as "commonjs" although their authors write `import`.
  const format = path.endsWith(".mts") || hasModuleSyntax(source) ? "module" : "commonjs";
  if (nodeReadsTypeScript) return next(url, { ...context, format: `${format}-typescript` });
  return { format, source: transpile(source, path, format), shortCircuit: true };
}

// ── This copy of Pawl ───────────────────────────────────────────────────────────────────────────────────────────────

const packageUrl = new URL("../../package.json", import.meta.url);
const { name, exports } = JSON.parse(readFileSync(packageUrl, "utf8")) as {
  readonly name: string;
  readonly exports: Readonly<Record<string, { readonly default?: string }>>;
};

const pawlFolderUrl = new URL("./", packageUrl).href;

const isUserFile = (url: string) =>
  url.startsWith("file:") && !url.includes("/node_modules/") && !url.startsWith(`${pawlFolderUrl}dist/`);

function pawlModuleUrl(specifier: string): string | null {
  if (specifier !== name && !specifier.startsWith(`${name}/`)) return null;
  const target = exports[`.${specifier.slice(name.length)}`]?.default;
  return target === undefined ? null : new URL(target, packageUrl).href;
}

// ── TypeScript ──────────────────────────────────────────────────────────────────────────────────────────────────────

const isTypeScript = (url: string) => /\.[mc]?ts$/.test(url);

/**
 * Matches `import … from` and `export …`, but not `import x = require()`, `export =` and `import()`, which a CommonJS
 * file may contain.
 */
const hasModuleSyntax = (source: string) =>
  /^[ \t]*(?:import\b(?!\s*\()(?!\s+[\w$]+\s*=)|export\b(?!\s*=))/m.test(source);

/**
 * Returns the specifier of the TypeScript file that `./steps.js` (if it does not exist) or `./steps` stands for, or
 * null.
 */
function findTypeScriptSpecifier(specifier: string, parentUrl: string | undefined): string | null {
  if (parentUrl === undefined || !parentUrl.startsWith("file:") || !/^\.{0,2}\//.test(specifier)) return null;
  const exists = (candidate: string) => existsSync(fileURLToPath(new URL(candidate, parentUrl)));
  const tsSpecifier = specifier.replace(/\.([mc]?)js$/, ".$1ts");
  if (tsSpecifier !== specifier) return !exists(specifier) && exists(tsSpecifier) ? tsSpecifier : null;
  if (!isTypeScript(parentUrl)) return null;
  if (/\.\w+$/.test(specifier)) return null;
  return [`${specifier}.ts`, `${specifier}/index.ts`].find(exists) ?? null;
}
