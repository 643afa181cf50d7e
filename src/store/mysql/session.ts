/** Runs statements on a connection and decodes their results. */
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
  /** The number of rows that an UPDATE found or an INSERT wrote. */
  readonly affectedRows: number;
  /** The value that LAST_INSERT_ID(…) was set to. */
  readonly insertId: number;
}

export interface Session {
  /** Returns the results of the statements, in order, and stops at the first error. */
  run(statements: readonly Sql[]): Promise<readonly Result[]>;
}

/** An open transaction. */
export interface Transaction extends Session {
  /** Runs the last statements and COMMIT. */
  commit(statements: readonly Sql[]): Promise<readonly Result[]>;
  rollback(): Promise<void>;
}

/** Sends a text to the server and returns [rows or header, fields]. */
type Send = (text: string) => Promise<readonly unknown[]>;

interface PacketOptions {
  readonly quote: Quote;
  readonly maxPacket: number;
}

/** Sends one statement with its values. This is all that the store needs of a user's connection. */
type Query = (text: string, values: readonly Value[]) => Promise<unknown>;

/** Sends each statement in its own packet, for connections that accept only one at a time. */
export function createSingleStatementSession(query: Query): Session {
  return {
    async run(statements) {
      const results: Result[] = [];
      for (const { text, values } of statements) results.push(resultOf(rowsOrHeaderOf(await query(text, values))));
      return results;
    },
  };
}

/** Sends the statements in as few packets as possible. Each statement must only read, or commit by itself. */
export function createPacketSession(query: Send, { quote, maxPacket }: PacketOptions): Session {
  return {
    async run(statements) {
      const results: Result[] = [];
      for (const packet of splitIntoPackets(statements, quote, maxPacket)) {
        const [answer] = await query(packet.join(";"));
        if (packet.length === 1) results.push(resultOf(answer));
        else for (const statementAnswer of answer as unknown[]) results.push(resultOf(statementAnswer));
      }
      return results;
    },
  };
}

/**
 * Sends the statements of one transaction, the first of which is `begin`, in blocks (transaction-block.ts) if the
 * server has them. Where the connection accepts multiple statements, a packet that only reads is sent without a block,
 * which saves 5 to 10 % of a commit's time on the server: if the server rolls the transaction back meanwhile, the next
 * block fails before it writes.
 */
export function createBlockSession(
  query: Send,
  packing: PacketOptions & Capabilities & { readonly allowsMultipleStatements: boolean },
): Session {
  const { quote, maxPacket, hasBlocks, allowsMultipleStatements } = packing;
  const send = async (part: readonly string[], hasSavepoint: boolean): Promise<Result[]> => {
    const [first = ""] = part;
    if (!hasBlocks || (part.length === 1 && (first === begin.text || first === rollback.text))) {
      return [resultOf((await query(first))[0])];
    }
    if (
      allowsMultipleStatements &&
      part.length > 1 &&
      part.every((text) => text === begin.text || selectPattern.test(text))
    ) {
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

/** A block returns the rows of each SELECT, and one header for all other statements. */
function resultsOfBlock(statements: readonly string[], answer: unknown): Result[] {
  const rows = Array.isArray(answer) ? answer.slice() : [];
  return statements.map((text) => resultOf(selectPattern.test(text) ? rows.shift() : undefined));
}

/** All statements are rendered before the first is sent, so that a value that is too large prevents any write. */
function splitIntoPackets(statements: readonly Sql[], quote: Quote, maxPacket: number): string[][] {
  const limit = maxPacket - 1024;
  const packets: string[][] = [];
  let remainingBytes = 0;
  for (const statement of statements) {
    const text = renderSql(statement, quote);
    const bytes = Buffer.byteLength(text) + 1;
    if (bytes > limit) throw tooLargeError(bytes, maxPacket);
    if (bytes > remainingBytes) {
      packets.push([]);
      remainingBytes = limit;
    }
    packets.at(-1)?.push(text);
    remainingBytes -= bytes;
  }
  return packets;
}

function tooLargeError(bytes: number, maxPacket: number): StoreError {
  return new StoreError(
    `A statement of ${bytes} bytes is larger than the server accepts (max_allowed_packet = ${maxPacket}). ` +
      "Raise max_allowed_packet, or store the data elsewhere and pass a reference to it.",
    { transient: false },
  );
}

/** Promise connections of mysql2 return [rows, fields]; other objects of users may return the rows alone. */
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

/** VARBINARY columns arrive as buffers regardless of the connection's settings; all of Pawl's contain UTF-8. */
function decodeRow(row: Record<string, unknown>): SqlRow {
  for (const column in row) {
    const value = row[column];
    if (value instanceof Uint8Array) row[column] = Buffer.from(value.buffer, value.byteOffset, value.length).toString();
  }
  return row;
}
