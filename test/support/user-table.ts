/** A table of the user's beside Pawl's, and transactions of the user's own on it, for each database. */
import { type Client, createClient, type Transaction } from "@libsql/client/ws";
import Database from "better-sqlite3";
import Libsql from "libsql";
import { type Connection, createConnection } from "mysql2/promise";
import pg from "pg";
import type { TransactionHarness } from "../../src/testing/store-suite/index.js";

export interface UserTable extends TransactionHarness {
  create(): Promise<void>;
  drop(): Promise<void>;
}

type OwnTransaction = Awaited<ReturnType<TransactionHarness["beginCallerTransaction"]>>;

/** Of the database whose url `url` gives, each time it is asked. */
export const sqliteTable = (url: () => string): UserTable =>
  fileTable(() => new Database(url().replace(/^sqlite:/, "")));

/** The types of libsql are a copy of better-sqlite3's, from before they were generic in the rows. */
export const libsqlTable = (url: () => string): UserTable =>
  fileTable(() => new Libsql(url().replace(/^libsql:/, "")) as unknown as Database.Database);

function fileTable(open: () => Database.Database): UserTable {
  const once = <T>(work: (database: Database.Database) => T): T => {
    const database = open();
    try {
      return work(database);
    } finally {
      database.close();
    }
  };
  return {
    create: async () => once((database) => void database.exec("CREATE TABLE user_values (value TEXT)")),
    drop: async () => once((database) => void database.exec("DROP TABLE user_values")),
    committedValues: async () =>
      once((database) => database.prepare<[], string>("SELECT value FROM user_values").pluck().all()),
    write: async (handle, value) => {
      (handle as Database.Database).prepare("INSERT INTO user_values VALUES (?)").run(value);
    },
    beginCallerTransaction: async () => {
      const database = open();
      database.exec("BEGIN IMMEDIATE");
      const end = (sql: string) => async () => {
        database.exec(sql);
        database.close();
      };
      return { tx: database, commit: end("COMMIT"), rollback: end("ROLLBACK") };
    },
  };
}

export function postgresTable(url: () => string): UserTable {
  const open = async () => {
    const client = new pg.Client({ connectionString: url() });
    await client.connect();
    return client;
  };
  const once = async (sql: string) => {
    const client = await open();
    try {
      return (await client.query<{ value: string }>(sql)).rows;
    } finally {
      await client.end();
    }
  };
  return {
    create: async () => void (await once("CREATE TABLE user_values (value text)")),
    drop: async () => void (await once("DROP TABLE user_values")),
    committedValues: async () => (await once("SELECT value FROM user_values")).map(({ value }) => value),
    write: async (handle, value) => {
      await (handle as pg.ClientBase).query("INSERT INTO user_values VALUES ($1)", [value]);
    },
    beginCallerTransaction: async () => {
      const client = await open();
      return ownTransaction(client, (sql) => client.query(sql));
    },
  };
}

export function mysqlTable(url: () => string): UserTable {
  const open = () => createConnection({ uri: url() });
  const once = async (sql: string) => {
    const connection = await open();
    try {
      return (await connection.query(sql))[0] as { value: string }[];
    } finally {
      await connection.end();
    }
  };
  return {
    create: async () => void (await once("CREATE TABLE user_values (value VARCHAR(200))")),
    drop: async () => void (await once("DROP TABLE user_values")),
    committedValues: async () => (await once("SELECT value FROM user_values")).map(({ value }) => value),
    write: async (handle, value) => {
      await (handle as Connection).query("INSERT INTO user_values VALUES (?)", [value]);
    },
    beginCallerTransaction: async () => {
      const connection = await open();
      return ownTransaction(connection, (sql) => connection.query(sql));
    },
  };
}

export function sqldTable(url: () => string): UserTable {
  const once = async (sql: string) => {
    const client = createClient({ url: url() });
    try {
      return (await client.execute(sql)).rows as unknown as { value: string }[];
    } finally {
      client.close();
    }
  };
  const ended = (client: Client, end: () => Promise<void>) => async () => {
    await end();
    client.close();
  };
  return {
    create: async () => void (await once("CREATE TABLE user_values (value TEXT)")),
    drop: async () => void (await once("DROP TABLE user_values")),
    committedValues: async () => (await once("SELECT value FROM user_values")).map(({ value }) => value),
    write: async (handle, value) => {
      await (handle as Transaction).execute({ sql: "INSERT INTO user_values VALUES (?)", args: [value] });
    },
    beginCallerTransaction: async () => {
      const client = createClient({ url: url() });
      const tx = await client.transaction("write");
      const commit = ended(client, () => tx.commit());
      return { tx, commit, rollback: ended(client, () => tx.rollback()) };
    },
  };
}

async function ownTransaction(
  tx: { end(): Promise<void> },
  query: (sql: string) => Promise<unknown>,
): Promise<OwnTransaction> {
  await query("START TRANSACTION");
  const end = (sql: string) => async () => {
    await query(sql);
    await tx.end();
  };
  return { tx, commit: end("COMMIT"), rollback: end("ROLLBACK") };
}
