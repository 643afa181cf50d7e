/** What the files of an application tell about it: what it is written in, what it depends on, what its .env says. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "./env-file.js";

export interface Project {
  readonly folder: string;
  /** Its files are to be TypeScript. */
  readonly isTypeScript: boolean;
  /** The compiler knows `process`. */
  readonly hasNodeTypes: boolean;
  /** Names of packages, of all kinds of dependencies. */
  readonly dependencies: ReadonlySet<string>;
  /** What its .env files say, the first that names a variable counting. */
  readonly dotEnv: ReadonlyMap<string, { readonly value: string; readonly file: string }>;
  /** The text of a file in it; null if there is none. */
  read(name: string): string | null;
}

/** In the order in which most tools read them. */
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
    // Where there is nothing yet, the better choice.
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

/** One that cannot be read tells nothing. */
function parseJson(json: string): unknown {
  try {
    return JSON.parse(json) ?? {};
  } catch {
    return {};
  }
}
