/** The composition root: a URL becomes a store, a store becomes Pawl. */

import * as crypto from "node:crypto";
import { existsSync } from "node:fs";
import { Client } from "./client/client.js";
import { prune } from "./client/operate/prune.js";
import { InvalidInputError, MigrationError } from "./core/errors/errors.js";
import { checkOptions } from "./core/naming/check-options.js";
import { type Duration, parseDuration } from "./core/naming/duration.js";
import { setNativeSha256 } from "./core/naming/ids.js";
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

export interface ConnectOptions
  extends Pick<StoreOptions, "authToken" | "clock" | "notify" | "schema" | "pooled" | "listenUrl" | "pool"> {
  /** Bring the tables up to date first; default true. With false, pending migrations are an error. */
  readonly migrate?: boolean;
  /** `console`, pino, …; default: warnings and errors to the console. Every transition of a run is told at level debug. */
  readonly logger?: Logger;
  /** Told of every exception in a step, of all workflows. */
  readonly onError?: ErrorReporter;
  /**
   * When a run that a `PauseError` with `resumeOn` has paused is looked at again although no signal came: its step runs
   * once more, and may pause it again. A `recheckAfter` of the error itself goes first. Default 1 hour; `null`: never.
   */
  readonly recheckPausedAfter?: Duration | null;
  /** Workers delete runs that ended longer ago than this; without it nothing is ever deleted. See `prune`. */
  readonly retention?: Duration;
}

const connectOptions = new Set<string>([
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

/** What `connect` tells a Pawl beside its store, and where its clocks, timers and random numbers come from. */
interface PawlSettings {
  readonly onError?: ErrorReporter | undefined;
  readonly retention?: Duration | undefined;
  readonly recheckPausedAfter?: Duration | null | undefined;
  readonly runtime?: Runtime;
}

/** Durable workflows on one database. */
export class Pawl extends Client {
  readonly #workers = new Set<Worker>();

  readonly #onError: ErrorReporter | null;
  readonly #retentionMs: number | null;
  readonly #recheckPausedMs: number | null;

  /** On a store that is open already, such as one of your own; `connect` opens one by its URL. */
  constructor(store: Store, logger?: Logger);
  /** @internal With all that `connect` can be told. */
  constructor(store: Store, logger?: Logger, settings?: PawlSettings);
  constructor(store: Store, logger: Logger = defaultLogger, settings: PawlSettings = {}) {
    super(store, safeLogger(logger), settings.runtime ?? systemRuntime);
    const { onError = null, retention, recheckPausedAfter = defaultRecheck } = settings;
    this.#onError = onError;
    this.#retentionMs = retention === undefined ? null : parseRetention(retention);
    this.#recheckPausedMs = parseRecheckAfter(recheckPausedAfter);
  }

  /** Where the data is, for people: "sqlite ./pawl.db". */
  get description(): string {
    return this.store.description;
  }

  /** A worker for these workflows. It begins with `start()`. */
  worker(options: WorkerOptions): Worker {
    const worker = new Worker(
      {
        runtime: this.runtime,
        store: this.store,
        log: this.log,
        newId: () => this.ids.next(),
        register: (definitions) => this.register(definitions),
        findRegistration: (name) => this.registration(name),
        onError: this.#onError,
        recheckPausedMs: this.#recheckPausedMs,
        // A thread has the time of the process, and no other.
        storeAddress: (this.runtime === systemRuntime ? watchdogAddresses.get(this.store) : undefined) ?? null,
        prune: this.#retentionMs === null ? null : this.#createPruner(this.#retentionMs),
      },
      options,
    );
    this.#workers.add(worker);
    this.addAdopter(worker);
    return worker;
  }

  #createPruner(olderThan: number) {
    return (signal: AbortSignal) => prune(this.store, { olderThan, signal }, this.runtime);
  }

  /** Stops its workers and lets go of the database. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    this.closeClient();
    await this.store.close();
  }
}

/**
 * Connects to a database. Without arguments: an SQLite file, `./pawl.db`. A URL that is undefined is refused: the
 * variable that it was read from is not set.
 *
 * `postgres://…` · `mysql://…` · `sqlite:path` · `sqlite::memory:` · `libsql:path` · `file:path` · `memory:` ·
 * `libsql://host` (Turso and other libSQL servers; also `https:`, `http:`, `wss:` and `ws:`)
 */
export function connect(url?: string, options?: ConnectOptions): Promise<Pawl>;
export async function connect(...args: [url?: string, options?: ConnectOptions]): Promise<Pawl> {
  const [url, options = {}] = args.length === 0 ? ["sqlite:./pawl.db"] : args;
  if (typeof url !== "string")
    throw new InvalidInputError(`connect was given ${String(url)}: is the environment variable set?`);
  checkOptions("connect()", options, connectOptions);
  if (options.retention !== undefined) parseRetention(options.retention);
  parseRecheckAfter(options.recheckPausedAfter ?? null);
  const logger = safeLogger(options.logger ?? defaultLogger);
  const { authToken, clock, notify, schema, pooled, listenUrl, pool } = options;
  const runtime = systemRuntime;
  const store = await openStore(url, {
    runtime,
    ...withoutUndefined({ authToken, clock, notify, schema, pooled, listenUrl, pool }),
    onWarning: (what, ...error) => logger.warn(`Pawl's database: ${what}`, ...error),
  });
  try {
    await prepare(store, options.migrate ?? true);
  } catch (error) {
    await store.close();
    throw error;
  }
  const { onError, retention, recheckPausedAfter } = options;
  return new Pawl(store, logger, { onError, retention, recheckPausedAfter, runtime });
}

/** Where the watchdog's thread finds the same database. */
const watchdogAddresses = new WeakMap<Store, StoreAddress>();

/** Null for what only this thread can reach, and where the thread's program is not beside this file (sources, bundles). */
function watchdogAddressOf(
  url: string,
  { clock, authToken, schema, pooled, listenUrl }: StoreOptions,
): StoreAddress | null {
  const moduleUrl: string | undefined = import.meta.url;
  // A bundle in the format of CommonJS does not know where it is.
  if (moduleUrl === undefined || moduleUrl === "") return null;
  const program = new URL("./watchdog-thread.js", moduleUrl);
  if (clock !== undefined || /^memory:|:memory:$/.test(url)) return null;
  if (program.protocol !== "file:" || !existsSync(program)) return null;
  return { program, url, options: withoutUndefined({ authToken, schema, pooled, listenUrl }) };
}

/** Without what is undefined, which is not the same as missing to the compiler. */
function withoutUndefined<T extends object>(options: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Key in keyof T]?: Exclude<T[Key], undefined> };
}

