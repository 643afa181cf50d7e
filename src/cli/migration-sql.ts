/** The migrations as SQL for the user's own migration tool, made from the stores' statements without a connection. */
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
  // URLs of libSQL servers.
  https: "sqlite",
  http: "sqlite",
  wss: "sqlite",
  ws: "sqlite",
};

export const schemeOf = (url: string): string => /^([a-z+]+):/i.exec(url)?.[1]?.toLowerCase() ?? "";

/** Returns the kind of the database, or null if it has no SQL or Pawl does not know the scheme. */
export const kindOf = (url: string): DatabaseKind | null => kinds[schemeOf(url)] ?? null;

const scripts: Readonly<Record<DatabaseKind, (schema: string | undefined) => readonly MigrationScript[]>> = {
  postgres,
  mysql,
  sqlite,
};

/** MySQL commits each DDL statement by itself, so its statements can be run again instead of being rolled back. */
const howToRun: Readonly<Record<DatabaseKind, string>> = {
  postgres: "Run it in one transaction: psql -1 -v ON_ERROR_STOP=1 -f <file>.",
  mysql: "Run it with mysql or mariadb: mysql app < <file>. If it is cut short, run it again.",
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
      "-- The last statement records the migration as applied, which connect(url, { migrate: false }) checks. If your own tool runs\n-- this file, set `migrate: false` in pawl.config.",
      "",
      ...(kind === "mysql" ? withDelimiters(statements) : statements.map(withSemicolon)),
    ].join("\n"),
  }));
}

const withSemicolon = (statement: string) => `${unindented(statement)};\n`;

/**
 * The command line of MySQL ends a statement at each semicolon, also within a procedure, unless it is told of another
 * delimiter. (psql knows that the body of a function is a string.)
 */
function withDelimiters(statements: readonly string[]): string[] {
  const isOfProcedure = (statement: string | undefined) => /^(DROP|CREATE) PROCEDURE /.test(statement ?? "");
  return statements.flatMap((statement, index) => {
    if (!isOfProcedure(statement)) return [withSemicolon(statement)];
    const isFirst = !isOfProcedure(statements[index - 1]);
    const isLast = !isOfProcedure(statements[index + 1]);
    return [...(isFirst ? [delimiterNote] : []), `${unindented(statement)} //\n`, ...(isLast ? ["DELIMITER ;\n"] : [])];
  });
}

const delimiterNote = `-- The procedures pawl_start and pawl_signal, for programs in other languages. If your tool does not know DELIMITER, you may
-- leave out everything down to "DELIMITER ;".
DELIMITER //
`;

/** Removes the indentation that a statement has in the source code. */
function unindented(statement: string): string {
  const [first, ...rest] = statement.split("\n");
  const depth = Math.min(...rest.filter((line) => line.trim() !== "").map((line) => line.search(/\S/)));
  const indent = Number.isFinite(depth) ? depth : 0;
  return [first, ...rest.map((line) => line.slice(indent))].join("\n").trim();
}

/** Returns all migrations for the database of this URL, for `pawl migrate --sql`. */
export function migrationSql(url: string, schema: string | undefined): MigrationFile[] {
  const kind = kindOf(url);
  if (kind === null)
    throw new CliError(`There is no SQL for "${schemeOf(url)}:"; there is for postgres, mysql and sqlite.`);
  return migrationFiles(kind, schema);
}
