/** Captures the statements that a store sends, with their values, where they enter the driver. */
import Database from "better-sqlite3";
import { createConnection } from "mysql2/promise";
import pg from "pg";
import { storeUrls } from "../support/databases.js";
import type { SeededKind } from "./seed-dialects.js";

export interface CapturedStatement {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** What is sent meanwhile is captured; null: nothing is. */
let captured: CapturedStatement[] | null = null;
const watched = new Set<SeededKind>();

/** The statements that are sent to databases of this kind while `work` runs. */
export async function captureStatements(kind: SeededKind, work: () => Promise<unknown>): Promise<CapturedStatement[]> {
  if (!watched.has(kind)) await watchers[kind]();
  watched.add(kind);
  const statements: CapturedStatement[] = [];
  captured = statements;
  try {
    await work();
  } finally {
    captured = null;
  }
  return statements;
}

type Method = (this: object, ...args: any[]) => unknown;

function callBefore(owner: any, name: string, before: (self: any, args: any[]) => void): void {
  const real = owner[name] as Method;
  owner[name] = function (this: object, ...args: any[]) {
    before(this, args);
    return real.apply(this, args);
  };
}

const note = (sql: string, values: readonly unknown[]) => void captured?.push({ sql, values });

const watchers: Record<SeededKind, () => Promise<void>> = {
  postgres: async () =>
    callBefore(pg.Client.prototype, "query", (_, [query, values]) =>
      note(query.text ?? query, query.values ?? values ?? []),
    ),
  // The store puts the values into the text.
  mysql: async () => {
    const probe = await createConnection({ uri: storeUrls().mysql });
    const owner = prototypesOf((probe as unknown as { connection: object }).connection).find((prototype) =>
      Object.hasOwn(prototype, "query"),
    );
    callBefore(owner, "query", (_, [query]) => note(query.sql ?? query, []));
    await probe.end();
  },
  sqlite: async () => {
    const probe = new Database(":memory:");
    const statement = Object.getPrototypeOf(probe.prepare("SELECT 1"));
    for (const method of ["all", "get"])
      callBefore(statement, method, (self: { readonly source: string }, values) => note(self.source, values));
    probe.close();
  },
};

function prototypesOf(object: object): object[] {
  const prototype = Object.getPrototypeOf(object) as object | null;
  return prototype === null ? [] : [prototype, ...prototypesOf(prototype)];
}
