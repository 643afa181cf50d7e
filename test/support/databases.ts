/** Databases for tests: each made for one test file, on the servers that `npm test` has found, and dropped after it. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createConnection } from "mysql2/promise";
import pg from "pg";
import { describe, test } from "vitest";
import { ownSqld } from "../../scripts/servers.mjs";
import type { Store, StoreOptions } from "../../src/store/contract/store.js";
import { MemoryStore } from "../../src/store/memory/index.js";
import { onPostgres, returnPostgresDatabase, takePostgresDatabase } from "./postgres-databases.js";

export const storeKinds = ["memory", "sqlite", "postgres", "mysql"] as const;
/** Those that tests run on unless they say otherwise. */
export type StoreKind = (typeof storeKinds)[number];
/**
 * And libSQL: on files it is the SQLite store with another library, on a server (sqld) a store of its own. Tests name them
 * where they matter; `npm test -- --store=sqld` runs all tests of a file on the one.
 */
export type AnyStoreKind = StoreKind | "libsql" | "sqld";

/** For the tests that have a bit of everything. */
export const everyStore: readonly AnyStoreKind[] = [...storeKinds, "sqld"];

export interface TestDatabase {
  /** What `connect` takes. */
  readonly url: string;
  /** Past PgBouncer, where the tests go through it: for wake-ups. Nothing otherwise. */
  readonly direct: { readonly listenUrl?: string };
  /** Cuts all connections to it but the caller's, as a fail-over does. */
  cut?(): Promise<void>;
  /** How many connections to it are open. They must all be closed by those who opened them. */
  connections(): Promise<number>;
  /** Removes it, even while connections to it are open. */
  drop(): Promise<void>;
}

/**
 * The servers: those of `npm test`, or the standard ones of this machine.
 *
 * @public For tests that need a server rather than a database on it.
 */
export function storeUrls(): { readonly postgres: string; readonly mysql: string } {
  return {
    postgres: process.env.PAWL_TEST_POSTGRES_URL || "postgres://postgres@127.0.0.1:5432/postgres",
    mysql: process.env.PAWL_TEST_MYSQL_URL || "mysql://root@127.0.0.1:3306/test",
  };
}

/** Whether the person who runs the tests asked to leave this store or program out. */
export function isLeftOut(kind: AnyStoreKind | "pgbouncer" | "chromium"): boolean {
  return (process.env.PAWL_TEST_WITHOUT ?? "").split(",").includes(kind);
}

// Loaded when asked for: a test of one store needs neither the drivers nor the code of the others.
const openers: Record<AnyStoreKind, (url: string, options?: StoreOptions) => Promise<Store>> = {
  memory: async (_url, options) => new MemoryStore(options),
  sqlite: async (...given) => (await import("../../src/store/sqlite/index.js")).openSqlite(...given),
  libsql: async (...given) => (await import("../../src/store/libsql/index.js")).openLibsql(...given),
  sqld: async (...given) => (await import("../../src/store/libsql/index.js")).openLibsql(...given),
  postgres: async (...given) => (await import("../../src/store/postgres/index.js")).openPostgres(...given),
  mysql: async (...given) => (await import("../../src/store/mysql/index.js")).openMysql(...given),
};

/** Opens a store on a test database. It has no tables until `migrate` is called. */
export function openStore(kind: AnyStoreKind, url: string, options?: StoreOptions): Promise<Store> {
  return openers[kind](url, options);
}

/** The one store that this run of the tests is about, if the person who runs them named one (`--store=sqld`). */
export const chosenStore = (process.env.PAWL_TEST_STORE || null) as AnyStoreKind | null;

/** Where the chosen store takes part: with all that any SQL store must do. */
const chosenAmong = (kinds: readonly AnyStoreKind[]): readonly AnyStoreKind[] =>
  kinds.filter((kind) => kind === chosenStore || (kind === "sqlite" && isSqlite(chosenStore))).slice(0, 1);
const isSqlite = (kind: AnyStoreKind | null) => kind === "libsql" || kind === "sqld";

/**
 * Defines the same tests for every store; one that is left out has a single test that says so. Tests that take a
 * `StoreKind` may be given another that is chosen: all SQL stores do the same.
 */
export function forEachStore<Kind extends AnyStoreKind = StoreKind>(
  define: (kind: Kind) => void,
  given: readonly Kind[] = storeKinds as readonly AnyStoreKind[] as readonly Kind[],
): void {
  const kinds = chosenStore === null ? given : chosenAmong(given).map(() => chosenStore as Kind);
  if (kinds.length === 0) test(`is not about ${chosenStore}, which alone is tested now`, () => {});
  for (const kind of kinds) {
    describe(kind, () => {
      if (isLeftOut(kind)) test("was left out, as PAWL_TEST_WITHOUT asks: nothing is tested against it", () => {});
      else define(kind);
    });
  }
}

