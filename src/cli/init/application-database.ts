/**
 * Finds the database that an application uses in the places where applications configure it. The first place that names
 * one wins; where only the kind of database is known, its URL is expected in DATABASE_URL.
 */
import { posix } from "node:path";
import { CliError } from "../cli-error.js";
import { type DatabaseKind, kindOf, schemeOf } from "../migration-sql.js";
import type { Project } from "./project.js";

export interface FoundDatabase {
  readonly kind: DatabaseKind;
  /** The URL, or null if only the kind of database is known. */
  readonly url: string | null;
  /** Where it was found, for display: "--url", "DATABASE_URL in .env", "prisma/schema.prisma". */
  readonly from: string;
  /** The environment variable that contains the URL; null if there is none, and `pawl init` writes `url` itself. */
  readonly variable: string | null;
  /** The .env file that sets the variable, or null if the environment sets it. */
  readonly envFile: string | null;
}

type Env = Readonly<Record<string, string | undefined>>;

interface DatabaseCandidate {
  readonly from: string;
  readonly url: string | null;
  readonly variable?: string;
  readonly envFile?: string | null;
  /** The folder that the path of a database file is relative to. */
  readonly base?: string;
  readonly kind?: DatabaseKind;
}

export const defaultVariable = "DATABASE_URL";
const defaultSqliteUrl = "sqlite:./pawl.db";

export function findDatabase(project: Project, env: Env, urlOption: string | undefined): FoundDatabase {
  const readVariable = (variable: string): DatabaseCandidate | null => {
    const fromFile = project.dotEnv.get(variable);
    if (env[variable]) return { from: variable, url: env[variable], variable, envFile: null };
    if (fromFile === undefined || fromFile.value === "") return null;
    return { from: `${variable} in ${fromFile.file}`, url: fromFile.value, variable, envFile: fromFile.file };
  };
  const lookups: readonly (() => DatabaseCandidate | null)[] = [
    () => (urlOption === undefined ? null : { from: "--url", url: urlOption }),
    () => readVariable("PAWL_URL"),
    () => findInPrisma(project, readVariable),
    () => findInToolConfig(project, readVariable),
    () => readVariable(defaultVariable),
    () => readVariable("TURSO_DATABASE_URL"),
    () => findInDependencies(project),
  ];
  for (const lookup of lookups) {
    const candidate = lookup();
    if (candidate !== null) return toFoundDatabase(candidate, project);
  }
  return { kind: "sqlite", url: defaultSqliteUrl, from: "default", variable: null, envFile: null };
}

function toFoundDatabase(candidate: DatabaseCandidate, project: Project): FoundDatabase {
  const { from, variable = null, envFile = null } = candidate;
  if (candidate.url === null)
    return { kind: candidate.kind as DatabaseKind, url: null, from, variable: defaultVariable, envFile };
  const url = toPawlUrl(candidate.url, candidate.base ?? ".", project);
  const kind = kindOf(url);
  if (kind === null)
    throw new CliError(
      `${from} names a database that Pawl does not know ("${schemeOf(candidate.url)}:"); give another: pawl init --url sqlite:./pawl.db`,
    );
  // The variable contains a URL that Pawl does not accept, so `pawl init` writes the converted URL into the
  // configuration instead.
  return url === candidate.url
    ? { kind, url, from, variable, envFile }
    : { kind, url, from, variable: null, envFile: null };
}

/** `file:` means SQLite to most tools; for Pawl it is libSQL, whose driver may not be installed. */
function toPawlUrl(url: string, base: string, { dependencies }: Project): string {
  const [, path] = /^file:(?:\/\/)?(.+)$/i.exec(url) ?? [];
  if (path === undefined) return url;
  const scheme = dependencies.has("libsql") ? "libsql" : "sqlite";
  if (path.startsWith("/")) return `${scheme}:${path}`;
  return `${scheme}:./${posix.join(base, path.split("?")[0] as string)}`;
}

/**
 * Reads the datasource of Prisma's schema, such as `datasource db { provider = "postgresql"  url = env("DATABASE_URL")
 * }`.
 */
function findInPrisma(
  project: Project,
  readVariable: (variable: string) => DatabaseCandidate | null,
): DatabaseCandidate | null {
  const file = ["prisma/schema.prisma", "schema.prisma"].find((name) => project.read(name) !== null);
  const [, source] = /datasource\s+\w+\s*\{([^}]*)\}/.exec(file === undefined ? "" : (project.read(file) ?? "")) ?? [];
  if (file === undefined || source === undefined) return null;
  const base = posix.dirname(file);
  const [, variable, url] = /^\s*url\s*=\s*(?:env\(\s*"([^"]+)"\s*\)|"([^"]+)")/m.exec(source) ?? [];
  if (url !== undefined) return { from: file, url, base };
  const candidate = readVariable(variable ?? defaultVariable);
  if (candidate !== null) return { ...candidate, from: `${file}: ${candidate.from}`, base };
  const [, provider] = /^\s*provider\s*=\s*"([^"]+)"/m.exec(source) ?? [];
  const kind = kindOf(`${provider === "cockroachdb" ? "postgresql" : provider}:`);
  return kind === null || kind === "sqlite" ? null : { from: file, url: null, kind };
}

/** Reads the configuration of Drizzle or Knex, if the URL in it is a literal or an environment variable. */
function findInToolConfig(
  project: Project,
  readVariable: (variable: string) => DatabaseCandidate | null,
): DatabaseCandidate | null {
  const names = ["drizzle.config", "knexfile"].flatMap((name) =>
    ["ts", "js", "mjs", "cjs"].map((end) => `${name}.${end}`),
  );
  const file = names.find((name) => project.read(name) !== null);
  if (file === undefined) return null;
  const text = project.read(file) ?? "";
  const [, , url] = /\b(url|connection|connectionString)\s*:\s*["'`]([a-z+]+:[^"'`$]+)["'`]/i.exec(text) ?? [];
  if (url !== undefined) return { from: file, url };
  const [, , variable] = /\b(url|connection|connectionString)\s*:\s*process\.env\.(\w+)/.exec(text) ?? [];
  const candidate = variable === undefined ? null : readVariable(variable);
  return candidate === null ? null : { ...candidate, from: `${file}: ${candidate.from}` };
}

/** A driver reveals the kind of database. Drivers of SQLite are not listed, because they do not reveal the file. */
function findInDependencies({ dependencies }: Project): DatabaseCandidate | null {
  const drivers: readonly (readonly [name: string, kind: DatabaseKind])[] = [
    ["pg", "postgres"],
    ["postgres", "postgres"],
    ["mysql2", "mysql"],
    ["mysql", "mysql"],
    ["mariadb", "mysql"],
  ];
  const [name, kind] = drivers.find(([driver]) => dependencies.has(driver)) ?? [];
  return name === undefined || kind === undefined ? null : { from: `package.json (${name})`, url: null, kind };
}
