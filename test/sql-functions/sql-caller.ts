/** A program that knows nothing but SQL: it calls `pawl_start` and `pawl_signal` with the driver of its database. */
import { createConnection, type RowDataPacket } from "mysql2/promise";
import pg from "pg";
import { onTestFinished } from "vitest";
import { sqlErrors } from "../../src/store/sql/sql-calls.js";
import { errorOf } from "../support/waiting.js";

/** The stores that have the functions. */
export type SqlKind = "postgres" | "mysql";
export const sqlKinds: readonly SqlKind[] = ["postgres", "mysql"];

export interface SqlCaller {
  /** Returns the id of the run. Input and options are JSON text; null is SQL's NULL. */
  start(workflow: string | null, input?: string | null, options?: object | string | null): Promise<string>;
  signal(
    run: string | null,
    name: string | null,
    payload?: string | null,
    options?: object | string | null,
  ): Promise<void>;
  query(sql: string, values?: readonly unknown[]): Promise<Record<string, any>[]>;
  close(): Promise<void>;
}

const jsonOf = (options: object | string | null) =>
  typeof options === "object" && options !== null ? JSON.stringify(options) : options;

/** A connection of its own, which is closed when the test ends. */
export async function sqlCaller(kind: SqlKind, url: string, schema = "public"): Promise<SqlCaller> {
  const caller = kind === "postgres" ? await postgresCaller(url, schema) : await mysqlCaller(url);
  onTestFinished(() => caller.close());
  return caller;
}

async function postgresCaller(url: string, schema: string): Promise<SqlCaller> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  const name = (routine: string) => `${pg.escapeIdentifier(schema)}.${routine}`;
  const query: SqlCaller["query"] = async (sql, values = []) => (await client.query(sql, [...values])).rows;
  return {
    query,
    start: async (workflow, input = "null", options = "{}") => {
      const [row] = await query(`SELECT ${name("pawl_start")}($1, $2, $3) AS id`, [workflow, input, jsonOf(options)]);
      return row?.id;
    },
    signal: async (run, signal, payload = "null", options = "{}") => {
      await query(`SELECT ${name("pawl_signal")}($1, $2, $3, $4)`, [run, signal, payload, jsonOf(options)]);
    },
    close: () => client.end(),
  };
}

async function mysqlCaller(uri: string): Promise<SqlCaller> {
  const connection = await createConnection({ uri });
  connection.on("error", () => {});
  const [[server]] = await connection.query<RowDataPacket[]>("SELECT VERSION() AS version");
  messageLimit = /mariadb/i.test(server?.version) ? 500 : 128;
  const query: SqlCaller["query"] = async (sql, values = []) => {
    const [rows] = await connection.query<RowDataPacket[]>(sql, [...values]);
    return Array.isArray(rows) ? rows : [];
  };
  return {
    query,
    start: async (workflow, input = "null", options = "{}") => {
      await query("CALL pawl_start(?, ?, ?, @run_id)", [workflow, input, jsonOf(options)]);
      return (await query("SELECT @run_id AS id"))[0]?.id;
    },
    signal: async (run, signal, payload = "null", options = "{}") => {
      await query("CALL pawl_signal(?, ?, ?, ?)", [run, signal, payload, jsonOf(options)]);
    },
    close: () => connection.end(),
  };
}

const codesByErrno = new Map<number, string>(Object.entries(sqlErrors).map(([code, { errno }]) => [errno, code]));
const codesBySqlState = new Map<string, string>(
  Object.entries(sqlErrors).map(([code, { sqlState }]) => [sqlState, code]),
);

/** The length of a message on this server: MySQL cuts it at 128 characters, MariaDB at 512. */
let messageLimit = Number.POSITIVE_INFINITY;

/** The refusal with this code and message, as the server that the last caller is connected to words it. */
export const refusal = (code: string, message: string): Refusal => ({ code, message: message.slice(0, messageLimit) });

export interface Refusal {
  readonly code: string | undefined;
  readonly message: string;
}

/** How the database refused the call. An error that is not Pawl's has no code. */
export async function refusalOf(call: Promise<unknown>): Promise<Refusal> {
  const error = await errorOf(call);
  if (error.errno !== undefined && error.sqlState === "45000")
    return { code: codesByErrno.get(error.errno), message: error.sqlMessage };
  const code = codesBySqlState.get(error.code);
  if (code !== undefined && JSON.parse(error.detail).code !== code)
    throw new Error(`${error.code} says ${error.detail}`);
  return { code, message: error.message };
}