/** Nothing at all to keep is more likely a mistake than a wish, and would delete what a caller is waiting for. */
function parseRetention(retention: Duration): number {
  const ms = parseDuration(retention, "retention");
  if (ms >= 60_000) return ms;
  throw new InvalidInputError(`The retention is at least a minute, not ${ms} ms; without one nothing is deleted.`);
}

const defaultRecheck = "1 hour";

/** Each look is a few events in the log of the run, so there is time between two of them. */
function parseRecheckAfter(after: Duration | null): number | null {
  if (after === null) return null;
  const ms = parseDuration(after, "recheckPausedAfter");
  if (ms >= 1_000) return ms;
  throw new InvalidInputError(`recheckPausedAfter is at least a second, not ${ms} ms; null turns it off.`);
}

async function prepare(store: Store, migrate: boolean): Promise<void> {
  if (migrate) return store.migrate();
  const pending = await store.pendingMigrations();
  if (pending.length > 0)
    throw new MigrationError(
      `The database lacks migration(s) ${pending.join(", ")}. Connect once with { migrate: true }.`,
    );
}

/** @throws never with a password or a token of the URL in the error */
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

/** A file needs no token, but the same code may open a file here and a server there. */
const libsqlSchemes = new Set(["libsql", "file", "https", "http", "wss", "ws"]);

/** Each store is loaded only when it is asked for: its driver may not be installed. */
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

/** Where an option `schema` cannot take effect it is refused: the tables of two tenants would be the same ones. */
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
  ["memory", "leave it out, each memory store is apart from the others"],
]);

/** Of a URL whose scheme is unknown only the scheme: which part of the rest is a password is unknown as well. */
function redactUrl(url: string, scheme: string | undefined): string {
  if (scheme !== undefined) return `${scheme}:…`;
  return /^[\w./\\ -]{0,200}$/.test(url) ? url : "…";
}

/** In one call since Node 20.12; a third of the time that the same takes in JavaScript. */
const { hash } = crypto as { readonly hash?: (algorithm: string, data: string) => string };
setNativeSha256((text) =>
  hash === undefined ? crypto.createHash("sha256").update(text).digest("hex") : hash("sha256", text),
);
