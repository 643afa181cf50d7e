/**
 * The connections, and what is tried again. The rule: a statement is repeated only when it is certain that nothing was
 * written, or when it writes nothing; a write whose answer was lost is reported, and the caller looks what became of it.
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
import { isSessionOf, sessionSettings, setConfigIf, transactionSettings } from "./session-settings.js";
import { destroySocket, SilentConnections } from "./silent-connections.js";
import { connectionConfig, connectionTimeoutMs, Sockets } from "./sockets.js";

type OnWarning = (what: string, error?: unknown) => void;

/** Enough for a flush, a claim, a beat and reads at once; commits of one process go one after the other anyway. */
const defaultPoolSize = 6;
const maxAttempts = 8;

export interface DatabaseOptions {
  readonly runtime: Runtime;
  readonly pg: PgModule;
  readonly url: string;
  readonly onWarning: OnWarning;
  readonly pooled: boolean | "auto";
  /** What is said once when a pooler is noticed that nothing was said of. */
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
    this.reachability = new ServerReachability((what) => {
      if (!this.#isClosed) onWarning(what);
    });
    const sideConnectionConfig = () => {
      // On a busy machine a connection takes its time, and a statement must not be given up for that.
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
    // No connection is opened before the first is asked for. Apart, so that user code cannot take the commits' places.
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
    // A connection that breaks while idle leaves the pool by itself; while it is used its query fails. Both also emit.
    pool.on("error", (error) => this.reachability.recordFailure(error));
    pool.on("connect", (client) => client.on("error", () => {}));
    return pool;
  }

  /** Whether a pooler may give each of our transactions another session of the server. */
  get isPooled(): boolean {
    return this.#poolerDetector.isPooled;
  }

  /**
   * Settings are made only in a session that is certain to be ours: what is set in one that a pooler shares changes the
   * plans of other applications. The process id that a connection is given when it is opened tells, in the same round trip.
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

  /** @param listener called when a pooler is noticed after this */
  onPoolerDetected(listener: () => void): void {
    this.#onPoolerDetected = listener;
  }

  /** @param history what a new connection is asked for before it is used */
  setLostWriteDetector(history: LostWriteDetector): void {
    this.#lostWriteDetector = history;
  }

  async #checkLastWrite(client: PgClient): Promise<void> {
    const lastWriteQuery = this.#lostWriteDetector?.lastWriteQuery() ?? null;
    if (lastWriteQuery === null) return;
    const isPresent = await this.sendQuery(client, lastWriteQuery).then(
      ({ rows }) => rows[0]?.there === true,
      (error: unknown) => {
        if (isConnectionLost(error)) throw error;
        // Not an answer to the question; whatever is wrong will be told by the statement that the connection is for.
        return true;
      },
    );
    if (!isPresent) this.#reportLostWrites();
  }

