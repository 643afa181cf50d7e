/** Plans the migration files, numbered after those that the application has. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type DatabaseKind, migrationFiles } from "../migration-sql.js";
import { snakeCase, typeNameOf } from "./names.js";
import { type HeroTable, identifierQuoters } from "./workflow-template.js";

export interface PlannedFile {
  /** Relative to the application's folder. */
  readonly path: string;
  readonly text: string;
}

const folder = "migrations";
const defaultDigits = 4;

/**
 * Whether the application has migrations, and so a tool that applies them. Pawl's own files, from an earlier `pawl
 * init`, do not count as migrations of the application.
 */
export const hasOwnMigrations = (root: string): boolean =>
  existingFiles(root).some((file) => !/^\d+[_-]pawl_.*\.sql$/.test(file));

const existingFiles = (root: string) => (existsSync(join(root, folder)) ? readdirSync(join(root, folder)) : []);

export function planMigrations(
  root: string,
  kind: DatabaseKind,
  schema: string | undefined,
  hero: HeroTable | null,
): PlannedFile[] {
  const files = migrationFiles(kind, schema).map(({ name, sql }) => ({ name: `pawl_${name}`, text: sql }));
  const all = hero === null ? files : [...files, heroRuns(hero, schema)];
  const presentFiles = existingFiles(root);
  let currentNumber = lastNumber(presentFiles);
  return all.map(({ name, text }) => {
    const presentFile = presentFiles.find((file) => file.replace(/^\d+[_-]/, "") === `${name}.sql`);
    if (presentFile !== undefined) return { path: `${folder}/${presentFile}`, text };
    currentNumber = next(currentNumber);
    return { path: `${folder}/${currentNumber}_${name}.sql`, text };
  });
}

/**
 * Returns the highest number among the names of the files, with its leading zeros. Numbers may be counters or dates.
 */
function lastNumber(files: readonly string[]): string {
  const numbers = files.flatMap((file) => /^(\d+)[_-].*\.sql$/.exec(file)?.[1] ?? []);
  return numbers.reduce((best, number) => (BigInt(number) > BigInt(best) ? number : best), "0".repeat(defaultDigits));
}

const next = (number: string) => String(BigInt(number) + 1n).padStart(number.length, "0");

/**
 * Plans a view of the runs with the keys of the rows that they are about. A query for one row uses the index on heroes.
 */
function heroRuns(hero: HeroTable, schema: string | undefined) {
  const type = typeNameOf(hero.table);
  const quote = identifierQuoters[hero.database];
  const qualifiedName = (table: string) =>
    [schema, table]
      .filter((part) => part !== undefined)
      .map(quote)
      .join(".");
  const name = `pawl_${snakeCase(type)}_runs`;
  const key = `h.${quote(hero.column)}`;
  const keyAsText: Readonly<Record<DatabaseKind, string>> = {
    postgres: `${key}::text`,
    sqlite: `CAST(${key} AS TEXT)`,
    mysql: `CAST(CAST(${key} AS CHAR) AS BINARY)`,
  };
  // These columns are binary in MySQL, so that comparisons are exact; database clients should show them as text.
  const textColumn = (column: string) =>
    hero.database === "mysql" ? `CONVERT(r.${column} USING utf8mb4)` : `r.${column}`;
  const text = `-- The runs about each row of ${hero.table.replace(/\s+/g, " ")}, for queries of your own. Pawl does not need it.
CREATE VIEW ${qualifiedName(name)} AS
SELECT ${key} AS ${quote(`${snakeCase(type)}_id`)}, ${textColumn("id")} AS run_id, ${textColumn("workflow")} AS workflow,
  ${textColumn("status")} AS status, r.created_at, r.finished_at
FROM ${qualifiedName(hero.table)} h
JOIN ${qualifiedName("pawl_runs")} r ON r.hero_type = '${type}' AND r.hero_id = ${keyAsText[hero.database]};
`;
  return { name, text };
}
