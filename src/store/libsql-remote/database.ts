/** The connection to the server: reads, batches and transactions, with the repetitions that are safe. */

import { Semaphore } from "../../concurrency/semaphore.js";
import { StoreError } from "../../core/errors/errors.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import type { StoreOptions } from "../contract/store.js";
import { closeTimeoutMs, ServerReachability } from "../shared/reachability.js";
import { StatementDeadline } from "../shared/statement-deadline.js";
import type { Queryable, SqlRow } from "../sql/dialect.js";
import type { RemoteAddress } from "./address.js";
import type { OpenClient, RemoteClient, RemoteTransaction, Result, Statement, Value } from "./driver.js";
import {
  failedStatementIndex,
  isConnectionLost,
  isReadRetryable,
  isResponseTooLarge,
  isSafeToRepeat,
  toStoreError,
} from "./errors.js";
import { splitIntoRequests, toSendable } from "./request-size.js";

/** A call that was turned away this often is told to its caller, who waits longer between its tries. */
const maxAttempts = 5;

/** A server has sessions for 128 at a time, of all processes together, and refuses the others. */
const maxConcurrentReads = 10;

/**
 * There is one writer at a time, and sqld 0.24 does not do well with many that wait: ten in one process got half as much done
 * as one after the other (5,469 and 9,761 batches in 8 s), and with twenty it could stand still for ever when it made a
 * checkpoint. So they wait here, one batch and one transaction of user code at a time.
 */
const maxConcurrentWrites = 1;

/**
 * A call that was not answered for so long is given up, although the server answers others. Over HTTP the others have
 * connections of their own, and say nothing about this one's.
 */
const maxAnswerWaitMs = { webSocket: 30_000, http: 10_000 };

/** How many rows are asked for at a time, at first, when all of them are too large for one answer. */
const initialRowsPerPage = 64;

/** A transaction of user code. */
export interface ServerTransaction {
  readonly transaction: RemoteTransaction;
  /** What comes of a call on it; an error when the server does not answer. */
  withDeadline<T>(call: Promise<T>): Promise<T>;
  /** Closes the server's session; what was not committed is rolled back. */
  end(): void;
}

export class RemoteDatabase implements Queryable {
  /** How long a call may go unanswered; workers make it shorter. */
  readonly deadline: StatementDeadline;
  readonly description: string;
  readonly #runtime: Runtime;
  readonly #openClient: OpenClient;
  readonly #reachability: ServerReachability;
  readonly #readSlots = new Semaphore(maxConcurrentReads);
  readonly #writeSlots = new Semaphore(maxConcurrentWrites);
  readonly #transactionSlots = new Semaphore(maxConcurrentWrites);
  readonly #pending = new Set<Promise<unknown>>();
  readonly #openTransactions = new Set<ServerTransaction>();
  readonly #maxAnswerWaitMs: number;
  #client: RemoteClient;
  #isClosed = false;

