/**
 * The connections, and what is tried again. The rule: a statement is repeated only when it is certain that nothing was
 * written, or when it writes nothing; a write whose answer was lost is reported, and the caller looks what became of it.
 */

import { StoreError } from "../../../core/errors/errors.js";
import type { Runtime } from "../../../runtime/runtime.js";
import { sleep } from "../../../runtime/wait.js";
import type { StoreOptions } from "../../contract/store.js";
import { Reach } from "../../shared/reachability.js";
import { StatementDeadline } from "../../shared/statement-deadline.js";
import type { SqlRow } from "../../sql/dialect.js";
import type { History } from "../history.js";
import type { PgClient, PgModule, PgPool, PgPoolClient, PgQuery, PgResult } from "./driver.js";
import {
  asThrown,
  isCollision,
  isConnectionLost,
  isGone,
  isNeverSent,
  isStalePlan,
  messageOf,
  toConnectError,
  toStoreError,
} from "./errors.js";
import { Pooling, sharesSessions } from "./pooling.js";
import { type Aim, meantFor, SameServer } from "./same-server.js";
import { isSessionOf, sessionSettings, setIf, transactionSettings } from "./session-settings.js";
import { Sessions, whoAmI } from "./sessions.js";
import { drop, Silence } from "./silence.js";
import { connectionConfig, connectionTimeoutMs, Sockets } from "./sockets.js";

type OnTrouble = (what: string, error?: unknown) => void;

/** Enough for a flush, a claim, a beat and reads at once; commits of one process go one after the other anyway. */
const usualPoolSize = 6;
const attempts = 8;

export interface DatabaseOptions {
  readonly runtime: Runtime;
  readonly pg: PgModule;
  readonly url: string;
  readonly onTrouble: OnTrouble;
  readonly pooled: boolean | "auto";
  /** What is said once when a pooler is noticed that nothing was said of. */
  readonly onPooler: (sign: string) => void;
  readonly pool: StoreOptions["pool"];
}

export class Database {
  readonly #pool: PgPool;
  readonly #transactions: PgPool;
  readonly #onTrouble: OnTrouble;
  readonly #runtime: Runtime;
  readonly reach: Reach;
  readonly deadline: StatementDeadline;
  readonly #sessions: Sessions;
  readonly #pooling: Pooling;
  readonly #sameServer: SameServer;
  #history: History | null = null;
  #whenPooled: (() => void) | null = null;
  readonly #silence: Silence;
  readonly #sockets = new Sockets();
  #closed = false;
  #isCutOff = false;

  constructor({ runtime, pg, url, onTrouble, pooled, onPooler, pool }: DatabaseOptions) {
    this.#runtime = runtime;
    this.#silence = new Silence(runtime);
    this.deadline = new StatementDeadline(runtime);
    this.#sameServer = new SameServer(runtime);
    this.#onTrouble = onTrouble;
    this.reach = new Reach((what) => {
      if (!this.#closed) onTrouble(what);
    });
    const rescueConfig = () => {
      // On a busy machine a connection takes its time, and a statement must not be given up for that.
      const patienceMs = Math.min(Math.max(this.deadline.ms, 5_000), connectionTimeoutMs);
      return { ...this.connectionConfig(url), connectionTimeoutMillis: patienceMs, query_timeout: patienceMs };
    };
    const openRescue = () => new pg.Client(rescueConfig());
    this.#sessions = new Sessions(openRescue, () => this.deadline.ms, runtime);
    this.#pooling = new Pooling(
      pooled,
      () => sharesSessions(openRescue),
      (sign) => {
        onPooler(sign);
        this.#whenPooled?.();
      },
    );
    const { max = usualPoolSize, transactions = max } = pool ?? {};
    this.#pool = this.#open(pg, url, sessionSettings, max);
    // No connection is opened before the first is asked for. Apart, so that user code cannot take the commits' places.
    this.#transactions = this.#open(pg, url, transactionSettings, transactions);
  }

