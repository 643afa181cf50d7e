/** The composition root: opens the store that a URL names, and makes a `Pawl` of it. */

import * as crypto from "node:crypto";
import { existsSync } from "node:fs";
import { Client } from "./client/client.js";
import { type DatabaseInfo, readDatabase } from "./client/operate/database.js";
import { prune } from "./client/operate/prune.js";
import { InvalidInputError, MigrationError } from "./core/errors/errors.js";
import { checkOptions } from "./core/naming/check-options.js";
import { type Duration, parseDuration } from "./core/naming/duration.js";
import { setNativeSha256 } from "./core/naming/ids.js";
import { checkName } from "./core/naming/names.js";
import type { Logger } from "./define/context.js";
import type { ErrorReporter } from "./define/definition.js";
import type { Runtime } from "./runtime/runtime.js";
import { systemRuntime } from "./runtime/system.js";
import type { Store, StoreOptions } from "./store/contract/store.js";
import { checkConnectionOptions } from "./store/shared/connection-options.js";
import { checkPasswordEncoding, redactError } from "./store/shared/secrets.js";
import { defaultLogger } from "./telemetry/logger.js";
import { safeLogger } from "./telemetry/safe-logger.js";
import type { WorkerOptions } from "./worker/options.js";
import type { StoreAddress } from "./worker/watchdog/watchdog.js";
import { Worker } from "./worker/worker.js";

/** Options of `connect`. */
export interface ConnectOptions
  extends Pick<StoreOptions, "authToken" | "clock" | "notify" | "schema" | "pooled" | "listenUrl" | "pool"> {
  /**
   * The name of the application, which owns the schedules that its workers declare. Applications that share a database need
   * different names, or each retires the schedules of the other. Default: `"default"`.
   */
  readonly app?: string;
  /** Migrate the tables first; default true. With false, `connect` throws a `MigrationError` if migrations are pending. */
  readonly migrate?: boolean;
  /** `console`, pino, winston …; default: warnings and errors to the console. Every transition of a run is logged at level debug. */
  readonly logger?: Logger;
  /** Called with every exception in a step of any workflow: for an error tracker. */
  readonly onError?: ErrorReporter;
  /**
   * How long a run that a `PauseError` with `resumeOn` has paused waits for the signal before its step runs once more,
   * which may pause it again. A `recheckAfter` of the error itself takes precedence. Default 1 hour; `null`: for ever.
   */
  readonly recheckPausedAfter?: Duration | null;
  /** Workers delete runs that ended longer ago than this, at least a minute. Default: nothing is deleted. See `prune`. */
  readonly retention?: Duration;
}

const connectOptions = new Set<string>([
  "app",
  "authToken",
  "clock",
  "listenUrl",
  "logger",
  "migrate",
  "notify",
  "onError",
  "pool",
  "pooled",
  "recheckPausedAfter",
  "retention",
  "schema",
] satisfies (keyof ConnectOptions)[]);

/** The settings that `connect` passes to a Pawl, and the source of its clocks, timers and random numbers. */
interface PawlSettings {
  readonly app?: string | undefined;
  readonly onError?: ErrorReporter | undefined;
  readonly retention?: Duration | undefined;
  readonly recheckPausedAfter?: Duration | null | undefined;
  readonly runtime?: Runtime;
}

/**
 * Durable workflows on one database: starts and inspects runs, and makes the workers that execute them. `connect` returns
 * one.
 *
 * @example
 * ```ts
 * const pawl = await connect("postgres://localhost/app");
 * await pawl.worker({ workflows: [order] }).start();
 * const run = await pawl.start(order, { sku: "A-1" });
 * console.log(await run.result());
 * await pawl.close();
 * ```
 */
export class Pawl extends Client {
  readonly #workers = new Set<Worker>();

  readonly #onError: ErrorReporter | null;
  readonly #retentionMs: number | null;
  readonly #recheckPausedMs: number | null;
  readonly #app: string;

  /** Uses a store that is open already, such as one of your own; `connect` opens a store by its URL. */
  constructor(store: Store, logger?: Logger);
  /** @internal With all settings of `connect`. */
  constructor(store: Store, logger?: Logger, settings?: PawlSettings);
  constructor(store: Store, logger: Logger = defaultLogger, settings: PawlSettings = {}) {
    super(store, safeLogger(logger), settings.runtime ?? systemRuntime);
    const { onError = null, retention, recheckPausedAfter = defaultRecheck, app = defaultApp } = settings;
    this.#app = checkName("app", app);
    this.#onError = onError;
    this.#retentionMs = retention === undefined ? null : parseRetention(retention);
    this.#recheckPausedMs = parseRecheckAfter(recheckPausedAfter);
  }

  /** Where the data is, for display: "sqlite ./pawl.db". It contains no password. */
  get description(): string {
    return this.store.description;
  }

