/** Our own connections: reads and transactions, with the retries that are safe. */

import { StoreError } from "../../core/errors/errors.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import type { StoreOptions } from "../contract/store.js";
import { closingPatienceMs, Reach } from "../shared/reachability.js";
import { NoAnswerError, StatementDeadline } from "../shared/statement-deadline.js";
import type { Queryable, SqlRow } from "../sql/dialect.js";
import { begin, commit, rollback } from "./block.js";
import { type Connection, Connections } from "./connections.js";
import type { Driver } from "./driver.js";
import { ServerSessions } from "./server-sessions.js";
import { inBlocks, inPackets, type Result, type Session, type Transaction } from "./session.js";
import { type Sql, sql, type Value } from "./sql.js";
import { isCollision, isConnectionLost, isSessionGone, toStoreError } from "./trouble.js";
import { type Leaving, UserTransaction } from "./user-transaction.js";

const usualPoolSize = 10;
/** A transaction that is tried so often is unlucky enough to be told. */
const attempts = 5;

export class Database implements Queryable {
  /** How long a statement may go unanswered; workers make it shorter. */
  readonly deadline: StatementDeadline;
  readonly #runtime: Runtime;
  readonly #driver: Driver;
  readonly #ours: Connections;
  readonly #users: Connections;
  readonly #onTrouble: StoreOptions["onTrouble"];
  readonly #reach: Reach;
  /** What is under way; `close` waits for it. */
  readonly #pending = new Set<Promise<unknown>>();
  /** Those that user code has open. */
  readonly #userTransactions = new Set<UserTransaction>();
  #closed = false;
  #isCutOff = false;
  /** For what only reads, with any connection. */
  readonly reader: Session = { run: (statements) => this.read(statements) };

