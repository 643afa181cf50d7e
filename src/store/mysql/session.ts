/** Running statements on a connection, and what they answer. */
import { StoreError } from "../../core/errors/errors.js";
import type { SqlRow } from "../sql/dialect.js";
import { begin, blockBytes, blockOf, releaseProof, rollback, savepoint } from "./block.js";
import type { Capabilities } from "./capabilities.js";
import { type Quote, type Sql, type Value, write } from "./sql.js";

export interface Result {
  readonly rows: readonly SqlRow[];
  /** Rows found by an UPDATE, written by an INSERT. */
  readonly affected: number;
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

interface Packing {
  readonly quote: Quote;
  readonly maxPacket: number;
}

/** What the session needs of a connection; also all that is asked of a connection of the user's. */
type Query = (text: string, values: readonly Value[]) => Promise<unknown>;

/** Statement by statement, on a connection that takes one at a time. */
export function singly(query: Query): Session {
  return {
    async run(statements) {
      const results: Result[] = [];
      for (const { text, values } of statements) results.push(resultOf(answerOf(await query(text, values))));
      return results;
    },
  };
}

/** As few packets as possible. Each statement is a transaction of its own, or reads. */
export function inPackets(query: Send, { quote, maxPacket }: Packing): Session {
  return {
    async run(statements) {
      const results: Result[] = [];
      for (const packet of packets(statements, quote, maxPacket)) {
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
export function inBlocks(query: Send, packing: Packing & Capabilities & { readonly mayJoin: boolean }): Session {
  const { quote, maxPacket, hasBlocks, mayJoin } = packing;
  const send = async (part: readonly string[], hasSavepoint: boolean): Promise<Result[]> => {
    const [first = ""] = part;
    if (!hasBlocks || (part.length === 1 && (first === begin.text || first === rollback.text))) {
      return [resultOf((await query(first))[0])];
    }
    if (mayJoin && part.length > 1 && part.every((text) => text === begin.text || answersRows.test(text))) {
      const [answers] = await query(part.join(";"));
      return (answers as unknown[]).map(resultOf);
    }
    const continues = first !== begin.text && first !== releaseProof.text;
    const [answer] = await query(blockOf(part, { continues, hasSavepoint }));
    return resultsOfBlock(part, answer);
  };
  return {
    async run(statements) {
      const results: Result[] = [];
      const hasSavepoint = statements.includes(savepoint);
      const parts = hasBlocks
        ? packets(statements, quote, maxPacket - blockBytes)
        : packets(statements, quote, maxPacket).flatMap((packet) => packet.map((text) => [text]));
      for (const part of parts) results.push(...(await send(part, hasSavepoint)));
      return results;
    },
  };
}

const answersRows = /^\s*SELECT/i;

/** A block answers with the rows of each SELECT, and with one header for all of the others. */
function resultsOfBlock(statements: readonly string[], answer: unknown): Result[] {
  const rows = Array.isArray(answer) ? answer.slice() : [];
  return statements.map((text) => resultOf(answersRows.test(text) ? rows.shift() : undefined));
}

/** All are written before the first is sent: a value that is too large must not leave half of them done. */
function packets(statements: readonly Sql[], quote: Quote, maxPacket: number): string[][] {
  const limit = maxPacket - 1024;
  const all: string[][] = [];
  let room = 0;
  for (const statement of statements) {
    const text = write(statement, quote);
    const bytes = Buffer.byteLength(text) + 1;
    if (bytes > limit) throw tooLarge(bytes, maxPacket);
    if (bytes > room) {
      all.push([]);
      room = limit;
    }
    all.at(-1)?.push(text);
    room -= bytes;
  }
  return all;
}

function tooLarge(bytes: number, maxPacket: number): StoreError {
  return new StoreError(
    `A statement of ${bytes} bytes is more than the server takes (max_allowed_packet = ${maxPacket}). ` +
      "Raise max_allowed_packet, or keep the data elsewhere and pass a reference to it.",
    { transient: false },
  );
}

/** mysql2's promise connections answer [rows, fields], others may answer the rows. */
function answerOf(answer: unknown): unknown {
  if (!Array.isArray(answer)) return answer;
  const first: unknown = answer[0];
  const isPair = Array.isArray(first) || (first !== null && typeof first === "object" && "affectedRows" in first);
  return isPair ? first : answer;
}

function resultOf(answer: unknown): Result {
  if (Array.isArray(answer)) return { rows: answer.map(decoded), affected: 0, insertId: 0 };
  const { affectedRows, insertId } = (answer ?? {}) as { affectedRows?: number; insertId?: number };
  return { rows: [], affected: Number(affectedRows ?? 0), insertId: Number(insertId ?? 0) };
}

/** VARBINARY columns come as buffers, whatever the connection's settings; ours hold UTF-8. */
function decoded(row: Record<string, unknown>): SqlRow {
  for (const column in row) {
    const value = row[column];
    if (value instanceof Uint8Array) row[column] = Buffer.from(value.buffer, value.byteOffset, value.length).toString();
  }
  return row;
}