  /**
   * Makes a worker that executes these workflows. It takes runs once you call `start()`.
   *
   * @example
   * ```ts
   * const worker = pawl.worker({ workflows: [order], concurrency: 50 });
   * await worker.start();
   * ```
   */
  worker(options: WorkerOptions): Worker {
    const worker = new Worker(
      {
        runtime: this.runtime,
        store: this.store,
        log: this.log,
        tally: this.tally,
        newId: () => this.ids.next(),
        register: (definitions) => this.register(definitions),
        findRegistration: (name) => this.registration(name),
        onError: this.#onError,
        recheckPausedMs: this.#recheckPausedMs,
        // The watchdog's thread knows only the clock of the process, so it cannot watch a worker with another one.
        storeAddress: (this.runtime === systemRuntime ? watchdogAddresses.get(this.store) : undefined) ?? null,
        prune: this.#retentionMs === null ? null : this.#createPruner(this.#retentionMs),
        createSchedules: (definitions) => this.createWorkerSchedules(this.#app, definitions),
      },
      options,
    );
    this.#workers.add(worker);
    this.addAdopter(worker);
    return worker;
  }

  /**
   * Describes the database: its tables and their sizes, its migrations, the retention, and what `pawl doctor` finds. It
   * counts at most 10,000 rows of each table.
   */
  database(): Promise<DatabaseInfo> {
    const planned = [...this.#workers].flatMap(({ nextHousekeepingAt: at }) => (at === null ? [] : [at]));
    const nextHousekeepingAt = planned.length === 0 ? null : new Date(Math.min(...planned));
    return readDatabase(this.store, this.runtime, { retentionMs: this.#retentionMs, nextHousekeepingAt });
  }

  #createPruner(olderThan: number) {
    return (signal: AbortSignal) => prune(this.store, { olderThan, signal }, this.runtime);
  }

  /** Stops the workers of this Pawl, which may finish their running steps, and closes the connections to the database. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    await this.closeClient();
    await this.store.close();
  }
}

/**
 * Connects to a database and migrates its tables. Without arguments, the database is the SQLite file `./pawl.db`. A URL
 * that is undefined is refused, because it usually comes from an environment variable that is not set.
 *
 * URLs: `postgres://…` · `mysql://…` · `sqlite:path` · `sqlite::memory:` · `libsql:path` · `file:path` · `memory:` ·
 * `libsql://host` (Turso and other libSQL servers; also `https:`, `http:`, `wss:` and `ws:`)
 *
 * @example
 * ```ts
 * const pawl = await connect("sqlite:./pawl.db", { retention: "30 days" });
 * ```
 */
export function connect(url?: string, options?: ConnectOptions): Promise<Pawl>;
export async function connect(...args: [url?: string, options?: ConnectOptions]): Promise<Pawl> {
  const [url, options = {}] = args.length === 0 ? ["sqlite:./pawl.db"] : args;
  if (typeof url !== "string")
    throw new InvalidInputError(`connect was given ${String(url)}: is the environment variable set?`);
  checkOptions("connect()", options, connectOptions);
  if (options.retention !== undefined) parseRetention(options.retention);
  parseRecheckAfter(options.recheckPausedAfter ?? null);
  if (options.app !== undefined) checkName("app", options.app);
  const logger = safeLogger(options.logger ?? defaultLogger);
  const { authToken, clock, notify, schema, pooled, listenUrl, pool } = options;
  const runtime = systemRuntime;
  const store = await openStore(url, {
    runtime,
    ...withoutUndefined({ authToken, clock, notify, schema, pooled, listenUrl, pool }),
    onWarning: (text, ...error) => logger.warn(`Pawl's database: ${text}`, ...error),
  });
  try {
    await prepareTables(store, options.migrate ?? true);
  } catch (error) {
    await store.close();
    throw error;
  }
  const { app, onError, retention, recheckPausedAfter } = options;
  return new Pawl(store, logger, { app, onError, retention, recheckPausedAfter, runtime });
}

/** The address by which the watchdog's thread opens the same database. */
const watchdogAddresses = new WeakMap<Store, StoreAddress>();

/**
 * Returns null if only this thread can reach the database, or if the watchdog's program is not beside this file, as in
 * the sources and in bundles.
 */
function watchdogAddressOf(
  url: string,
  { clock, authToken, schema, pooled, listenUrl }: StoreOptions,
): StoreAddress | null {
  const moduleUrl: string | undefined = import.meta.url;
  // A CommonJS bundle does not know its own URL.
  if (moduleUrl === undefined || moduleUrl === "") return null;
  const program = new URL("./watchdog-thread.js", moduleUrl);
  if (clock !== undefined || /^memory:|:memory:$/.test(url)) return null;
  if (program.protocol !== "file:" || !existsSync(program)) return null;
  return { program, url, options: withoutUndefined({ authToken, schema, pooled, listenUrl }) };
}

/** Removes the keys whose value is undefined, because the compiler distinguishes them from missing keys. */
function withoutUndefined<T extends object>(options: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Key in keyof T]?: Exclude<T[Key], undefined> };
}

/** A very short retention is more likely a mistake than intended, and would delete runs whose callers still wait for them. */
function parseRetention(retention: Duration): number {
  const ms = parseDuration(retention, "retention");
  if (ms >= 60_000) return ms;
  throw new InvalidInputError(`The retention is at least a minute, not ${ms} ms; without one nothing is deleted.`);
}

const defaultRecheck = "1 hour";
const defaultApp = "default";

/** Each recheck writes a few events to the log of the run, so rechecks must not follow each other closely. */
function parseRecheckAfter(after: Duration | null): number | null {
  if (after === null) return null;
  const ms = parseDuration(after, "recheckPausedAfter");
  if (ms >= 1_000) return ms;
  throw new InvalidInputError(`recheckPausedAfter is at least a second, not ${ms} ms; null turns it off.`);
}

async function prepareTables(store: Store, migrate: boolean): Promise<void> {
  if (migrate) return store.migrate();
  const pendingVersions = await store.pendingMigrations();
  if (pendingVersions.length > 0)
    throw new MigrationError(
      `The database lacks migration(s) ${pendingVersions.join(", ")}. Connect once with { migrate: true }.`,
    );
}

/** Opens the store that the URL names. Its errors never contain the password or the token. */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  try {
    const store = await openByScheme(url, options);
    const address = watchdogAddressOf(url, options);
    if (address !== null) watchdogAddresses.set(store, address);
    return store;
  } catch (error) {
    throw redactError(url, error, options.authToken);
  }
}

/**
 * The schemes that accept `authToken`. A local file needs no token, but the same code may open a file in development
 * and a server in production.
 */
const libsqlSchemes = new Set(["libsql", "file", "https", "http", "wss", "ws"]);

/** Each store is imported only when a URL names it, because its driver may not be installed. */
async function openByScheme(url: string, options: StoreOptions): Promise<Store> {
  const scheme = /^([a-z+]+):/i.exec(url)?.[1]?.toLowerCase();
  if (options.schema !== undefined) checkSchema(scheme ?? "");
  checkConnectionOptions(scheme, options);
  if (options.authToken !== undefined && scheme !== undefined && !libsqlSchemes.has(scheme)) {
    throw new InvalidInputError(`authToken is for libSQL servers such as libsql://name.turso.io, not for ${scheme}:.`);
  }
  switch (scheme) {
    case "memory":
      return new (await import("./store/memory/index.js")).MemoryStore(options);
    case "sqlite":
      return (await import("./store/sqlite/index.js")).openSqlite(url, options);
    case "libsql":
    case "file":
    case "https":
    case "http":
    case "wss":
    case "ws":
      return (await import("./store/libsql/index.js")).openLibsql(url, options);
    case "postgres":
    case "postgresql":
      checkPasswordEncoding(url);
      return (await import("./store/postgres/index.js")).openPostgres(url, options);
    case "mysql":
    case "mariadb":
      checkPasswordEncoding(url);
      return (await import("./store/mysql/index.js")).openMysql(url, options);
    default:
      throw new InvalidInputError(
        `"${redactUrl(url, scheme)}" is not a database URL that Pawl knows. Examples: sqlite:./pawl.db, postgres://localhost/app, mysql://localhost/app, libsql://name.turso.io, memory:`,
      );
  }
}

/**
 * Throws if the database does not support the option `schema`. If the option were ignored, two tenants with different
 * schemas would share the same tables.
 */
function checkSchema(scheme: string): void {
  const alternative = schemaAlternatives.get(scheme);
  if (alternative !== undefined)
    throw new InvalidInputError(`The option "schema" is for PostgreSQL alone; with ${scheme}: ${alternative}.`);
}

const otherDatabase = "name another database in the URL";
const otherFile = "use another file";
const schemaAlternatives = new Map([
  ["mysql", otherDatabase],
  ["mariadb", otherDatabase],
  ["sqlite", otherFile],
  ["libsql", otherFile],
  ["file", otherFile],
  ["memory", "leave it out: every memory store is separate"],
]);

/**
 * Returns what an error may show of a URL with an unknown scheme: only the scheme, because any other part may be a
 * password.
 */
function redactUrl(url: string, scheme: string | undefined): string {
  if (scheme !== undefined) return `${scheme}:…`;
  return /^[\w./\\ -]{0,200}$/.test(url) ? url : "…";
}

/** Node has `hash` since 20.12. It takes a third of the time of Pawl's own SHA-256 in JavaScript. */
const { hash } = crypto as { readonly hash?: (algorithm: string, data: string) => string };
setNativeSha256((text) =>
  hash === undefined ? crypto.createHash("sha256").update(text).digest("hex") : hash("sha256", text),
);
