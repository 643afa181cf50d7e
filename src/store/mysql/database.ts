/** Our own connections: reads and transactions, with the retries that are safe. */

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
/** A transaction that is tried so often is unlucky enough to be told. */
const maxAttempts = 5;

export class Database implements Queryable {
  /** How long a statement may go unanswered; workers make it shorter. */
  readonly deadline: StatementDeadline;
  readonly #runtime: Runtime;
  readonly #driver: Driver;
  readonly #ownPool: ConnectionPool;
  readonly #userPool: ConnectionPool;
  readonly #onWarning: StoreOptions["onWarning"];
  readonly #reachability: ServerReachability;
  /** What is under way; `close` waits for it. */
  readonly #pending = new Set<Promise<unknown>>();
  /** Those that user code has open. */
  readonly #userTransactions = new Set<UserTransaction>();
  #isClosed = false;
  #isDisconnected = false;
  /** For what only reads, with any connection. */
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
    this.#reachability = new ServerReachability((what) => {
      if (!this.#isClosed) onWarning?.(what);
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

  /** Statements that may be done twice: tried again when the connection turns out to be lost. */
  async read(statements: readonly Sql[]): Promise<readonly Result[]> {
    const run = (connection: PooledConnection) => this.#packetSession(connection).run(statements);
    return this.#runWithRetries("read", () => this.#withConnection(run, isReadRetryable));
  }

  async query(text: string, values: readonly unknown[]): Promise<readonly SqlRow[]> {
    const statement = sql(text, values as readonly Value[]);
    if (!/^SELECT/i.test(text)) return (await this.write(statement))?.rows ?? [];
    return (await this.read([statement]))[0]?.rows ?? [];
  }

  /** A statement that commits by itself. Whether it was done is unknown when the answer is lost. */
  async write(statement: Sql): Promise<Result | undefined> {
    const run = (connection: PooledConnection) => this.#packetSession(connection).run([statement]);
    return (await this.#runWithRetries("write", () => this.#withConnection(run, isCollision)))[0];
  }

  /**
   * Runs `work` in a transaction, again from the start when it collided with another or the connection was lost before
   * COMMIT was sent. `work` either commits or rolls back as its last act.
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
            // One by one, COMMIT has not been sent before the others are answered; in a block it goes with them.
            const sentFirst = connection.capabilities.hasBlocks ? [] : await session.run(beforeCommit);
            isCommitting = true;
            const remaining = sentFirst.length > 0 ? [commit] : [...beforeCommit, commit];
            const lastResults = await session.run(remaining).catch((error: unknown) => {
              // An answer from the server: COMMIT was not reached.
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

  /** A transaction for user code, on a connection that it has to itself until the transaction has ended. */
  async beginUserTransaction(): Promise<UserTransaction> {
    return this.#runWithRetries("begin", async () => {
      const connection = await this.#acquire(this.#userPool);
      const onEnd = async (transaction: UserTransaction, endState: ConnectionEndState) => {
        this.#userTransactions.delete(transaction);
        // The next transaction on the connection waits for the reset, this one does not.
        if (endState === "clean") void this.#track(this.#userPool.resetAndRelease(connection));
        // When the store closes, the server hears of it from the connection, and is not waited for.
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

  /** `close` waits for it. */
  trackUntilDone<T>(work: Promise<T>): Promise<T> {
    return this.#track(work);
  }

  /** A session of one connection that lasts longer than a transaction: for the lock of migrations. */
  async withDedicatedConnection<T>(work: (session: Session) => Promise<T>): Promise<T> {
    // A migration takes as long as it takes: there is no deadline.
    const run = ({ driver, maxPacket }: PooledConnection) =>
      work(createPacketSession((text) => driver.query(text), { quote: this.#driver.escape, maxPacket }));
    return this.#runWithRetries("connect", () => this.#withConnection(run, () => false, true));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // A server that has gone without a word would keep us here for as long as the network likes.
    const disconnectTimer = this.#runtime.setTimeout(() => {
      this.#isDisconnected = true;
      for (const connections of [this.#ownPool, this.#userPool]) connections.disconnectAll();
    }, closeTimeoutMs);
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
    this.#runtime.clearTimeout(disconnectTimer);
    // Transactions that user code has left open would keep us here for as long as it likes: they are not committed.
    await Promise.all([...this.#userTransactions].map((transaction) => transaction.abandon()));
    await Promise.all([this.#ownPool.close(), this.#userPool.close()]);
  }

  #packetSession({ query, maxPacket }: PooledConnection): Session {
    return createPacketSession(query, { quote: this.#driver.escape, maxPacket });
  }

  #blockSession({ query, maxPacket, capabilities }: PooledConnection): Session {
    return createBlockSession(query, { quote: this.#driver.escape, maxPacket, mayJoin: true, ...capabilities });
  }

  async #acquire(connections: ConnectionPool): Promise<PooledConnection> {
    return connections.acquire().catch((error: unknown) => {
      throw isConnectionLost(error) ? new SafeToRetryError(error) : error;
    });
  }

  /** Takes back a connection on which this error came. */
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

  /** Gives `work` a connection; afterwards it is clean and free again, or gone. */
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
        if (!isLost) this.#onWarning?.(`mysql: ${operation} is tried again (${attempt})`, cause);
        // Random, so that those who collided do not meet again.
        await sleep(this.#runtime, (5 + 20 * this.#runtime.random()) * attempt ** 2);
      }
    }
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#pending.add(work);
    const done = () => void this.#pending.delete(work);
    work.then(done, done);
    return work;
  }
}

const isReadRetryable = (error: unknown) => isCollision(error) || isConnectionLost(error);

/** Marks an error after which nothing was written. */
class SafeToRetryError extends Error {
  constructor(cause: unknown) {
    super("safe to retry", { cause });
  }
}
