/** The migrations of a database as SQL for people's own tools, from the stores' own statements. Nobody is connected to. */
import { migrationScripts as mysql } from "../store/mysql/script.js";
import { migrationScripts as postgres } from "../store/postgres/migration-script.js";
import type { MigrationScript } from "../store/sql/migration-script.js";
import { migrationScripts as sqlite } from "../store/sqlite/script.js";
import { CliError } from "./cli-error.js";

export type DatabaseKind = "postgres" | "mysql" | "sqlite";

const kinds: Readonly<Record<string, DatabaseKind>> = {
  postgres: "postgres",
  postgresql: "postgres",
  mysql: "mysql",
  mariadb: "mysql",
  sqlite: "sqlite",
  libsql: "sqlite",
  file: "sqlite",
  // Servers of libSQL.
  https: "sqlite",
  http: "sqlite",
  wss: "sqlite",
  ws: "sqlite",
};

export const schemeOf = (url: string): string => /^([a-z+]+):/i.exec(url)?.[1]?.toLowerCase() ?? "";

/** null: a database that has no SQL, or that Pawl does not know. */
export const kindOf = (url: string): DatabaseKind | null => kinds[schemeOf(url)] ?? null;

const scripts: Readonly<Record<DatabaseKind, (schema: string | undefined) => readonly MigrationScript[]>> = {
  postgres,
  mysql,
  sqlite,
};

/** Where DDL is not part of transactions there is nothing to be said: every statement can be run again. */
const howToRun: Readonly<Record<DatabaseKind, string>> = {
  postgres: "Run it in one transaction: psql -1 -v ON_ERROR_STOP=1 -f <file>.",
  mysql: "If it is cut short, run it again.",
  sqlite: 'Run it in one transaction, or stop at the first error: sqlite3 -bail app.db ".read <file>".',
};

export interface MigrationFile {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

export function migrationFiles(kind: DatabaseKind, schema: string | undefined): MigrationFile[] {
  return scripts[kind](schema).map(({ version, name, statements }) => ({
    version,
    name,
    sql: [
      `-- Pawl, migration ${version} (${name}), as \`pawl migrate\` would apply it. ${howToRun[kind]}`,
      "-- The last statement records that it is applied; connect(url, { migrate: false }) looks there. Where your own tool runs this,\n-- say `migrate: false` in pawl.config.",
      "",
      ...statements.map((statement) => `${unindented(statement)};\n`),
    ].join("\n"),
  }));
}

/** In the sources they are indented as deep as the code around them. */
function unindented(statement: string): string {
  const [first, ...rest] = statement.split("\n");
  const depth = Math.min(...rest.filter((line) => line.trim() !== "").map((line) => line.search(/\S/)));
  const indent = Number.isFinite(depth) ? depth : 0;
  return [first, ...rest.map((line) => line.slice(indent))].join("\n").trim();
}

/** The whole of it, for `pawl migrate --sql`. */
export function migrationSql(url: string, schema: string | undefined): MigrationFile[] {
  const kind = kindOf(url);
  if (kind === null)
    throw new CliError(`There is no SQL for "${schemeOf(url)}:"; there is for postgres, mysql and sqlite.`);
  return migrationFiles(kind, schema);
}
