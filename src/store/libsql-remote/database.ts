/** The connection to the server: reads, batches and transactions, which are retried when that is safe. */

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

/** After this many attempts the caller gets the error; the caller waits longer between its own attempts. */
const maxAttempts = 5;

/** A server accepts 128 sessions at a time from all processes together and refuses further ones. */
const maxConcurrentReads = 10;

/**
 * The server executes one write at a time, and sqld 0.24 handles many waiting writers badly: ten concurrent writers in
 * one process completed 5,469 batches in 8 s, one writer 9,761; with twenty the server could hang during a checkpoint.
 * So writes wait here: one batch and one transaction of user code at a time.
 */
const maxConcurrentWrites = 1;

/**
 * The store gives up a call that the server has not answered for this long, even if the server answers other calls. The
 * limit is shorter over HTTP, where other calls use other connections and do not prove that the call's own connection
 * works.
 */
const maxAnswerWaitMs = { webSocket: 30_000, http: 10_000 };

/** The first page size when a result is too large for one response. */
const initialRowsPerPage = 64;

/** The transaction of a transactional step. */
export interface ServerTransaction {
  readonly transaction: RemoteTransaction;
  /** Resolves or rejects as the call does, and rejects when the server does not answer in time. */
  withDeadline<T>(call: Promise<T>): Promise<T>;
  /** Closes the session on the server; an uncommitted transaction is rolled back. */
  end(): void;
}

export class RemoteDatabase implements Queryable {
  /** How long a call may go unanswered; the leases of workers shorten it. */
  readonly deadline: StatementDeadline;
  readonly description: string;
  readonly #runtime: Runtime;
  readonly #openClient: OpenClient;
  readonly #reachability: ServerReachability;
  readonly #readSlots = new Semaphore(maxConcurrentReads);
  readonly #writeSlots = new Semaphore(maxConcurrentWrites);
  readonly #transactionSlots = new Semaphore(maxConcurrentWrites);
  readonly #pendingCalls = new Set<Promise<unknown>>();
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
    this.#reachability = new ServerReachability((message) => {
      if (!this.#isClosed) onWarning?.(message);
    });
  }

  async query(sql: string, values: readonly unknown[]): Promise<readonly SqlRow[]> {
    const statement = { sql, args: values as readonly Value[] };
    if (sql.startsWith("SELECT")) return this.read(statement);
    return (await this.write([statement]))[0]?.rows ?? [];
  }

  /** Executes one statement that only reads, so it is repeated even when the connection is lost. */
  async read(statement: Statement): Promise<readonly SqlRow[]> {
    const sendableStatement = withSendableValues(statement);
    try {
      return (await this.#call(this.#readSlots, (client) => client.execute(sendableStatement), isReadRetryable)).rows;
    } catch (error) {
      if (!isResponseTooLarge((error as Error).cause)) throw error;
      return this.#call(this.#readSlots, (client) => readInPages(client, sendableStatement), isReadRetryable);
    }
  }

  /** Executes the statements in one transaction, in one round trip unless they exceed the size of a request. */
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

  /** Begins a transaction of user code, takes the write lock and executes the first statement. */
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
    // Without this, a server that no longer answers would delay the process until the network times out.
    const closeTimer = this.#runtime.setTimeout(() => this.#client.close(), closeTimeoutMs);
    while (this.#pendingCalls.size > 0) await Promise.allSettled(this.#pendingCalls);
    this.#runtime.clearTimeout(closeTimer);
    // Transactions that user code has left open are rolled back.
    for (const openTransaction of this.#openTransactions) openTransaction.end();
    this.#client.close();
  }

  /** @param slots limits how many calls of this kind run at a time */
  #call<T>(
    slots: Semaphore,
    work: (client: RemoteClient) => Promise<T>,
    isSafeToRetry: (error: unknown) => boolean,
  ): Promise<T> {
    if (this.#isClosed) return Promise.reject(new StoreError(`${this.description} is closed.`, { transient: false }));
    return this.#track(
      new Promise((resolve, reject) => {
        slots.acquire(
          (releaseSlot) => void this.#withRetries(work, isSafeToRetry).finally(releaseSlot).then(resolve, reject),
        );
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
        // Random delays keep processes that have collided from retrying at the same instant.
        await sleep(this.#runtime, (5 + 20 * this.#runtime.random()) * attempt ** 2);
      }
    }
  }

  /**
   * A call may go unanswered because a web socket can lose every message without being closed, or because a write waits
   * for another transaction. In the second case the same socket still answers a probe. If it does not, the store
   * replaces the client and closes it, which rejects all its pending calls.
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
    const timeout = new Promise<boolean>((resolve) => {
      timer = this.#runtime.setTimeout(() => resolve(false), this.deadline.ms);
    });
    const answer = client.execute({ sql: "SELECT 1", args: [] }).then(
      () => true,
      () => false,
    );
    return Promise.race([answer, timeout]).finally(() => this.#runtime.clearTimeout(timer));
  }

  #replaceClient(client: RemoteClient): void {
    if (client === this.#client && !this.#isClosed) this.#client = this.#openClient();
    client.close();
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#pendingCalls.add(work);
    const done = () => void this.#pendingCalls.delete(work);
    work.then(done, done);
    return work;
  }
}

function withSendableValues(statement: Statement): Statement {
  const { sql, args } = statement;
  return args.every((value) => toSendable(value) === value) ? statement : { sql, args: args.map(toSendable) };
}

/** Sends statements that are too large for one request in several requests, within one transaction. */
async function writeInParts(
  client: RemoteClient,
  parts: readonly (readonly Statement[])[],
): Promise<readonly Result[]> {
  const transaction = await client.transaction("write");
  const results: Result[] = [];
  try {
    for (const part of parts) {
      const partResults = await transaction.batch(part).catch((error: unknown) => {
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

/** A response is limited to 10 MB (sqld: `--max-response-size`). One transaction gives all pages the same snapshot. */
async function readInPages(client: RemoteClient, { sql, args }: Statement): Promise<readonly SqlRow[]> {
  const transaction = await client.transaction("read");
  const rows: SqlRow[] = [];
  try {
    // A transaction begins with the first statement that succeeds. The read of the first page may fail because the page
    // is too large, so this statement precedes it.
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