const makers: Record<AnyStoreKind, () => Promise<TestDatabase>> = {
  memory: async () => ({ url: "memory:", direct: {}, connections: async () => 0, drop: async () => {} }),
  sqlite: async () => makeFile("sqlite"),
  libsql: makeLibsql,
  sqld: makeSqld,
  postgres: makePostgres,
  mysql: makeMysql,
};

/** A new, empty database. */
export function testDatabase(kind: AnyStoreKind): Promise<TestDatabase> {
  return makers[kind]();
}

const newName = () => `pawl_test_${process.pid}_${randomBytes(4).toString("hex")}`;

function withDatabase(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** libSQL's files are open until the statements of those who closed them are collected as garbage. */
function makeLibsql(): Promise<TestDatabase> {
  const database = makeFile("libsql");
  const connections = () => {
    collectGarbage();
    return database.connections();
  };
  return Promise.resolve({ ...database, connections });
}

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}

function makeFile(scheme: "sqlite" | "libsql"): TestDatabase {
  const folder = mkdtempSync(join(tmpdir(), "pawl-test-"));
  return {
    url: `${scheme}:${join(folder, "pawl.db")}`,
    direct: {},
    connections: async () => openFilesIn(folder),
    drop: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Of this process, where the system tells (Linux). */
function openFilesIn(folder: string): number {
  const descriptors = "/proc/self/fd";
  const target = (name: string) => {
    try {
      return readlinkSync(join(descriptors, name));
    } catch {
      return "";
    }
  };
  try {
    return readdirSync(descriptors).filter((name) => target(name).startsWith(folder)).length;
  } catch {
    return 0;
  }
}

/** A server with one database. */
async function makeSqld(): Promise<TestDatabase> {
  const server = await ownSqld();
  return {
    url: server.url,
    direct: {},
    connections: async () => openConnectionsTo(server.port),
    drop: () => server.remove(),
  };
}

/** Of all processes of this machine, where the system tells (Linux). */
function openConnectionsTo(port: number): number {
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const established = "01";
  try {
    const lines = readFileSync("/proc/net/tcp", "utf8").split("\n").slice(1);
    return lines.filter((line) => {
      const [, , to, state] = line.trim().split(/\s+/);
      return to === remote && state === established;
    }).length;
  } catch {
    return 0;
  }
}

async function makePostgres(): Promise<TestDatabase> {
  const server = storeUrls().postgres;
  const name = await takePostgresDatabase(server);
  const asAdmin = async (sql: string, values: readonly string[] = []) =>
    (await onPostgres(server, (client) => client.query(sql, [...values]))).rows;
  const ofDatabase = "FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'";
  const past = process.env.PAWL_TEST_PGBOUNCER;
  const pooler = past === undefined ? null : consoleOf(server, name);
  let dropped: Promise<void> | undefined;
  return {
    url: withDatabase(server, name),
    direct: past === undefined ? {} : { listenUrl: withDatabase(past, name) },
    cut: async () => {
      await asAdmin(`SELECT pg_terminate_backend(pid) ${ofDatabase} AND pid <> pg_backend_pid()`, [name]);
      await pooler?.cutClients();
    },
    connections: async () =>
      pooler === null ? (await asAdmin(`SELECT count(*)::int AS n ${ofDatabase}`, [name]))[0].n : pooler.clients(),
    drop: () => {
      // Only once, because another test may have it already.
      dropped ??= returnPostgresDatabase(server, name);
      return dropped;
    },
  };
}

/** PgBouncer keeps sessions of the server open, and its clients: here its clients are counted, and cut. */
function consoleOf(server: string, database: string) {
  const ask = async (...commands: readonly string[]) => {
    const client = new pg.Client({ connectionString: withDatabase(server, "pgbouncer") });
    await client.connect();
    try {
      let rows: Record<string, unknown>[] = [];
      for (const command of commands) rows = (await client.query(command)).rows;
      return rows;
    } finally {
      await client.end();
    }
  };
  return {
    clients: async () => (await ask("SHOW CLIENTS")).filter((row) => row.database === database).length,
    cutClients: () => ask(`KILL ${database}`, `RESUME ${database}`),
  };
}

async function makeMysql(): Promise<TestDatabase> {
  const server = storeUrls().mysql;
  const name = newName();
  const asAdmin = async (sql: string, values: readonly string[] = []) => {
    const connection = await createConnection({ uri: server });
    try {
      return (await connection.query(sql, [...values]))[0] as { n: number }[];
    } finally {
      await connection.end();
    }
  };
  await asAdmin(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`);
  const countSql = "SELECT count(*) AS n FROM information_schema.processlist WHERE db = ?";
  return {
    url: withDatabase(server, name),
    direct: {},
    connections: async () => Number((await asAdmin(countSql, [name]))[0]?.n),
    drop: async () => {
      await asAdmin(`DROP DATABASE IF EXISTS ${name}`);
    },
  };
}
