/** Reads from the files of an application its language, its dependencies and its .env variables. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "./env-file.js";

export interface Project {
  readonly folder: string;
  /** Whether `pawl init` writes files for the application in TypeScript. */
  readonly isTypeScript: boolean;
  /** Whether the compiler knows `process`. */
  readonly hasNodeTypes: boolean;
  /** The names of its packages, including those for development. */
  readonly dependencies: ReadonlySet<string>;
  /** The variables of its .env files; the first file that names a variable wins. */
  readonly dotEnv: ReadonlyMap<string, { readonly value: string; readonly file: string }>;
  /** The text of a file in the folder, or null if the file does not exist. */
  read(name: string): string | null;
}

/** The .env files in order of precedence, which is the same as in most tools. */
const envFiles = [".env.local", ".env.development", ".env"];

interface PackageJson {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

export function readProject(folder: string): Project {
  const read = (name: string) => {
    const file = join(folder, name);
    return existsSync(file) ? readFileSync(file, "utf8") : null;
  };
  const json = read("package.json");
  const { dependencies, devDependencies } = (json === null ? {} : parseJson(json)) as PackageJson;
  const names = new Set([...Object.keys(dependencies ?? {}), ...Object.keys(devDependencies ?? {})]);
  return {
    folder,
    // A folder without package.json gets TypeScript.
    isTypeScript:
      json === null || names.has("typescript") || names.has("tsx") || existsSync(join(folder, "tsconfig.json")),
    hasNodeTypes: names.has("@types/node"),
    dependencies: names,
    dotEnv: new Map(
      envFiles
        .toReversed()
        .flatMap((file) => parseEnv(read(file) ?? "").map(([name, value]) => [name, { value, file }])),
    ),
    read,
  };
}

/** A package.json that is not valid JSON is treated as empty. */
function parseJson(json: string): unknown {
  try {
    return JSON.parse(json) ?? {};
  } catch {
    return {};
  }
}
