/** Runs reads, writes and transactions on pooled connections, and retries them when that is safe. */

import { StoreError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import type { StoreOptions } from "../contract/store.js";
import { closeTimeoutMs, ServerReachability } from "../shared/reachability.js";
import { NoAnswerError, StatementDeadline } from "../shared/statement-deadline.js";
import type { Queryable, SqlRow } from "../sql/dialect.js";
import { ConnectionPool, type PooledConnection } from "./connection-pool.js";
import type { Driver } from "./driver.js";
import { isCollision, isConnectionLost, isSessionEnded, toStoreError } from "./errors.js";
import { ServerSessions } from "./server-sessions.js";
import { createBlockSession, createPacketSession, type Result, type Session, type Transaction } from "./session.js";
import { type Sql, sql, type Value } from "./sql.js";
import { begin, commit, rollback } from "./transaction-block.js";
import { type ConnectionEndState, UserTransaction } from "./user-transaction.js";

const defaultPoolSize = 10;
/** After this many attempts the caller gets the error. */
const maxAttempts = 5;

export class Database implements Queryable {
  /** How long a statement may go unanswered; the leases of workers shorten it. */
  readonly deadline: StatementDeadline;
  readonly #runtime: Runtime;
  readonly #driver: Driver;
  readonly #ownPool: ConnectionPool;
  readonly #userPool: ConnectionPool;
  readonly #onWarning: StoreOptions["onWarning"];
  readonly #reachability: ServerReachability;
  /** The calls in progress, for which `close` waits. */
  readonly #pendingCalls = new Set<Promise<unknown>>();
  /** The open transactions of user code. */
  readonly #userTransactions = new Set<UserTransaction>();
  #isClosed = false;
  #isDisconnected = false;
  /** A session whose reads each run on any connection of the pool. */
  readonly reader: Session = { run: (statements) => this.read(statements) };

  constructor(
    driver: Driver,
    uri: string,
    runtime: Runtime,
    onWarning: StoreOptions["onWarning"],
    pool: StoreOptions["pool"] = {},
  ) {
    this.deadline = new StatementDeadline(runtime);
    this.#runtime = runtime;
    this.#driver = driver;
    this.#onWarning = onWarning;
    this.#reachability = new ServerReachability((message) => {
      if (!this.#isClosed) onWarning?.(message);
    });
    const { deadline } = this;
    const sessions = new ServerSessions(driver, uri, deadline, runtime);
    const common = { driver, uri, runtime, deadline, sessions };
    const { max = defaultPoolSize, transactions = max } = pool;
    this.#ownPool = new ConnectionPool({
      ...common,
      maxConnections: max,
      multipleStatements: true,
      idleTimeoutSeconds: 20,
    });
    this.#userPool = new ConnectionPool({
      ...common,
      maxConnections: transactions,
      multipleStatements: false,
      idleTimeoutSeconds: 60,
    });
  }

  /** Executes statements that are safe to repeat; they are retried when the connection is lost. */
  async read(statements: readonly Sql[]): Promise<readonly Result[]> {
    const run = (connection: PooledConnection) => this.#packetSession(connection).run(statements);
    return this.#runWithRetries("read", () => this.#withConnection(run, isReadRetryable));
  }

  async query(text: string, values: readonly unknown[]): Promise<readonly SqlRow[]> {
    const statement = sql(text, values as readonly Value[]);
    if (!/^SELECT/i.test(text)) return (await this.write(statement))?.rows ?? [];
    return (await this.read([statement]))[0]?.rows ?? [];
  }

  /** Executes one statement that commits by itself. If the answer is lost, it is unknown whether it was executed. */
  async write(statement: Sql): Promise<Result | undefined> {
    const run = (connection: PooledConnection) => this.#packetSession(connection).run([statement]);
    return (await this.#runWithRetries("write", () => this.#withConnection(run, isCollision)))[0];
  }

  /**
   * Runs `work` in a transaction, and repeats it from the start when it collided with another transaction or the
   * connection was lost before COMMIT was sent. `work` must commit or roll back at its end.
   */
  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.#runWithRetries("transaction", () => {
      let isCommitting = false;
      const isSafeToRetry = (error: unknown) => isCollision(error) || (!isCommitting && isConnectionLost(error));
      return this.#withConnection((connection) => {
        const session = this.#blockSession(connection);
        let openingStatements: readonly Sql[] = [begin];
        return work({
          run(statements) {
            const unsentOpening = openingStatements;
            openingStatements = [];
            return session
              .run([...unsentOpening, ...statements])
              .then((results) => results.slice(unsentOpening.length));
          },
          async commit(statements) {
            const beforeCommit = [...openingStatements, ...statements];
            // To a server without blocks, COMMIT is sent only after the server has answered the other statements. A
            // block contains COMMIT.
            const sentFirst = connection.capabilities.hasBlocks ? [] : await session.run(beforeCommit);
            isCommitting = true;
            const remaining = sentFirst.length > 0 ? [commit] : [...beforeCommit, commit];
            const lastResults = await session.run(remaining).catch((error: unknown) => {
              // The server has answered with an error, so COMMIT was not executed.
              if (!isConnectionLost(error)) isCommitting = false;
              throw error;
            });
            return [...sentFirst, ...lastResults].slice(openingStatements.length, -1);
          },
          rollback: async () => void (await session.run([rollback])),
        });
      }, isSafeToRetry);
    });
  }

  /** Begins a transaction of user code, which has its connection to itself until the transaction has ended. */
  async beginUserTransaction(): Promise<UserTransaction> {
    return this.#runWithRetries("begin", async () => {
      const connection = await this.#acquire(this.#userPool);
      const onEnd = async (transaction: UserTransaction, endState: ConnectionEndState) => {
        this.#userTransactions.delete(transaction);
        // The end of this transaction does not wait for the reset.
        if (endState === "clean") void this.#track(this.#userPool.resetAndRelease(connection));
        // When the store closes, closing the connection is enough: the server then ends the session by itself.
        else if (endState === "in use" && this.#isClosed) this.#userPool.drop(connection);
        else if (endState === "in use") await this.#track(this.#userPool.dropAndKillSession(connection));
        else await this.#track(this.#userPool.dropAndEndSession(connection));
      };
      try {
        const transaction = await UserTransaction.begin(connection, this.#driver.escape, onEnd);
        this.#userTransactions.add(transaction);
        return transaction;
      } catch (error) {
        await this.#releaseAfterError(this.#userPool, connection, error);
        throw isConnectionLost(error) ? new SafeToRetryError(error) : error;
      }
    });
  }

  /** Makes `close` wait for the work. */
  trackUntilDone<T>(work: Promise<T>): Promise<T> {
    return this.#track(work);
  }

  /** Runs `work` on one connection that is closed afterwards: the lock of migrations belongs to a connection. */
  async withDedicatedConnection<T>(work: (session: Session) => Promise<T>): Promise<T> {
    // There is no deadline, because a migration may take any amount of time.
    const run = ({ driver, maxPacket }: PooledConnection) =>
      work(createPacketSession((text) => driver.query(text), { quote: this.#driver.escape, maxPacket }));
    return this.#runWithRetries("connect", () => this.#withConnection(run, () => false, true));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // Without this, a server that no longer answers would delay the close until the network times out.
    const disconnectTimer = this.#runtime.setTimeout(() => {
      this.#isDisconnected = true;
      for (const connections of [this.#ownPool, this.#userPool]) connections.disconnectAll();
    }, closeTimeoutMs);
    while (this.#pendingCalls.size > 0) await Promise.allSettled(this.#pendingCalls);
    this.#runtime.clearTimeout(disconnectTimer);
    // Transactions that user code has left open are rolled back; waiting for them could take forever.
    await Promise.all([...this.#userTransactions].map((transaction) => transaction.abandon()));
    await Promise.all([this.#ownPool.close(), this.#userPool.close()]);
  }

  #packetSession({ query, maxPacket }: PooledConnection): Session {
    return createPacketSession(query, { quote: this.#driver.escape, maxPacket });
  }

  #blockSession({ query, maxPacket, capabilities }: PooledConnection): Session {
    return createBlockSession(query, {
      quote: this.#driver.escape,
      maxPacket,
      allowsMultipleStatements: true,
      ...capabilities,
    });
  }

  async #acquire(connections: ConnectionPool): Promise<PooledConnection> {
    return connections.acquire().catch((error: unknown) => {
      throw isConnectionLost(error) ? new SafeToRetryError(error) : error;
    });
  }

  /** Releases a connection after an error: rolls back if it still works, otherwise closes it. */
  async #releaseAfterError(connections: ConnectionPool, connection: PooledConnection, error: unknown): Promise<void> {
    if (error instanceof NoAnswerError) for (const pool of [this.#ownPool, this.#userPool]) pool.dropIdle();
    if (!isConnectionLost(error)) {
      const rolledBack = connection.query(rollback.text).then(() => connections.release(connection));
      await rolledBack.catch(() => connections.dropAndEndSession(connection));
    } else if (isSessionEnded(error)) {
      connections.drop(connection);
    } else {
      await connections.dropAndEndSession(connection);
    }
  }

  /**
   * Runs `work` with a connection. Afterwards the connection is returned to the pool without an open transaction, or
   * closed.
   */
  async #withConnection<T>(
    work: (connection: PooledConnection) => Promise<T>,
    isSafeToRetry: (error: unknown) => boolean,
    shouldDropAfterwards = false,
  ): Promise<T> {
    const connection = await this.#acquire(this.#ownPool);
    try {
      const result = await work(connection);
      if (shouldDropAfterwards) this.#ownPool.drop(connection);
      else this.#ownPool.release(connection);
      return result;
    } catch (error) {
      if (shouldDropAfterwards) this.#ownPool.drop(connection);
      else await this.#releaseAfterError(this.#ownPool, connection, error);
      throw isSafeToRetry(error) ? new SafeToRetryError(error) : error;
    }
  }

  async #runWithRetries<T>(operation: string, runOnce: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new StoreError("The store is closed.", { transient: false });
    return this.#track(this.#retry(operation, runOnce));
  }

  async #retry<T>(operation: string, runOnce: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const { failureCount } = this.#reachability;
      try {
        const result = await runOnce();
        this.#reachability.recordAnswer(failureCount);
        return result;
      } catch (error) {
        const cause = error instanceof SafeToRetryError ? error.cause : error;
        const isLost = isConnectionLost(cause);
        if (isLost) this.#reachability.recordFailure(cause);
        if (!(error instanceof SafeToRetryError) || attempt === maxAttempts || this.#isDisconnected)
          throw toStoreError(cause);
        if (!isLost) this.#onWarning?.(`mysql: retrying ${operation} (attempt ${attempt} failed)`, cause);
        // Random delays keep transactions that have collided from colliding again.
        await sleep(this.#runtime, (5 + 20 * this.#runtime.random()) * attempt ** 2);
      }
    }
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#pendingCalls.add(work);
    const done = () => void this.#pendingCalls.delete(work);
    work.then(done, done);
    return work;
  }
}

const isReadRetryable = (error: unknown) => isCollision(error) || isConnectionLost(error);

/** Wraps an error after which the call may be repeated. */
class SafeToRetryError extends Error {
  constructor(cause: unknown) {
    super("safe to retry", { cause });
  }
}
