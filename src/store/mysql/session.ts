/** Running statements on a connection, and what they answer. */
import { StoreError } from "../../core/errors/errors.js";
import type { SqlRow } from "../sql/dialect.js";
import type { Capabilities } from "./capabilities.js";
import { type Quote, renderSql, type Sql, type Value } from "./sql.js";
import {
  begin,
  blockOverheadBytes,
  buildBlock,
  releaseProofSavepoint,
  rollback,
  savepoint,
} from "./transaction-block.js";

export interface Result {
  readonly rows: readonly SqlRow[];
  /** Rows found by an UPDATE, written by an INSERT. */
  readonly affectedRows: number;
  /** What LAST_INSERT_ID(…) was set to. */
  readonly insertId: number;
}

export interface Session {
  /** The results of the statements, in order. The first error ends the series. */
  run(statements: readonly Sql[]): Promise<readonly Result[]>;
}

/** A transaction that can be ended. */
export interface Transaction extends Session {
  /** The last statements, and COMMIT. */
  commit(statements: readonly Sql[]): Promise<readonly Result[]>;
  rollback(): Promise<void>;
}

/** Sends a text to the server; answers [rows or header, fields]. */
type Send = (text: string) => Promise<readonly unknown[]>;

interface PacketOptions {
  readonly quote: Quote;
  readonly maxPacket: number;
}

/** What the session needs of a connection; also all that is asked of a connection of the user's. */
type Query = (text: string, values: readonly Value[]) => Promise<unknown>;

/** Statement by statement, on a connection that takes one at a time. */
export function createSingleStatementSession(query: Query): Session {
  return {
    async run(statements) {
      const results: Result[] = [];
      for (const { text, values } of statements) results.push(resultOf(rowsOrHeaderOf(await query(text, values))));
      return results;
    },
  };
}

/** As few packets as possible. Each statement is a transaction of its own, or reads. */
export function createPacketSession(query: Send, { quote, maxPacket }: PacketOptions): Session {
  return {
    async run(statements) {
      const results: Result[] = [];
      for (const packet of splitIntoPackets(statements, quote, maxPacket)) {
        const [answer] = await query(packet.join(";"));
        if (packet.length === 1) results.push(resultOf(answer));
        else for (const each of answer as unknown[]) results.push(resultOf(each));
      }
      return results;
    },
  };
}

/**
 * The statements of one transaction, the first of which is `begin`: in blocks (block.ts) if the server has them. What only
 * reads is merely joined where the connection allows that, because it is cheaper (5 to 10 % of a commit's time on the
 * server): if the transaction is lost meanwhile, the next block notices before it writes.
 */
export function createBlockSession(
  query: Send,
  packing: PacketOptions & Capabilities & { readonly mayJoin: boolean },
): Session {
  const { quote, maxPacket, hasBlocks, mayJoin } = packing;
  const send = async (part: readonly string[], hasSavepoint: boolean): Promise<Result[]> => {
    const [first = ""] = part;
    if (!hasBlocks || (part.length === 1 && (first === begin.text || first === rollback.text))) {
      return [resultOf((await query(first))[0])];
    }
    if (mayJoin && part.length > 1 && part.every((text) => text === begin.text || selectPattern.test(text))) {
      const [answers] = await query(part.join(";"));
      return (answers as unknown[]).map(resultOf);
    }
    const continuesTransaction = first !== begin.text && first !== releaseProofSavepoint.text;
    const [answer] = await query(buildBlock(part, { continuesTransaction, hasSavepoint }));
    return resultsOfBlock(part, answer);
  };
  return {
    async run(statements) {
      const results: Result[] = [];
      const hasSavepoint = statements.includes(savepoint);
      const parts = hasBlocks
        ? splitIntoPackets(statements, quote, maxPacket - blockOverheadBytes)
        : splitIntoPackets(statements, quote, maxPacket).flatMap((packet) => packet.map((text) => [text]));
      for (const part of parts) results.push(...(await send(part, hasSavepoint)));
      return results;
    },
  };
}

const selectPattern = /^\s*SELECT/i;

/** A block answers with the rows of each SELECT, and with one header for all of the others. */
function resultsOfBlock(statements: readonly string[], answer: unknown): Result[] {
  const rows = Array.isArray(answer) ? answer.slice() : [];
  return statements.map((text) => resultOf(selectPattern.test(text) ? rows.shift() : undefined));
}

/** All are written before the first is sent: a value that is too large must not leave half of them done. */
function splitIntoPackets(statements: readonly Sql[], quote: Quote, maxPacket: number): string[][] {
  const limit = maxPacket - 1024;
  const all: string[][] = [];
  let remainingBytes = 0;
  for (const statement of statements) {
    const text = renderSql(statement, quote);
    const bytes = Buffer.byteLength(text) + 1;
    if (bytes > limit) throw tooLargeError(bytes, maxPacket);
    if (bytes > remainingBytes) {
      all.push([]);
      remainingBytes = limit;
    }
    all.at(-1)?.push(text);
    remainingBytes -= bytes;
  }
  return all;
}

function tooLargeError(bytes: number, maxPacket: number): StoreError {
  return new StoreError(
    `A statement of ${bytes} bytes is more than the server takes (max_allowed_packet = ${maxPacket}). ` +
      "Raise max_allowed_packet, or keep the data elsewhere and pass a reference to it.",
    { transient: false },
  );
}

/** mysql2's promise connections answer [rows, fields], others may answer the rows. */
function rowsOrHeaderOf(answer: unknown): unknown {
  if (!Array.isArray(answer)) return answer;
  const first: unknown = answer[0];
  const isPair = Array.isArray(first) || (first !== null && typeof first === "object" && "affectedRows" in first);
  return isPair ? first : answer;
}

function resultOf(answer: unknown): Result {
  if (Array.isArray(answer)) return { rows: answer.map(decodeRow), affectedRows: 0, insertId: 0 };
  const { affectedRows, insertId } = (answer ?? {}) as { affectedRows?: number; insertId?: number };
  return { rows: [], affectedRows: Number(affectedRows ?? 0), insertId: Number(insertId ?? 0) };
}

/** VARBINARY columns come as buffers, whatever the connection's settings; ours hold UTF-8. */
function decodeRow(row: Record<string, unknown>): SqlRow {
  for (const column in row) {
    const value = row[column];
    if (value instanceof Uint8Array) row[column] = Buffer.from(value.buffer, value.byteOffset, value.length).toString();
  }
  return row;
}