  #open(pg: PgModule, url: string, settings: readonly string[], max: number): PgPool {
    const pool = new pg.Pool({
      ...this.connectionConfig(url),
      max,
      idleTimeoutMillis: 60_000,
      onConnect: async (client: PgClient) => {
        this.#silence.opened(client);
        await this.#setUp(client, settings);
        await this.#askForTheLast(client);
      },
    });
    // A connection that breaks while idle leaves the pool by itself; while it is used its query fails. Both also emit.
    pool.on("error", (error) => this.reach.lost(error));
    pool.on("connect", (client) => client.on("error", () => {}));
    return pool;
  }

  /** Whether a pooler may give each of our transactions another session of the server. */
  get isPooled(): boolean {
    return this.#pooling.isPooled;
  }

  /**
   * Settings are made only in a session that is certain to be ours: what is set in one that a pooler shares changes the
   * plans of other applications. The process id that a connection is given when it is opened tells, in the same round trip.
   */
  async #setUp(client: PgClient, settings: readonly string[]): Promise<void> {
    if (this.isPooled) return;
    const { isCertain } = this.#pooling;
    const set = isCertain ? settings.map((setting) => `SET ${setting}`) : [setIf(settings, isSessionOf(client))];
    const results = (await this.ask(client, { text: [...set, whoAmI].join("; ") })) as unknown as readonly PgResult[];
    const me = results.at(-1)?.rows[0];
    if (isCertain || Number(me?.pid) === client.processID) return this.#sessions.opened(client, me);
    await this.#pooling.decide();
    await this.#setUp(client, settings);
  }

  /** @param listener called when a pooler is noticed after this */
  whenPooled(listener: () => void): void {
    this.#whenPooled = listener;
  }

  /** @param history what a new connection is asked for before it is used */
  remember(history: History): void {
    this.#history = history;
  }

  async #askForTheLast(client: PgClient): Promise<void> {
    const question = this.#history?.question() ?? null;
    if (question === null) return;
    const there = await this.ask(client, question).then(
      ({ rows }) => rows[0]?.there === true,
      (error: unknown) => {
        if (isConnectionLost(error)) throw error;
        // Not an answer to the question; whatever is wrong will be told by the statement that the connection is for.
        return true;
      },
    );
    if (!there) this.#noteLoss();
  }

  #noteLoss(): void {
    this.#history?.wasLost();
    this.#onTrouble(
      "does not have what was written last: it is a restored copy, or a standby that was behind. Workers begin a new epoch, with the logs as they are.",
    );
  }

  /** To be noted before a fenced write, for `hasMissed`. */
  aim(): Aim {
    return this.#sameServer.aim();
  }

  /**
   * Whether a write that seemed to be refused by its fence may have met another server, or come too late. Then it can be
   * sent again. Never without a pooler.
   */
  async hasMissed(aim: Aim): Promise<boolean> {
    if (!this.isPooled) return false;
    const isLate = this.#sameServer.hasMissed(aim, this.deadline.ms);
    await this.lookAtServer();
    return isLate || this.#sameServer.hasMissed(aim, Number.POSITIVE_INFINITY);
  }

  /** Behind a pooler: asks which server answers now, and whether it has what was written last. */
  async lookAtServer(): Promise<void> {
    if (!this.isPooled) return;
    await this.transaction(async (run) => {
      const [row] = await run({ text: whoAmI });
      const question = this.#history?.question() ?? null;
      if (question !== null && (await run(question))[0]?.there !== true) this.#noteLoss();
      this.#sameServer.learn(row as SqlRow);
    });
  }

  /** Where this is, for people, and the schema that tables go to by default. */
  async describe(): Promise<{ readonly schema: string | null; readonly place: string }> {
    return this.#attempt(async (client) => {
      const { rows } = await this.ask(client, { text: "SELECT current_schema() AS schema" });
      if (this.isPooled) await this.#checkIsolation(client);
      const place = `${client.host ?? "localhost"}:${client.port ?? 5432}/${client.database ?? ""}`;
      return { schema: (rows[0]?.schema as string | null | undefined) ?? null, place };
    }, true);
  }

  /** Under another isolation level a statement that waited for a row fails, and is tried again. */
  async #checkIsolation(client: PgClient): Promise<void> {
    const { rows } = await this.ask(client, {
      text: "SELECT current_setting('default_transaction_isolation') AS level",
    });
    if (rows[0]?.level === "read committed") return;
    this.#onTrouble(
      `its default isolation is ${rows[0]?.level}, which cannot be changed through a pooler and slows Pawl down: ALTER ROLE … SET default_transaction_isolation = 'read committed'.`,
    );
  }

  /** Anything that writes nothing: tried again whatever happened to the connection. */
  async read(query: PgQuery, check?: () => void): Promise<readonly SqlRow[]> {
    return (await this.#attempt((client) => this.#send(client, query, check), true)).rows;
  }

  /**
   * One statement that is a transaction.
   *
   * @param check throws when it must not be sent any more; what a new connection was asked for may be the reason
   */
  async write(query: PgQuery, check?: () => void): Promise<readonly SqlRow[]> {
    return (await this.#attempt((client) => this.#send(client, query, check), false)).rows;
  }

  async #send(client: PgClient, query: PgQuery, check: (() => void) | undefined): Promise<PgResult> {
    check?.();
    return this.ask(client, query);
  }

  /** Several statements in one transaction; `work` may be called again when nothing of it was committed. */
  async transaction<T>(work: (run: (query: PgQuery) => Promise<readonly SqlRow[]>) => Promise<T>): Promise<T> {
    return this.#attempt(async (client) => {
      const run = async (query: PgQuery) => (await this.ask(client, query)).rows;
      await run({ text: this.isPooled ? "BEGIN ISOLATION LEVEL READ COMMITTED" : "BEGIN" });
      let result: T;
      try {
        result = await work(run);
      } catch (error) {
        if (!isConnectionLost(error)) await run({ text: "ROLLBACK" });
        throw error;
      }
      await run({ text: "COMMIT" });
      return result;
    }, false);
  }

  /** A connection with an open transaction that runs user code, and the answer to a question. The caller returns it. */
  async checkOut(question: string): Promise<{ readonly client: PgPoolClient; readonly answer: PgResult | undefined }> {
    for (let attempt = 1; ; attempt += 1) {
      const client = await this.#acquire(this.#transactions);
      try {
        const results = await this.#begin(client, question);
        if (this.isPooled) await this.#noteTransaction(client, results.at(-2)?.rows[0]);
        return { client, answer: results.at(-1) };
      } catch (error) {
        client.release(true);
        if (isConnectionLost(error)) this.reach.lost(error);
        if (attempt === attempts || !isConnectionLost(error)) throw toStoreError(error);
        await backOff(attempt, this.#runtime);
      }
    }
  }

  async #begin(client: PgClient, question: string): Promise<readonly PgResult[]> {
    const local = this.isPooled ? [...transactionSettings.map((setting) => `SET LOCAL ${setting}`), whoAmI] : [];
    const text = ["BEGIN ISOLATION LEVEL READ COMMITTED", ...local, question].join("; ");
    return (await this.ask(client, { text })) as unknown as readonly PgResult[];
  }

  /** A transaction keeps its session, so the server that has begun it is the one that will commit it. */
  async #noteTransaction(client: PgClient, me: SqlRow | undefined): Promise<void> {
    this.#sessions.began(client, me);
    if (!this.#sameServer.isSame(me)) await this.lookAtServer();
  }

  /** Takes back a connection of `checkOut` whose transaction has ended. */
  giveBack(client: PgPoolClient): void {
    if (this.isPooled) this.#sessions.ended(client);
    client.release();
  }

  /** One statement on one connection. Silence beyond the deadline is an error, and drops the connection. */
  ask(client: PgClient, query: PgQuery): Promise<PgResult> {
    return this.deadline.within(client.query(this.isPooled ? this.#unbound(client, query) : query), {
      isAtWork: () => this.#sessions.isAtWork(client),
      cut: () => this.#silence.found(client),
    });
  }

  /** As any session can execute it: without a name, and with what it is known by and meant for in its text. */
  #unbound(client: PgClient, { text, values }: PgQuery): PgQuery {
    const meant = this.#sameServer.condition(this.deadline.ms);
    const query = { text: `${this.#sessions.markOf(client)}${text.replace(meantFor, meant)}` };
    return values === undefined ? query : { ...query, values };
  }

  /** A connection on which something may be under way is given up. Returns when it cannot have any effect any more. */
  async giveUp(client: PgPoolClient): Promise<void> {
    this.#sessions.lost(client);
    drop(client);
    client.release(true);
    await this.#endLostSessions();
  }

  /** If that fails now, the next caller waits for it. */
  async #endLostSessions(): Promise<void> {
    if (this.#isCutOff) return;
    await this.#sessions.clear().catch((error: unknown) => this.reach.lost(error));
  }

  /** What all connections of a store have in common. */
  connectionConfig(url: string): Record<string, unknown> {
    return { ...connectionConfig(url), stream: () => this.#sockets.open() };
  }

  /** Whatever is still waiting for the server is told that it has gone. */
  cutOff(): void {
    this.#isCutOff = true;
    this.#sockets.destroyAll();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await Promise.all([this.#pool.end(), this.#transactions.end()]);
  }

  async #attempt<T>(work: (client: PgPoolClient) => Promise<T>, repeatable: boolean): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const client = await this.#acquire(this.#pool);
      const { losses } = this.reach;
      try {
        const result = await work(client);
        client.release();
        this.reach.answered(losses);
        return result;
      } catch (error) {
        const lost = isConnectionLost(error);
        if (lost && !isNeverSent(error) && !isGone(error)) await this.giveUp(client);
        else client.release(lost || isStalePlan(error));
        if (lost) this.reach.lost(error);
        const isPoolers = await this.#isPoolersDoing(error);
        const again =
          isPoolers || isCollision(error) || isStalePlan(error) || isNeverSent(error) || (lost && repeatable);
        if (!again || attempt === attempts || this.#isCutOff) throw asThrown(error);
        if (!lost && !isPoolers) this.#onTrouble("A statement is tried again.", error);
      }
      await backOff(attempt, this.#runtime);
    }
  }

  /** No user code runs on these connections: a prepared statement that is another's, or gone, was so behind a pooler. */
  async #isPoolersDoing(error: unknown): Promise<boolean> {
    if (!this.#pooling.isSign(error)) return false;
    this.#pooling.noticed(messageOf(error));
    await this.lookAtServer();
    return true;
  }

  /** Nothing has been sent yet, so this may be tried for a while: a server that restarts is back in a second or two. */
  async #acquire(pool: PgPool): Promise<PgPoolClient> {
    for (let attempt = 1; ; attempt += 1) {
      if (this.#isCutOff) throw new StoreError("The store is closed.", { transient: false, unreachable: true });
      try {
        if (!this.#sessions.isClear) await this.#sessions.clear();
        return await this.#silence.connect(pool);
      } catch (error) {
        const thrown = toConnectError(error);
        if (!(thrown instanceof StoreError) || !thrown.transient) throw thrown;
        this.reach.lost(error);
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
