/**
 * The connections to PostgreSQL, and retries. A statement is repeated only when it certainly wrote nothing, or when
 * executing it twice does no harm. If the answer to a write is lost, the caller gets an error and must find out itself
 * whether the write took effect.
 */

import { StoreError } from "../../../core/errors/errors.js";
import type { Runtime } from "../../../runtime/runtime.js";
import { sleep } from "../../../runtime/wait.js";
import type { StoreOptions } from "../../contract/store.js";
import { ServerReachability } from "../../shared/reachability.js";
import { StatementDeadline } from "../../shared/statement-deadline.js";
import type { SqlRow } from "../../sql/dialect.js";
import type { LostWriteDetector } from "../lost-write-detector.js";
import type { PgClient, PgModule, PgPool, PgPoolClient, PgQuery, PgResult } from "./driver.js";
import {
  isConnectionLost,
  isRetryableConflict,
  isSessionTerminated,
  isStalePlan,
  messageOf,
  toConnectError,
  toStoreError,
  toStoreErrorUnlessDuplicate,
  wasNeverSent,
} from "./errors.js";
import { PoolerDetector, sharesSessions } from "./pooler-detector.js";
import { ServerIdentity, serverConditionMarker, type WriteTarget } from "./server-identity.js";
import { ServerSessions, sessionIdentityQuery } from "./server-sessions.js";
import {
  idleInTransactionTimeout,
  isSessionOf,
  sessionSettings,
  setConfigIf,
  transactionSettings,
} from "./session-settings.js";
import { destroySocket, SilentConnections } from "./silent-connections.js";
import { connectionConfig, connectionTimeoutMs, Sockets } from "./sockets.js";

type OnWarning = (message: string, error?: unknown) => void;

/** Enough for a commit, a claim, a heartbeat and reads at once; one process commits one batch after another. */
const defaultPoolSize = 6;
const maxAttempts = 8;
/** Behind a pooler, a session has no settings of this connection. */
const pooledBegin = `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL ${idleInTransactionTimeout}`;

export interface DatabaseOptions {
  readonly runtime: Runtime;
  readonly pg: PgModule;
  readonly url: string;
  readonly onWarning: OnWarning;
  readonly pooled: boolean | "auto";
  /** Called once when a pooler is detected that the options did not announce. */
  readonly onPoolerDetected: (sign: string) => void;
  readonly pool: StoreOptions["pool"];
}

export class Database {
  readonly #pool: PgPool;
  readonly #transactionPool: PgPool;
  readonly #onWarning: OnWarning;
  readonly #runtime: Runtime;
  readonly reachability: ServerReachability;
  readonly deadline: StatementDeadline;
  readonly #sessions: ServerSessions;
  readonly #poolerDetector: PoolerDetector;
  readonly #serverIdentity: ServerIdentity;
  #lostWriteDetector: LostWriteDetector | null = null;
  #onPoolerDetected: (() => void) | null = null;
  readonly #silentConnections: SilentConnections;
  readonly #sockets = new Sockets();
  #isClosed = false;
  #isCutOff = false;

  constructor({ runtime, pg, url, onWarning, pooled, onPoolerDetected, pool }: DatabaseOptions) {
    this.#runtime = runtime;
    this.#silentConnections = new SilentConnections(runtime);
    this.deadline = new StatementDeadline(runtime);
    this.#serverIdentity = new ServerIdentity(runtime);
    this.#onWarning = onWarning;
    this.reachability = new ServerReachability((message) => {
      if (!this.#isClosed) onWarning(message);
    });
    const sideConnectionConfig = () => {
      // Connecting can be slow on a busy machine, and that must not make a running statement count as lost.
      const timeoutMs = Math.min(Math.max(this.deadline.ms, 5_000), connectionTimeoutMs);
      return { ...this.connectionConfig(url), connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs };
    };
    const openSideConnection = () => new pg.Client(sideConnectionConfig());
    this.#sessions = new ServerSessions(openSideConnection, () => this.deadline.ms, runtime);
    this.#poolerDetector = new PoolerDetector(
      pooled,
      () => sharesSessions(openSideConnection),
      (sign) => {
        onPoolerDetected(sign);
        this.#onPoolerDetected?.();
      },
    );
    const { max = defaultPoolSize, transactions = max } = pool ?? {};
    this.#pool = this.#openPool(pg, url, sessionSettings, max);
    // User code has a separate pool, so that it cannot use up the connections for commits.
    this.#transactionPool = this.#openPool(pg, url, transactionSettings, transactions);
  }

