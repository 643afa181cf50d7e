/** The connection to the server: reads, batches and transactions, with the repetitions that are safe. */

import { Semaphore } from "../../concurrency/semaphore.js";
import { StoreError } from "../../core/errors/errors.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import type { StoreOptions } from "../contract/store.js";
import { closingPatienceMs, Reach } from "../shared/reachability.js";
import { StatementDeadline } from "../shared/statement-deadline.js";
import type { Queryable, SqlRow } from "../sql/dialect.js";
import type { RemoteAddress } from "./address.js";
import type { OpenClient, RemoteClient, RemoteTransaction, Result, Statement, Value } from "./driver.js";
import {
  failedStatement,
  isConnectionLost,
  isReadRetryable,
  isResponseTooLarge,
  isSafeToRepeat,
  toStoreError,
} from "./errors.js";
import { inMessages, sendable } from "./message.js";

/** A call that was turned away this often is told to its caller, who waits longer between its tries. */
const attempts = 5;

/** A server has sessions for 128 at a time, of all processes together, and refuses the others. */
const mostReads = 10;

/**
 * There is one writer at a time, and sqld 0.24 does not do well with many that wait: ten in one process got half as much done
 * as one after the other (5,469 and 9,761 batches in 8 s), and with twenty it could stand still for ever when it made a
 * checkpoint. So they wait here, one batch and one transaction of user code at a time.
 */
const mostWrites = 1;

/**
 * A call that was not answered for so long is given up, although the server answers others. Over HTTP the others have
 * connections of their own, and say nothing about this one's.
 */
const longestWaitMs = { webSocket: 30_000, http: 10_000 };

/** How many rows are asked for at a time, at first, when all of them are too large for one answer. */
const rowsPerPage = 64;

/** A transaction of user code. */
export interface Begun {
  readonly transaction: RemoteTransaction;
  /** What comes of a call on it; an error when the server does not answer. */
  watched<T>(call: Promise<T>): Promise<T>;
  /** Closes the server's session; what was not committed is rolled back. */
  end(): void;
}

export class RemoteDatabase implements Queryable {
  /** How long a call may go unanswered; workers make it shorter. */
  readonly deadline: StatementDeadline;
  readonly description: string;
  readonly #runtime: Runtime;
  readonly #open: OpenClient;
  readonly #reach: Reach;
  readonly #reads = new Semaphore(mostReads);
  readonly #writes = new Semaphore(mostWrites);
  readonly #transactions = new Semaphore(mostWrites);
  readonly #pending = new Set<Promise<unknown>>();
  readonly #begun = new Set<Begun>();
  readonly #longestWaitMs: number;
  #client: RemoteClient;
  #closed = false;