  constructor(
    openClient: OpenClient,
    { description, usesWebSocket }: Pick<RemoteAddress, "description" | "usesWebSocket">,
    onWarning: StoreOptions["onWarning"],
    runtime: Runtime,
  ) {
    this.#runtime = runtime;
    this.deadline = new StatementDeadline(runtime);
    this.#openClient = openClient;
    this.#client = openClient();
    this.description = description;
    this.#maxAnswerWaitMs = usesWebSocket ? maxAnswerWaitMs.webSocket : maxAnswerWaitMs.http;
    this.#reachability = new ServerReachability((what) => {
      if (!this.#isClosed) onWarning?.(what);
    });
  }

  async query(sql: string, values: readonly unknown[]): Promise<readonly SqlRow[]> {
    const statement = { sql, args: values as readonly Value[] };
    if (sql.startsWith("SELECT")) return this.read(statement);
    return (await this.write([statement]))[0]?.rows ?? [];
  }

  /** One statement that only reads: asked again when the connection turns out to be lost. */
  async read(statement: Statement): Promise<readonly SqlRow[]> {
    const sendableStatement = withSendableValues(statement);
    try {
      return (await this.#call(this.#readSlots, (client) => client.execute(sendableStatement), isReadRetryable)).rows;
    } catch (error) {
      if (!isResponseTooLarge((error as Error).cause)) throw error;
      return this.#call(this.#readSlots, (client) => readInPages(client, sendableStatement), isReadRetryable);
    }
  }

  /** All of the statements in one transaction, or none of them, in one round trip. */
  async write(statements: readonly Statement[]): Promise<readonly Result[]> {
    const parts = splitIntoRequests(statements.map(withSendableValues));
    const [onlyPart] = parts;
    return this.#call(
      this.#writeSlots,
      (client) =>
        parts.length === 1 && onlyPart !== undefined ? client.batch(onlyPart, "write") : writeInParts(client, parts),
      isSafeToRepeat,
    );
  }

  /** A transaction over user code. The first statement is executed when it is begun, with the write lock. */
  async begin(firstStatement: Statement): Promise<ServerTransaction> {
    const begin = async (client: RemoteClient) => {
      const transaction = await client.transaction("write");
      try {
        await transaction.batch([firstStatement]);
        return { client, transaction };
      } catch (error) {
        transaction.close();
        throw error;
      }
    };
    const releaseSlot = await new Promise<() => void>((resolve) => this.#transactionSlots.acquire(resolve));
    try {
      const isSafeToRetry = (error: unknown) => isSafeToRepeat(error) || isConnectionLost(error);
      const { client, transaction } = await this.#call(this.#writeSlots, begin, isSafeToRetry);
      const serverTransaction: ServerTransaction = {
        transaction,
        withDeadline: (call) => this.#track(this.#withDeadline(client, call)),
        end: () => {
          this.#openTransactions.delete(serverTransaction);
          transaction.close();
          releaseSlot();
        },
      };
      this.#openTransactions.add(serverTransaction);
      return serverTransaction;
    } catch (error) {
      releaseSlot();
      throw error;
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // A server that has gone without a word would keep the process waiting for as long as the network likes.
    const closeTimer = this.#runtime.setTimeout(() => this.#client.close(), closeTimeoutMs);
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
    this.#runtime.clearTimeout(closeTimer);
    // Transactions that user code has left open are not committed.
    for (const begun of this.#openTransactions) begun.end();
    this.#client.close();
  }

  /** @param slots how many of its kind may be under way */
  #call<T>(
    slots: Semaphore,
    work: (client: RemoteClient) => Promise<T>,
    isSafeToRetry: (error: unknown) => boolean,
  ): Promise<T> {
    if (this.#isClosed) return Promise.reject(new StoreError(`${this.description} is closed.`, { transient: false }));
    return this.#track(
      new Promise((resolve, reject) => {
        slots.acquire((leave) => void this.#withRetries(work, isSafeToRetry).finally(leave).then(resolve, reject));
      }),
    );
  }

  async #withRetries<T>(
    work: (client: RemoteClient) => Promise<T>,
    isSafeToRetry: (error: unknown) => boolean,
  ): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const client = this.#client;
      const { failureCount } = this.#reachability;
      try {
        const result = await this.#withDeadline(client, work(client));
        this.#reachability.recordAnswer(failureCount);
        return result;
      } catch (error) {
        if (isConnectionLost(error)) this.#reachability.recordFailure(error);
        if (!isSafeToRetry(error) || attempt === maxAttempts || this.#isClosed)
          throw toStoreError(error, this.description);
        // Random, so that processes that were in each other's way do not come back at the same instant.
        await sleep(this.#runtime, (5 + 20 * this.#runtime.random()) * attempt ** 2);
      }
    }
  }

  /**
   * A web socket can swallow every message without ever breaking. A write may also wait for another's transaction; then the
   * same socket still answers others. If it does not, it is closed, which ends all that waits for it.
   */
  #withDeadline<T>(client: RemoteClient, call: Promise<T>): Promise<T> {
    const startedAt = this.#runtime.monotonic();
    return this.deadline.within(call, {
      isExecuting: async () =>
        this.#runtime.monotonic() - startedAt < this.#maxAnswerWaitMs && (await this.#isResponsive(client)),
      dropConnection: () => this.#replaceClient(client),
    });
  }

  async #isResponsive(client: RemoteClient): Promise<boolean> {
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

  #replaceClient(client: RemoteClient): void {
    if (client === this.#client && !this.#isClosed) this.#client = this.#openClient();
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
  return args.every((value) => toSendable(value) === value) ? statement : { sql, args: args.map(toSendable) };
}

/** What is too large for one message goes in several, within one transaction. */
async function writeInParts(
  client: RemoteClient,
  parts: readonly (readonly Statement[])[],
): Promise<readonly Result[]> {
  const transaction = await client.transaction("write");
  const results: Result[] = [];
  try {
    for (const message of parts) {
      const partResults = await transaction.batch(message).catch((error: unknown) => {
        const index = failedStatementIndex(error);
        throw index === null ? error : Object.assign(error as Error, { statementIndex: results.length + index });
      });
      results.push(...partResults);
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
    for (let size = initialRowsPerPage; ; ) {
      const pageSql = `SELECT * FROM (${sql}) LIMIT ${size} OFFSET ${rows.length}`;
      try {
        const pageRows = (await transaction.execute({ sql: pageSql, args })).rows;
        rows.push(...pageRows);
        if (pageRows.length < size) return rows;
      } catch (error) {
        if (!isResponseTooLarge(error) || size === 1) throw error;
        size = Math.ceil(size / 4);
      }
    }
  } finally {
    transaction.close();
  }
}
