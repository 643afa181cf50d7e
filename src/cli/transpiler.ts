/** Transpiles TypeScript where Node cannot read it, with a tool that the user's project has. */
import { createRequire } from "node:module";
import { CliError } from "./cli-error.js";

type Format = "module" | "commonjs";
type Transpile = (source: string, path: string, format: Format) => string;

/** Returns null if the installed version cannot transpile: TypeScript 7 has no compiler API. */
type Adapter = (tool: unknown) => Transpile | null;

interface Esbuild {
  transformSync(source: string, options: object): { readonly code: string };
}

interface Swc {
  transformSync(source: string, options: object): { readonly code: string };
}

interface TypeScript {
  readonly transpileModule?: (source: string, options: object) => { readonly outputText: string };
}

const esbuild: Adapter = (tool) => (source, path, format) =>
  (tool as Esbuild).transformSync(source, {
    loader: "ts",
    format: format === "module" ? "esm" : "cjs",
    target: "es2022",
    sourcefile: path,
    sourcemap: "inline",
    logLevel: "silent",
  }).code;

const swc: Adapter = (tool) => (source, path, format) =>
  (tool as Swc).transformSync(source, {
    filename: path,
    swcrc: false,
    configFile: false,
    sourceMaps: "inline",
    module: { type: format === "module" ? "es6" : "commonjs" },
    jsc: { target: "es2022", parser: { syntax: "typescript", decorators: true } },
  }).code;

const typescript: Adapter = (tool) => {
  const { transpileModule } = tool as TypeScript;
  if (transpileModule === undefined) return null;
  return (source, path, format) =>
    transpileModule(source, {
      // TypeScript emits CommonJS for a .cts file, whatever the options say.
      fileName: format === "module" ? path.replace(/\.cts$/, ".mts") : path,
      compilerOptions: {
        target: "ES2022",
        module: format === "module" ? "ES2022" : "CommonJS",
        inlineSourceMap: true,
        inlineSources: true,
        isolatedModules: true,
      },
    }).outputText;
};

/** The tools in order of preference; `through` is the package that has the tool as a dependency. */
const tools: readonly { readonly name: string; readonly through?: string; readonly adapt: Adapter }[] = [
  { name: "esbuild", adapt: esbuild },
  { name: "esbuild", through: "tsx", adapt: esbuild },
  { name: "@swc/core", adapt: swc },
  { name: "typescript", adapt: typescript },
];

/** Packages that can transpile, the recommended one first. (TypeScript itself can do it only before version 7.) */
export const transpilerPackages = ["esbuild", "tsx", "@swc/core"];

/** Whether Node reads TypeScript itself. The @types/node of the oldest supported Node does not declare this feature. */
export const nodeReadsTypeScript = Boolean((process.features as { readonly typescript?: unknown }).typescript);

let cachedTranspile: Transpile | null = null;

export function transpile(source: string, path: string, format: Format): string {
  cachedTranspile ??= chooseTranspiler(path);
  return cachedTranspile(source, path, format);
}

/** Searches for a tool in the file's project, then where Pawl is installed. */
function chooseTranspiler(path: string): Transpile {
  for (const from of [path, import.meta.url]) {
    for (const { name, through, adapt } of tools) {
      const tool = requireTool(name, through, from);
      const transpileWithTool = tool === null ? null : adapt(tool);
      if (transpileWithTool !== null) return transpileWithTool;
    }
  }
  throw new CliError(
    `Node ${process.versions.node} cannot read TypeScript; use Node 22.18 or later, or run: npm install --save-dev esbuild`,
  );
}

function requireTool(name: string, through: string | undefined, from: string): unknown {
  try {
    const require = createRequire(from);
    return (through === undefined ? require : createRequire(require.resolve(through)))(name);
  } catch {
    return null;
  }
}
