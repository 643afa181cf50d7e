/** The SQL in which the databases differ when their tables are filled. All other SQL of the seed is the same everywhere. */
import Database from "better-sqlite3";
import { createConnection } from "mysql2/promise";
import pg from "pg";
import { childRunId } from "../../src/core/naming/ids.js";

export type SeededKind = "postgres" | "mysql" | "sqlite";

/** A connection that understands `||` and the expressions of its dialect. */
export interface SeedConnection {
  run(sql: string): Promise<void>;
  close(): Promise<void>;
}

export interface SeedDialect {
  connect(url: string): Promise<SeedConnection>;
  /** A table with the column `n` that contains the numbers from … to. */
  numbers(from: number, to: number): string;
  /** The quotient of two integers, without its fraction. */
  div(a: string, b: number): string;
  /** A small integer, as the functions for text take it. */
  int(expression: string): string;
  /** The text of a UUID of version 7 that begins with these milliseconds. */
  newId(ms: string, n: string): string;
  /** The text of the id that `childRunId` computes. */
  childId(parentId: string, node: string, index: string): string;
  /** A text as a value of the column type of run ids. */
  asId(text: string): string;
  /** What a server does by itself some time after so many writes. */
  readonly afterSeed: readonly string[];
}

const hexDigits = "0123456789abcdef";

/**
 * The hyphenated UUID of version 8 whose time is that of the parent and whose other digits are those of the hash.
 *
 * @param position a function that gives the position of a text in another, from 1
 */
const childIdFromHash = (parentId: string, hash: string, position: (text: string, part: string) => string) => {
  const variant = `substr('89ab89ab89ab89ab', ${position(`'${hexDigits}'`, `substr(${hash}, 17, 1)`)}, 1)`;
  return `(substr(${parentId}, 1, 13) || '-8' || substr(${hash}, 14, 3) || '-' || ${variant} || substr(${hash}, 18, 3) || '-' || substr(${hash}, 21, 12))`;
};

/** What `childRunId` hashes: the ids of runs have 36 characters. */
const hashedText = (parentId: string, node: string, index: string) =>
  `('36:' || ${parentId} || ${index} || ':${node}')`;

const postgres: SeedDialect = {
  connect: async (url) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    return { run: async (sql) => void (await client.query(sql)), close: () => client.end() };
  },
  numbers: (from, to) => `generate_series(${from}::bigint, ${to}::bigint) AS s(n)`,
  div: (a, b) => `(${a} / ${b})`,
  int: (expression) => `(${expression})::integer`,
  newId: (ms, n) => {
    const time = `lpad(to_hex(${ms}), 12, '0')`;
    const hash = `md5(${n}::text)`;
    return `(substr(${time}, 1, 8) || '-' || substr(${time}, 9) || '-7' || substr(${hash}, 1, 3) || '-8' || substr(${hash}, 4, 3) || '-' || substr(${hash}, 7, 12))`;
  },
  childId: (parentId, node, index) => {
    const hash = `encode(sha256(convert_to(${hashedText(parentId, node, index)}, 'UTF8')), 'hex')`;
    return childIdFromHash(parentId, hash, (text, part) => `strpos(${text}, ${part})`);
  },
  asId: (text) => `${text}::uuid`,
  afterSeed: ["VACUUM (ANALYZE)"],
};

const mysql: SeedDialect = {
  connect: async (uri) => {
    const connection = await createConnection({ uri });
    await connection.query("SET sql_mode = 'STRICT_ALL_TABLES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'");
    await connection.query("SET SESSION max_recursive_iterations = 4294967295").catch(() => {});
    await connection.query("SET SESSION cte_max_recursion_depth = 4294967295").catch(() => {});
    return { run: async (sql) => void (await connection.query(sql)), close: () => connection.end() };
  },
  numbers: (from, to) =>
    `(WITH RECURSIVE series(n) AS (SELECT CAST(${from} AS SIGNED) UNION ALL SELECT n + 1 FROM series WHERE n < ${to}) SELECT n FROM series) s`,
  div: (a, b) => `(${a} DIV ${b})`,
  int: (expression) => expression,
  newId: (ms, n) => {
    const time = `LPAD(LOWER(HEX(${ms})), 12, '0')`;
    const hash = `MD5(${n})`;
    return `(SUBSTR(${time}, 1, 8) || '-' || SUBSTR(${time}, 9) || '-7' || SUBSTR(${hash}, 1, 3) || '-8' || SUBSTR(${hash}, 4, 3) || '-' || SUBSTR(${hash}, 7, 12))`;
  },
  childId: (parentId, node, index) =>
    childIdFromHash(
      parentId,
      `SHA2(${hashedText(parentId, node, index)}, 256)`,
      (text, part) => `LOCATE(${part}, ${text})`,
    ),
  asId: (text) => text,
  afterSeed: ["ANALYZE TABLE pawl_runs, pawl_tasks, pawl_events, pawl_figures"],
};

const sqlite: SeedDialect = {
  connect: async (url) => {
    const db = new Database(url.slice("sqlite:".length));
    db.pragma("synchronous = OFF");
    db.function("child_run_id", (parentId: unknown, node: unknown, index: unknown) =>
      childRunId(String(parentId), String(node), Number(index)),
    );
    return { run: async (sql) => void db.exec(sql), close: async () => void db.close() };
  },
  numbers: (from, to) =>
    `(WITH RECURSIVE series(n) AS (SELECT ${from} UNION ALL SELECT n + 1 FROM series WHERE n < ${to}) SELECT n FROM series) s`,
  div: (a, b) => `(${a} / ${b})`,
  int: (expression) => expression,
  newId: (ms, n) =>
    `printf('%08x-%04x-7%03x-8%03x-%012x', (${ms}) >> 16, (${ms}) & 65535, (${n} * 40503 >> 4) & 4095, (${n} * 2654435761 >> 8) & 4095, (${n} * 2862933555777) & 281474976710655)`,
  childId: (parentId, node, index) => `child_run_id(${parentId}, '${node}', ${index})`,
  asId: (text) => text,
  // Pawl never runs ANALYZE on SQLite, so the seed does not either.
  afterSeed: ["PRAGMA wal_checkpoint(TRUNCATE)"],
};

export const seedDialects: Record<SeededKind, SeedDialect> = { postgres, mysql, sqlite };