  constructor(
    open: OpenClient,
    { description, usesWebSocket }: Pick<RemoteAddress, "description" | "usesWebSocket">,
    onTrouble: StoreOptions["onTrouble"],
    runtime: Runtime,
  ) {
    this.#runtime = runtime;
    this.deadline = new StatementDeadline(runtime);
    this.#open = open;
    this.#client = open();
    this.description = description;
    this.#longestWaitMs = usesWebSocket ? longestWaitMs.webSocket : longestWaitMs.http;
    this.#reach = new Reach((what) => {
      if (!this.#closed) onTrouble?.(what);
    });
  }

  async query(sql: string, values: readonly unknown[]): Promise<readonly SqlRow[]> {
    const statement = { sql, args: values as readonly Value[] };
    if (sql.startsWith("SELECT")) return this.read(statement);
    return (await this.write([statement]))[0]?.rows ?? [];
  }

  /** One statement that only reads: asked again when the connection turns out to be lost. */
  async read(statement: Statement): Promise<readonly SqlRow[]> {
    const sent = withSendableValues(statement);
    try {
      return (await this.#call(this.#reads, (client) => client.execute(sent), isReadRetryable)).rows;
    } catch (error) {
      if (!isResponseTooLarge((error as Error).cause)) throw error;
      return this.#call(this.#reads, (client) => readInPages(client, sent), isReadRetryable);
    }
  }

  /** All of the statements in one transaction, or none of them, in one round trip. */
  async write(statements: readonly Statement[]): Promise<readonly Result[]> {
    const messages = inMessages(statements.map(withSendableValues));
    const [only] = messages;
    return this.#call(
      this.#writes,
      (client) =>
        messages.length === 1 && only !== undefined ? client.batch(only, "write") : inParts(client, messages),
      isSafeToRepeat,
    );
  }

  /** A transaction over user code. The first statement is executed when it is begun, with the write lock. */
  async begin(first: Statement): Promise<Begun> {
    const begin = async (client: RemoteClient) => {
      const transaction = await client.transaction("write");
      try {
        await transaction.batch([first]);
        return { client, transaction };
      } catch (error) {
        transaction.close();
        throw error;
      }
    };
    const leave = await new Promise<() => void>((resolve) => this.#transactions.take(resolve));
    try {
      const mayRepeat = (error: unknown) => isSafeToRepeat(error) || isConnectionLost(error);
      const { client, transaction } = await this.#call(this.#writes, begin, mayRepeat);
      const begun: Begun = {
        transaction,
        watched: (call) => this.#track(this.#watched(client, call)),
        end: () => {
          this.#begun.delete(begun);
          transaction.close();
          leave();
        },
      };
      this.#begun.add(begun);
      return begun;
    } catch (error) {
      leave();
      throw error;
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    // A server that has gone without a word would keep the process waiting for as long as the network likes.
    const impatience = this.#runtime.setTimeout(() => this.#client.close(), closingPatienceMs);
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
    this.#runtime.clearTimeout(impatience);
    // Transactions that user code has left open are not committed.
    for (const begun of this.#begun) begun.end();
    this.#client.close();
  }

  /** @param places how many of its kind may be under way */
  #call<T>(
    places: Semaphore,
    work: (client: RemoteClient) => Promise<T>,
    isSafe: (error: unknown) => boolean,
  ): Promise<T> {
    if (this.#closed) return Promise.reject(new StoreError(`${this.description} is closed.`, { transient: false }));
    return this.#track(
      new Promise((resolve, reject) => {
        places.take((leave) => void this.#repeated(work, isSafe).finally(leave).then(resolve, reject));
      }),
    );
  }

  async #repeated<T>(work: (client: RemoteClient) => Promise<T>, isSafe: (error: unknown) => boolean): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const client = this.#client;
      const { losses } = this.#reach;
      try {
        const result = await this.#watched(client, work(client));
        this.#reach.answered(losses);
        return result;
      } catch (error) {
        if (isConnectionLost(error)) this.#reach.lost(error);
        if (!isSafe(error) || attempt === attempts || this.#closed) throw toStoreError(error, this.description);
        // Random, so that processes that were in each other's way do not come back at the same instant.
        await sleep(this.#runtime, (5 + 20 * this.#runtime.random()) * attempt ** 2);
      }
    }
  }

  /**
   * A web socket can swallow every message without ever breaking. A write may also wait for another's transaction; then the
   * same socket still answers others. If it does not, it is closed, which ends all that waits for it.
   */
  #watched<T>(client: RemoteClient, call: Promise<T>): Promise<T> {
    const since = this.#runtime.monotonic();
    return this.deadline.within(call, {
      isAtWork: async () => this.#runtime.monotonic() - since < this.#longestWaitMs && (await this.#answers(client)),
      cut: () => this.#replace(client),
    });
  }

  async #answers(client: RemoteClient): Promise<boolean> {
    let timer: Timer | undefined;
    const tooLate = new Promise<boolean>((resolve) => {
      timer = this.#runtime.setTimeout(() => resolve(false), this.deadline.ms);
    });
    const answer = client.execute({ sql: "SELECT 1", args: [] }).then(
      () => true,
      () => false,
    );
    return Promise.race([answer, tooLate]).finally(() => this.#runtime.clearTimeout(timer));
  }

  #replace(client: RemoteClient): void {
    if (client === this.#client && !this.#closed) this.#client = this.#open();
    client.close();
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#pending.add(work);
    const done = () => void this.#pending.delete(work);
    work.then(done, done);
    return work;
  }
}

function withSendableValues(statement: Statement): Statement {
  const { sql, args } = statement;
  return args.every((value) => sendable(value) === value) ? statement : { sql, args: args.map(sendable) };
}

/** What is too large for one message goes in several, within one transaction. */
async function inParts(client: RemoteClient, messages: readonly (readonly Statement[])[]): Promise<readonly Result[]> {
  const transaction = await client.transaction("write");
  const results: Result[] = [];
  try {
    for (const message of messages) {
      const done = await transaction.batch(message).catch((error: unknown) => {
        const index = failedStatement(error);
        throw index === null ? error : Object.assign(error as Error, { statementIndex: results.length + index });
      });
      results.push(...done);
    }
    await transaction.batch([{ sql: "COMMIT", args: [] }]);
    return results;
  } finally {
    transaction.close();
  }
}

/** A server answers with 10 MB at most (sqld: `--max-response-size`). All pages are of one instant. */
async function readInPages(client: RemoteClient, { sql, args }: Statement): Promise<readonly SqlRow[]> {
  const transaction = await client.transaction("read");
  const rows: SqlRow[] = [];
  try {
    // The transaction begins with its first statement, and would not if that failed.
    await transaction.execute({ sql: "SELECT 1", args: [] });
    for (let size = rowsPerPage; ; ) {
      const page = `SELECT * FROM (${sql}) LIMIT ${size} OFFSET ${rows.length}`;
      try {
        const found = (await transaction.execute({ sql: page, args })).rows;
        rows.push(...found);
        if (found.length < size) return rows;
      } catch (error) {
        if (!isResponseTooLarge(error) || size === 1) throw error;
        size = Math.ceil(size / 4);
      }
    }
  } finally {
    transaction.close();
  }
}