  #reportLostWrites(): void {
    this.#lostWriteDetector?.recordLoss();
    this.#onWarning(
      "does not have what was written last: it is a restored copy, or a standby that was behind. Workers begin a new epoch, with the logs as they are.",
    );
  }

  /** To be noted before a fenced write, for `hasMissed`. */
  currentTarget(): WriteTarget {
    return this.#serverIdentity.currentTarget();
  }

  /**
   * Whether a write that seemed to be refused by its fence may have met another server, or come too late. Then it can be
   * sent again. Never without a pooler.
   */
  async mayHaveMissed(target: WriteTarget): Promise<boolean> {
    if (!this.isPooled) return false;
    const isLate = this.#serverIdentity.mayHaveMissed(target, this.deadline.ms);
    await this.checkServer();
    return isLate || this.#serverIdentity.mayHaveMissed(target, Number.POSITIVE_INFINITY);
  }

  /** Behind a pooler: asks which server answers now, and whether it has what was written last. */
  async checkServer(): Promise<void> {
    if (!this.isPooled) return;
    await this.transaction(async (execute) => {
      const [row] = await execute({ text: sessionIdentityQuery });
      const lastWriteQuery = this.#lostWriteDetector?.lastWriteQuery() ?? null;
      if (lastWriteQuery !== null && (await execute(lastWriteQuery))[0]?.there !== true) this.#reportLostWrites();
      this.#serverIdentity.recordServer(row as SqlRow);
    });
  }

  /** Where this is, for people, and the schema that tables go to by default. */
  async describe(): Promise<{ readonly schema: string | null; readonly address: string }> {
    return this.#withRetries(async (client) => {
      const { rows } = await this.sendQuery(client, { text: "SELECT current_schema() AS schema" });
      if (this.isPooled) await this.#checkIsolation(client);
      const address = `${client.host ?? "localhost"}:${client.port ?? 5432}/${client.database ?? ""}`;
      return { schema: (rows[0]?.schema as string | null | undefined) ?? null, address };
    }, true);
  }

  /** Under another isolation level a statement that waited for a row fails, and is tried again. */
  async #checkIsolation(client: PgClient): Promise<void> {
    const { rows } = await this.sendQuery(client, {
      text: "SELECT current_setting('default_transaction_isolation') AS level",
    });
    if (rows[0]?.level === "read committed") return;
    this.#onWarning(
      `its default isolation is ${rows[0]?.level}, which cannot be changed through a pooler and slows Pawl down: ALTER ROLE … SET default_transaction_isolation = 'read committed'.`,
    );
  }

  /** Anything that writes nothing: tried again whatever happened to the connection. */
  async read(query: PgQuery, assertStillValid?: () => void): Promise<readonly SqlRow[]> {
    return (await this.#withRetries((client) => this.#send(client, query, assertStillValid), true)).rows;
  }

  /**
   * One statement that is a transaction.
   *
   * @param assertStillValid throws when it must not be sent any more; what a new connection was asked for may be the reason
   */
  async write(query: PgQuery, assertStillValid?: () => void): Promise<readonly SqlRow[]> {
    return (await this.#withRetries((client) => this.#send(client, query, assertStillValid), false)).rows;
  }

  async #send(client: PgClient, query: PgQuery, assertStillValid: (() => void) | undefined): Promise<PgResult> {
    assertStillValid?.();
    return this.sendQuery(client, query);
  }

  /** Several statements in one transaction; `work` may be called again when nothing of it was committed. */
  async transaction<T>(work: (execute: (query: PgQuery) => Promise<readonly SqlRow[]>) => Promise<T>): Promise<T> {
    return this.#withRetries(async (client) => {
      const execute = async (query: PgQuery) => (await this.sendQuery(client, query)).rows;
      await execute({ text: this.isPooled ? "BEGIN ISOLATION LEVEL READ COMMITTED" : "BEGIN" });
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

  /** A connection with an open transaction that runs user code, and the answer to a question. The caller returns it. */
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

  /** A transaction keeps its session, so the server that has begun it is the one that will commit it. */
  async #recordTransaction(client: PgClient, sessionRow: SqlRow | undefined): Promise<void> {
    this.#sessions.recordTransaction(client, sessionRow);
    if (!this.#serverIdentity.isSameServer(sessionRow)) await this.checkServer();
  }

  /** Takes back a connection of `checkOut` whose transaction has ended. */
  returnConnection(client: PgPoolClient): void {
    if (this.isPooled) this.#sessions.forgetSession(client);
    client.release();
  }

  /** One statement on one connection. Silence beyond the deadline is an error, and drops the connection. */
  sendQuery(client: PgClient, query: PgQuery): Promise<PgResult> {
    return this.deadline.within(client.query(this.isPooled ? this.#withoutSessionState(client, query) : query), {
      isExecuting: () => this.#sessions.isExecuting(client),
      dropConnection: () => this.#silentConnections.markSilent(client),
    });
  }

  /** As any session can execute it: without a name, and with what it is known by and meant for in its text. */
  #withoutSessionState(client: PgClient, { text, values }: PgQuery): PgQuery {
    const serverCondition = this.#serverIdentity.serverCondition(this.deadline.ms);
    const query = { text: `${this.#sessions.markOf(client)}${text.replace(serverConditionMarker, serverCondition)}` };
    return values === undefined ? query : { ...query, values };
  }

  /** A connection on which something may be under way is given up. Returns when it cannot have any effect any more. */
  async discardConnection(client: PgPoolClient): Promise<void> {
    this.#sessions.recordLost(client);
    destroySocket(client);
    client.release(true);
    await this.#endLostSessions();
  }

  /** If that fails now, the next caller waits for it. */
  async #endLostSessions(): Promise<void> {
    if (this.#isCutOff) return;
    await this.#sessions.ensureLostEnded().catch((error: unknown) => this.reachability.recordFailure(error));
  }

  /** What all connections of a store have in common. */
  connectionConfig(url: string): Record<string, unknown> {
    return { ...connectionConfig(url), stream: () => this.#sockets.open() };
  }

  /** Whatever is still waiting for the server is told that it has gone. */
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
        if (!isLost && !isCausedByPooler) this.#onWarning("A statement is tried again.", error);
      }
      await backOff(attempt, this.#runtime);
    }
  }

  /** No user code runs on these connections: a prepared statement that is another's, or gone, was so behind a pooler. */
  async #isCausedByPooler(error: unknown): Promise<boolean> {
    if (!this.#poolerDetector.isPoolerError(error)) return false;
    this.#poolerDetector.markPooled(messageOf(error));
    await this.checkServer();
    return true;
  }

  /** Nothing has been sent yet, so this may be tried for a while: a server that restarts is back in a second or two. */
  async #acquire(pool: PgPool): Promise<PgPoolClient> {
    for (let attempt = 1; ; attempt += 1) {
      if (this.#isCutOff) throw new StoreError("The store is closed.", { transient: false, unreachable: true });
      try {
        if (!this.#sessions.haveLostEnded) await this.#sessions.ensureLostEnded();
        return await this.#silentConnections.connect(pool);
      } catch (error) {
        const thrown = toConnectError(error);
        if (!(thrown instanceof StoreError) || !thrown.transient) throw thrown;
        this.reachability.recordFailure(error);
        if (attempt >= 4) throw thrown;
      }
      await backOff(attempt + 3, this.#runtime);
    }
  }
}

/** 5 ms, 10, 20 … and as much again by chance, so that those who collided do not meet again. */
async function backOff(attempt: number, runtime: Runtime): Promise<void> {
  await sleep(runtime, Math.min(5 * 2 ** attempt, 1_000) * (0.5 + runtime.random()));
}