  #openPool(pg: PgModule, url: string, settings: readonly string[], max: number): PgPool {
    const pool = new pg.Pool({
      ...this.connectionConfig(url),
      max,
      idleTimeoutMillis: 60_000,
      onConnect: async (client: PgClient) => {
        this.#silentConnections.recordOpened(client);
        await this.#configureSession(client, settings);
        await this.#checkLastWrite(client);
      },
    });
    // A broken connection emits an error event, which needs a listener: an idle connection emits it on the pool, which
    // drops the connection; a busy one emits it on the client, whose query fails as well.
    pool.on("error", (error) => this.reachability.recordFailure(error));
    pool.on("connect", (client) => client.on("error", () => {}));
    return pool;
  }

  /** Whether a pooler may execute each transaction of a connection in another session of the server. */
  get isPooled(): boolean {
    return this.#poolerDetector.isPooled;
  }

  /**
   * Changes settings only in a session that belongs to this connection alone: in a session that a pooler shares, they
   * would change the plans of other applications. The session is the connection's own if it has the process id that the
   * connection got when it was opened.
   */
  async #configureSession(client: PgClient, settings: readonly string[]): Promise<void> {
    if (this.isPooled) return;
    const { isCertain } = this.#poolerDetector;
    const setStatements = isCertain
      ? settings.map((setting) => `SET ${setting}`)
      : [setConfigIf(settings, isSessionOf(client))];
    const results = (await this.sendQuery(client, {
      text: [...setStatements, sessionIdentityQuery].join("; "),
    })) as unknown as readonly PgResult[];
    const sessionRow = results.at(-1)?.rows[0];
    if (isCertain || Number(sessionRow?.pid) === client.processID)
      return this.#sessions.recordSession(client, sessionRow);
    await this.#poolerDetector.detect();
    await this.#configureSession(client, settings);
  }

  /** @param listener called when a pooler is detected later */
  onPoolerDetected(listener: () => void): void {
    this.#onPoolerDetected = listener;
  }

  /** From now on, each new connection is checked for the last write before it is used. */
  setLostWriteDetector(detector: LostWriteDetector): void {
    this.#lostWriteDetector = detector;
  }

  async #checkLastWrite(client: PgClient): Promise<void> {
    const lastWriteQuery = this.#lostWriteDetector?.lastWriteQuery() ?? null;
    if (lastWriteQuery === null) return;
    const isPresent = await this.sendQuery(client, lastWriteQuery).then(
      ({ rows }) => rows[0]?.is_present === true,
      (error: unknown) => {
        if (isConnectionLost(error)) throw error;
        // Any other error does not prove a lost write; the statement that the connection is opened for reports the problem.
        return true;
      },
    );
    if (!isPresent) this.#reportLostWrites();
  }

  #reportLostWrites(): void {
    this.#lostWriteDetector?.recordLoss();
    this.#onWarning(
      "does not have the last write of this process: it is a restored copy, or a standby that was behind. Workers register again and continue from the logs as they are.",
    );
  }

  /** Callers read this before a fenced write, and pass it to `mayHaveMissed`. */
  currentTarget(): WriteTarget {
    return this.#serverIdentity.currentTarget();
  }

  /**
   * Whether a write that looks fenced may instead have reached another server or arrived too late, and can be sent
   * again. Always false without a pooler.
   */
  async mayHaveMissed(target: WriteTarget): Promise<boolean> {
    if (!this.isPooled) return false;
    const isLate = this.#serverIdentity.mayHaveMissed(target, this.deadline.ms);
    await this.checkServer();
    return isLate || this.#serverIdentity.mayHaveMissed(target, Number.POSITIVE_INFINITY);
  }

  /** Behind a pooler: records which server answers now, and checks that it has the last write. */
  async checkServer(): Promise<void> {
    if (!this.isPooled) return;
    await this.transaction(async (execute) => {
      const [row] = await execute({ text: sessionIdentityQuery });
      const lastWriteQuery = this.#lostWriteDetector?.lastWriteQuery() ?? null;
      if (lastWriteQuery !== null && (await execute(lastWriteQuery))[0]?.is_present !== true) this.#reportLostWrites();
      this.#serverIdentity.recordServer(row as SqlRow);
    });
  }

  /** The server's address for display, and the schema in which tables are created by default. */
  async describe(): Promise<{ readonly schema: string | null; readonly address: string }> {
    return this.#withRetries(async (client) => {
      const { rows } = await this.sendQuery(client, { text: "SELECT current_schema() AS schema" });
      if (this.isPooled) await this.#checkIsolation(client);
      const address = `${client.host ?? "localhost"}:${client.port ?? 5432}/${client.database ?? ""}`;
      return { schema: (rows[0]?.schema as string | null | undefined) ?? null, address };
    }, true);
  }

  /** Warns if the level is not READ COMMITTED: a statement that waited for a row would then fail and be retried. */
  async #checkIsolation(client: PgClient): Promise<void> {
    const { rows } = await this.sendQuery(client, {
      text: "SELECT current_setting('default_transaction_isolation') AS level",
    });
    if (rows[0]?.level === "read committed") return;
    this.#onWarning(
      `the default isolation level is ${rows[0]?.level}, which slows Pawl down and cannot be changed through a pooler: run ALTER ROLE … SET default_transaction_isolation = 'read committed'.`,
    );
  }

  /** For a statement that does no harm when executed twice: it is retried whatever happened to the connection. */
  async read(query: PgQuery, assertStillValid?: () => void): Promise<readonly SqlRow[]> {
    return (await this.#withRetries((client) => this.#send(client, query, assertStillValid), true)).rows;
  }

  /**
   * Executes one statement as a transaction of its own.
   *
   * @param assertStillValid called before each attempt; throws when the statement must not be sent any more, for
   * example because a new connection has revealed lost writes
   */
  async write(query: PgQuery, assertStillValid?: () => void): Promise<readonly SqlRow[]> {
    return (await this.#withRetries((client) => this.#send(client, query, assertStillValid), false)).rows;
  }

  async #send(client: PgClient, query: PgQuery, assertStillValid: (() => void) | undefined): Promise<PgResult> {
    assertStillValid?.();
    return this.sendQuery(client, query);
  }

  /** Runs several statements in one transaction. `work` may be called again if nothing of it was committed. */
  async transaction<T>(work: (execute: (query: PgQuery) => Promise<readonly SqlRow[]>) => Promise<T>): Promise<T> {
    return this.#withRetries(async (client) => {
      const execute = async (query: PgQuery) => (await this.sendQuery(client, query)).rows;
      await execute({ text: this.isPooled ? pooledBegin : "BEGIN" });
      let result: T;
      try {
        result = await work(execute);
      } catch (error) {
        if (!isConnectionLost(error)) await execute({ text: "ROLLBACK" });
        throw error;
      }
      await execute({ text: "COMMIT" });
      return result;
    }, false);
  }

  /** Begins a transaction for user code. The caller gives the connection to `returnConnection` or discards it. */
  async checkOut(
    firstStatement: string,
  ): Promise<{ readonly client: PgPoolClient; readonly firstResult: PgResult | undefined }> {
    for (let attempt = 1; ; attempt += 1) {
      const client = await this.#acquire(this.#transactionPool);
      try {
        const results = await this.#begin(client, firstStatement);
        if (this.isPooled) await this.#recordTransaction(client, results.at(-2)?.rows[0]);
        return { client, firstResult: results.at(-1) };
      } catch (error) {
        client.release(true);
        if (isConnectionLost(error)) this.reachability.recordFailure(error);
        if (attempt === maxAttempts || !isConnectionLost(error)) throw toStoreError(error);
        await backOff(attempt, this.#runtime);
      }
    }
  }

  async #begin(client: PgClient, firstStatement: string): Promise<readonly PgResult[]> {
    const localStatements = this.isPooled
      ? [...transactionSettings.map((setting) => `SET LOCAL ${setting}`), sessionIdentityQuery]
      : [];
    const text = ["BEGIN ISOLATION LEVEL READ COMMITTED", ...localStatements, firstStatement].join("; ");
    return (await this.sendQuery(client, { text })) as unknown as readonly PgResult[];
  }

  /** Behind a pooler a transaction keeps its session, so the server that began it will also commit it. */
  async #recordTransaction(client: PgClient, sessionRow: SqlRow | undefined): Promise<void> {
    this.#sessions.recordTransaction(client, sessionRow);
    if (!this.#serverIdentity.isSameServer(sessionRow)) await this.checkServer();
  }

  /** Takes back a connection of `checkOut` whose transaction has ended. */
  returnConnection(client: PgPoolClient): void {
    if (this.isPooled) this.#sessions.forgetSession(client);
    client.release();
  }

  /** Sends one statement. If no answer arrives within the deadline, the call rejects and drops the connection. */
  sendQuery(client: PgClient, query: PgQuery): Promise<PgResult> {
    return this.deadline.within(client.query(this.isPooled ? this.#withoutSessionState(client, query) : query), {
      isExecuting: () => this.#sessions.isExecuting(client),
      dropConnection: () => this.#silentConnections.markSilent(client),
    });
  }

  /** A query that any session can execute: without a name, with the connection's mark and the server condition. */
  #withoutSessionState(client: PgClient, { text, values }: PgQuery): PgQuery {
    const serverCondition = this.#serverIdentity.serverCondition(this.deadline.ms);
    const query = { text: `${this.#sessions.markOf(client)}${text.replace(serverConditionMarker, serverCondition)}` };
    return values === undefined ? query : { ...query, values };
  }

  /** Drops a connection on which a statement may be running. Resolves when that statement can have no more effect. */
  async discardConnection(client: PgPoolClient): Promise<void> {
    this.#sessions.recordLost(client);
    destroySocket(client);
    client.release(true);
    await this.#endLostSessions();
  }

  /** If the sessions cannot be ended now, the next use of a connection tries again. */
  async #endLostSessions(): Promise<void> {
    if (this.#isCutOff) return;
    await this.#sessions.ensureLostEnded().catch((error: unknown) => this.reachability.recordFailure(error));
  }

  /** The configuration that all connections of a store share. */
  connectionConfig(url: string): Record<string, unknown> {
    return { ...connectionConfig(url), stream: () => this.#sockets.open() };
  }

  /** Destroys all sockets, so that everything that waits for the server fails at once. */
  destroyConnections(): void {
    this.#isCutOff = true;
    this.#sockets.destroyAll();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.all([this.#pool.end(), this.#transactionPool.end()]);
  }

  async #withRetries<T>(work: (client: PgPoolClient) => Promise<T>, isRepeatable: boolean): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const client = await this.#acquire(this.#pool);
      const { failureCount } = this.reachability;
      try {
        const result = await work(client);
        client.release();
        this.reachability.recordAnswer(failureCount);
        return result;
      } catch (error) {
        const isLost = isConnectionLost(error);
        if (isLost && !wasNeverSent(error) && !isSessionTerminated(error)) await this.discardConnection(client);
        else client.release(isLost || isStalePlan(error));
        if (isLost) this.reachability.recordFailure(error);
        const isCausedByPooler = await this.#isCausedByPooler(error);
        const shouldRetry =
          isCausedByPooler ||
          isRetryableConflict(error) ||
          isStalePlan(error) ||
          wasNeverSent(error) ||
          (isLost && isRepeatable);
        if (!shouldRetry || attempt === maxAttempts || this.#isCutOff) throw toStoreErrorUnlessDuplicate(error);
        if (!isLost && !isCausedByPooler) this.#onWarning("A statement failed and is retried.", error);
      }
      await backOff(attempt, this.#runtime);
    }
  }

  /** No user code runs on these connections, so a prepared statement that is missing or differs proves a pooler. */
  async #isCausedByPooler(error: unknown): Promise<boolean> {
    if (!this.#poolerDetector.isPoolerError(error)) return false;
    this.#poolerDetector.markPooled(messageOf(error));
    await this.checkServer();
    return true;
  }

  /** Retries, because no statement has been sent yet and a restarting server answers again within a second or two. */
  async #acquire(pool: PgPool): Promise<PgPoolClient> {
    for (let attempt = 1; ; attempt += 1) {
      if (this.#isCutOff) throw new StoreError("The store is closed.", { transient: false, unreachable: true });
      try {
        if (!this.#sessions.haveLostEnded) await this.#sessions.ensureLostEnded();
        return await this.#silentConnections.connect(pool);
      } catch (error) {
        const storeError = toConnectError(error);
        if (!(storeError instanceof StoreError) || !storeError.transient) throw storeError;
        this.reachability.recordFailure(error);
        if (attempt >= 4) throw storeError;
      }
      await backOff(attempt + 3, this.#runtime);
    }
  }
}

/** 10 ms, 20 ms, 40 ms … up to a second, with jitter, so that transactions that collided do not collide again. */
async function backOff(attempt: number, runtime: Runtime): Promise<void> {
  await sleep(runtime, Math.min(5 * 2 ** attempt, 1_000) * (0.5 + runtime.random()));
}
