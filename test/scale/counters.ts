/**
 * Counts what a statement touches when it is executed once more: pages of tables and indexes on PostgreSQL, rows of tables,
 * indexes and temporary tables on MariaDB and MySQL, pages of the file on SQLite.
 */
import { readFileSync } from "node:fs";
import Database from "better-sqlite3";
import { createConnection, type RowDataPacket } from "mysql2/promise";
import pg from "pg";
import { sessionSettings } from "../../src/store/postgres/connection/session-settings.js";
import type { SeededKind } from "./seed-dialects.js";
import type { CapturedStatement } from "./statement-capture.js";

export interface Touched {
  readonly count: number;
  /** How the database executed the statement, for whoever has to find out why it touched so much. */
  readonly plan: string;
}

export interface Counter {
  /** "pages" or "rows". */
  readonly unit: string;
  count(statement: CapturedStatement): Promise<Touched>;
  close(): Promise<void>;
}

/** @param isPooled counts as behind a pooler, where Pawl cannot change the settings of its sessions; PostgreSQL only */
export function openCounter(kind: SeededKind, url: string, isPooled = false): Promise<Counter> {
  if (kind === "postgres") return openPostgresCounter(url, isPooled);
  return kind === "mysql" ? openMysqlCounter(url) : openSqliteCounter(url);
}

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Heap Fetches"?: number;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly PlanNode[];
}

async function openPostgresCounter(url: string, isPooled: boolean): Promise<Counter> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  if (!isPooled) for (const setting of sessionSettings) await client.query(`SET ${setting}`);
  return {
    unit: "pages",
    count: async ({ sql, values }) => {
      const text = `EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) ${sql}`;
      const { rows } = await client.query(text, [...values]);
      const plan = rows[0]["QUERY PLAN"][0].Plan as PlanNode;
      return { count: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], plan: describePlan(plan, "") };
    },
    close: () => client.end(),
  };
}

function describePlan(node: PlanNode, indent: string): string {
  const about = [node["Node Type"], node["Index Name"], node["Relation Name"]].filter((part) => part !== undefined);
  const pages = node["Shared Hit Blocks"] + node["Shared Read Blocks"];
  const line = `${indent}${about.join(" ")}: ${node["Actual Rows"]} rows × ${node["Actual Loops"]}, ${pages} pages`;
  return [line, ...(node.Plans ?? []).map((inner) => describePlan(inner, `${indent}  `))].join("\n");
}

async function openMysqlCounter(uri: string): Promise<Counter> {
  const connection = await createConnection({ uri, multipleStatements: true });
  const rowsRead = async () => {
    const [rows] = await connection.query<RowDataPacket[]>("SHOW SESSION STATUS LIKE 'Handler_read%'");
    return rows.reduce((sum, row) => sum + Number(row.Value), 0);
  };
  return {
    unit: "rows",
    count: async ({ sql }) => {
      await connection.query("FLUSH STATUS");
      // SHOW STATUS reads rows as well.
      const before = await rowsRead();
      await connection.query(sql);
      const after = await rowsRead();
      const again = await rowsRead();
      const [plan] = await connection.query<RowDataPacket[]>(`EXPLAIN ${sql}`);
      return { count: after - before - (again - after), plan: plan.map(describeMysqlRow).join("\n") };
    },
    close: () => connection.end(),
  };
}

const describeMysqlRow = (row: RowDataPacket) =>
  [row.select_type, row.table, row.type, row.key, row.rows, row.Extra].map((part) => String(part ?? "-")).join(" ");

/**
 * The pages that SQLite reads from its file when its cache is empty, by the bytes that this process has read meanwhile.
 * Linux counts them; there is no other count that a program could read.
 */
async function openSqliteCounter(url: string): Promise<Counter> {
  const db = new Database(url.slice("sqlite:".length), { readonly: true });
  const pageSize = Number(db.pragma("page_size", { simple: true }));
  const bytesRead = () => Number(/^rchar: (\d+)/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);
  return {
    unit: "pages",
    count: async ({ sql, values }) => {
      const statement = db.prepare(sql);
      const details = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values) as { readonly detail: string }[];
      const countOf = (work: () => unknown) => {
        const before = bytesRead();
        work();
        return bytesRead() - before;
      };
      const readingTheCount = countOf(() => {});
      db.pragma("shrink_memory");
      const count = Math.round((countOf(() => statement.all(...values)) - readingTheCount) / pageSize);
      return { count, plan: details.map(({ detail }) => detail).join("\n") };
    },
    close: async () => void db.close(),
  };
}