  constructor(
    driver: Driver,
    uri: string,
    runtime: Runtime,
    onTrouble: StoreOptions["onTrouble"],
    pool: StoreOptions["pool"] = {},
  ) {
    this.deadline = new StatementDeadline(runtime);
    this.#runtime = runtime;
    this.#driver = driver;
    this.#onTrouble = onTrouble;
    this.#reach = new Reach((what) => {
      if (!this.#closed) onTrouble?.(what);
    });
    const { deadline } = this;
    const sessions = new ServerSessions(driver, uri, deadline, runtime);
    const common = { driver, uri, runtime, deadline, sessions };
    const { max = usualPoolSize, transactions = max } = pool;
    this.#ours = new Connections({ ...common, limit: max, multipleStatements: true, idleSeconds: 20 });
    this.#users = new Connections({ ...common, limit: transactions, multipleStatements: false, idleSeconds: 60 });
  }

  /** Statements that may be done twice: tried again when the connection turns out to be lost. */
  async read(statements: readonly Sql[]): Promise<readonly Result[]> {
    const run = (connection: Connection) => this.#packets(connection).run(statements);
    return this.#retried("read", () => this.#withConnection(run, isReadRetryable));
  }

  async query(text: string, values: readonly unknown[]): Promise<readonly SqlRow[]> {
    const statement = sql(text, values as readonly Value[]);
    if (!/^SELECT/i.test(text)) return (await this.write(statement))?.rows ?? [];
    return (await this.read([statement]))[0]?.rows ?? [];
  }

  /** A statement that commits by itself. Whether it was done is unknown when the answer is lost. */
  async write(statement: Sql): Promise<Result | undefined> {
    const run = (connection: Connection) => this.#packets(connection).run([statement]);
    return (await this.#retried("write", () => this.#withConnection(run, isCollision)))[0];
  }

  /**
   * Runs `work` in a transaction, again from the start when it collided with another or the connection was lost before
   * COMMIT was sent. `work` either commits or rolls back as its last act.
   */
  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.#retried("transaction", () => {
      let committing = false;
      const safe = (error: unknown) => isCollision(error) || (!committing && isConnectionLost(error));
      return this.#withConnection((connection) => {
        const session = this.#blocks(connection);
        let opening: readonly Sql[] = [begin];
        return work({
          run(statements) {
            const first = opening;
            opening = [];
            return session.run([...first, ...statements]).then((results) => results.slice(first.length));
          },
          async commit(statements) {
            const before = [...opening, ...statements];
            // One by one, COMMIT has not been sent before the others are answered; in a block it goes with them.
            const alone = connection.capabilities.hasBlocks ? [] : await session.run(before);
            committing = true;
            const rest = alone.length > 0 ? [commit] : [...before, commit];
            const together = await session.run(rest).catch((error: unknown) => {
              // An answer from the server: COMMIT was not reached.
              if (!isConnectionLost(error)) committing = false;
              throw error;
            });
            return [...alone, ...together].slice(opening.length, -1);
          },
          rollback: async () => void (await session.run([rollback])),
        });
      }, safe);
    });
  }

  /** A transaction for user code, on a connection that it has to itself until the transaction has ended. */
  async beginForUser(): Promise<UserTransaction> {
    return this.#retried("begin", async () => {
      const connection = await this.#take(this.#users);
      const onEnd = async (transaction: UserTransaction, leaving: Leaving) => {
        this.#userTransactions.delete(transaction);
        // The next transaction on the connection waits for the reset, this one does not.
        if (leaving === "clean") void this.#track(this.#users.giveReset(connection));
        // When the store closes, the server hears of it from the connection, and is not waited for.
        else if (leaving === "in use" && this.#closed) this.#users.drop(connection);
        else if (leaving === "in use") await this.#track(this.#users.discard(connection));
        else await this.#track(this.#users.giveUp(connection));
      };
      try {
        const transaction = await UserTransaction.begin(connection, this.#driver.escape, onEnd);
        this.#userTransactions.add(transaction);
        return transaction;
      } catch (error) {
        await this.#leave(this.#users, connection, error);
        throw isConnectionLost(error) ? new SafeToRetry(error) : error;
      }
    });
  }

  /** `close` waits for it. */
  untilDone<T>(work: Promise<T>): Promise<T> {
    return this.#track(work);
  }

  /** A session of one connection that lasts longer than a transaction: for the lock of migrations. */
  async exclusively<T>(work: (session: Session) => Promise<T>): Promise<T> {
    // A migration takes as long as it takes: there is no deadline.
    const run = ({ driver, maxPacket }: Connection) =>
      work(inPackets((text) => driver.query(text), { quote: this.#driver.escape, maxPacket }));
    return this.#retried("connect", () => this.#withConnection(run, () => false, true));
  }

  async close(): Promise<void> {
    this.#closed = true;
    // A server that has gone without a word would keep us here for as long as the network likes.
    const impatience = this.#runtime.setTimeout(() => {
      this.#isCutOff = true;
      for (const connections of [this.#ours, this.#users]) connections.cutOff();
    }, closingPatienceMs);
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
    this.#runtime.clearTimeout(impatience);
    // Transactions that user code has left open would keep us here for as long as it likes: they are not committed.
    await Promise.all([...this.#userTransactions].map((transaction) => transaction.abandon()));
    await Promise.all([this.#ours.close(), this.#users.close()]);
  }

  #packets({ ask, maxPacket }: Connection): Session {
    return inPackets(ask, { quote: this.#driver.escape, maxPacket });
  }

  #blocks({ ask, maxPacket, capabilities }: Connection): Session {
    return inBlocks(ask, { quote: this.#driver.escape, maxPacket, mayJoin: true, ...capabilities });
  }

  async #take(connections: Connections): Promise<Connection> {
    return connections.take().catch((error: unknown) => {
      throw isConnectionLost(error) ? new SafeToRetry(error) : error;
    });
  }

  /** Takes back a connection on which this error came. */
  async #leave(connections: Connections, connection: Connection, error: unknown): Promise<void> {
    if (error instanceof NoAnswerError) for (const some of [this.#ours, this.#users]) some.dropFree();
    if (!isConnectionLost(error)) {
      const rolledBack = connection.ask(rollback.text).then(() => connections.give(connection));
      await rolledBack.catch(() => connections.giveUp(connection));
    } else if (isSessionGone(error)) {
      connections.drop(connection);
    } else {
      await connections.giveUp(connection);
    }
  }

  /** Gives `work` a connection; afterwards it is clean and free again, or gone. */
  async #withConnection<T>(
    work: (connection: Connection) => Promise<T>,
    isSafe: (error: unknown) => boolean,
    dropAfterwards = false,
  ): Promise<T> {
    const connection = await this.#take(this.#ours);
    try {
      const result = await work(connection);
      if (dropAfterwards) this.#ours.drop(connection);
      else this.#ours.give(connection);
      return result;
    } catch (error) {
      if (dropAfterwards) this.#ours.drop(connection);
      else await this.#leave(this.#ours, connection, error);
      throw isSafe(error) ? new SafeToRetry(error) : error;
    }
  }

  async #retried<T>(what: string, once: () => Promise<T>): Promise<T> {
    if (this.#closed) throw new StoreError("The store is closed.", { transient: false });
    return this.#track(this.#retry(what, once));
  }

  async #retry<T>(what: string, once: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const { losses } = this.#reach;
      try {
        const result = await once();
        this.#reach.answered(losses);
        return result;
      } catch (error) {
        const cause = error instanceof SafeToRetry ? error.cause : error;
        const lost = isConnectionLost(cause);
        if (lost) this.#reach.lost(cause);
        if (!(error instanceof SafeToRetry) || attempt === attempts || this.#isCutOff) throw toStoreError(cause);
        if (!lost) this.#onTrouble?.(`mysql: ${what} is tried again (${attempt})`, cause);
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
class SafeToRetry extends Error {
  constructor(cause: unknown) {
    super("safe to retry", { cause });
  }
}
