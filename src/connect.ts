/** The composition root: a URL becomes a store, a store becomes Pawl. */
import * as crypto from "node:crypto";
import { existsSync } from "node:fs";
import { Client } from "./client/client.js";
import { newId } from "./client/new-id.js";
import { prune } from "./client/prune.js";
import { type Duration, parseDuration } from "./core/duration.js";
import { InvalidInputError, MigrationError } from "./core/errors.js";
import { lendSha256 } from "./core/ids.js";
import type { Logger } from "./define/context.js";
import type { ErrorReporter } from "./define/definition.js";
import { checkPassword, withoutSecretsOf } from "./store/secrets.js";
import type { Store, StoreOptions } from "./store/store.js";
import { defaultLogger } from "./telemetry/logger.js";
import { safeLogger } from "./telemetry/safe-logger.js";
import type { StoreAddress } from "./worker/watchdog.js";
import { Worker, type WorkerOptions } from "./worker/worker.js";

export interface ConnectOptions extends Pick<StoreOptions, "authToken" | "clock" | "notify" | "schema"> {
  /** Bring the tables up to date first; default true. With false, pending migrations are an error. */
  readonly migrate?: boolean;
  /** `console`, pino, …; default: warnings and errors to the console. Every transition of a run is told at level debug. */
  readonly logger?: Logger;
  /** Told of every exception in a step, of all workflows. */
  readonly onError?: ErrorReporter;
  /** Workers delete runs that ended longer ago than this; without it nothing is ever deleted. See `prune`. */
  readonly retention?: Duration;
}

/** Durable workflows on one database. */
export class Pawl extends Client {
  readonly #workers = new Set<Worker>();

  readonly #onError: ErrorReporter | null;
  readonly #retentionMs: number | null;

  constructor(
    store: Store,
    logger: Logger = defaultLogger,
    onError: ErrorReporter | null = null,
    retention: Duration | null = null,
  ) {
    super(store, safeLogger(logger));
    this.#onError = onError;
    this.#retentionMs = retention === null ? null : checkRetention(retention);
  }

  /** Where the data is, for people: "sqlite ./pawl.db". */
  get description(): string {
    return this.store.description;
  }

  /** A worker for these workflows. It begins with `start()`. */
  worker(options: WorkerOptions): Worker {
    const worker = new Worker(
      {
        store: this.store,
        log: this.log,
        newId,
        register: (definitions) => this.register(definitions),
        registration: (name) => this.registration(name),
        onError: this.#onError,
        address: addresses.get(this.store) ?? null,
        prune: this.#retentionMs === null ? null : this.#prunes(this.#retentionMs),
      },
      options,
    );
    this.#workers.add(worker);
    this.addAdopter(worker);
    return worker;
  }

  #prunes(olderThan: number) {
    return (signal: AbortSignal) => prune(this.store, { olderThan, signal });
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
  if (options.retention !== undefined) checkRetention(options.retention);
  const logger = safeLogger(options.logger ?? defaultLogger);
  const store = await openStore(url, {
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    ...(options.notify === undefined ? {} : { notify: options.notify }),
    ...(options.schema === undefined ? {} : { schema: options.schema }),
    ...(options.authToken === undefined ? {} : { authToken: options.authToken }),
    onTrouble: (what, ...error) => logger.warn(`Pawl's database: ${what}`, ...error),
  });
  try {
    await prepare(store, options.migrate ?? true);
  } catch (error) {
    await store.close();
    throw error;
  }
  return new Pawl(store, logger, options.onError, options.retention);
}

/** Where the watchdog's thread finds the same database. */
const addresses = new WeakMap<Store, StoreAddress>();

/** Null for what only this thread can reach, and where the thread's program is not beside this file (sources, bundles). */
function addressOf(url: string, { clock, schema, authToken }: StoreOptions): StoreAddress | null {
  const program = new URL("./watchdog-thread.js", import.meta.url);
  if (clock !== undefined || /^memory:|:memory:$/.test(url)) return null;
  if (program.protocol !== "file:" || !existsSync(program)) return null;
  return {
    program,
    url,
    ...(schema === undefined ? {} : { schema }),
    ...(authToken === undefined ? {} : { authToken }),
  };
}

/** Nothing at all to keep is more likely a mistake than a wish, and would delete what somebody is waiting for. */
function checkRetention(retention: Duration): number {
  const ms = parseDuration(retention, "retention");
  if (ms >= 60_000) return ms;
  throw new InvalidInputError(`The retention is at least a minute, not ${ms} ms; without one nothing is deleted.`);
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
    const address = addressOf(url, options);
    if (address !== null) addresses.set(store, address);
    return store;
  } catch (error) {
    throw withoutSecretsOf(url, error, options.authToken);
  }
}

/** A file needs no token, but the same code may open a file here and a server there. */
const libsqlSchemes = new Set(["libsql", "file", "https", "http", "wss", "ws"]);

/** Each store is loaded only when it is asked for: its driver may not be installed. */
async function openByScheme(url: string, options: StoreOptions): Promise<Store> {
  const scheme = /^([a-z+]+):/i.exec(url)?.[1]?.toLowerCase();
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
      checkPassword(url);
      return (await import("./store/postgres/index.js")).openPostgres(url, options);
    case "mysql":
    case "mariadb":
      checkPassword(url);
      return (await import("./store/mysql/index.js")).openMysql(url, options);
    default:
      throw new InvalidInputError(
        `"${shownUrl(url, scheme)}" is not a database URL that Pawl knows. Examples: sqlite:./pawl.db, postgres://localhost/app, mysql://localhost/app, libsql://name.turso.io, memory:`,
      );
  }
}

/** Of a URL whose scheme is unknown only the scheme: which part of the rest is a password is unknown as well. */
function shownUrl(url: string, scheme: string | undefined): string {
  if (scheme !== undefined) return `${scheme}:…`;
  return /^[\w./\\ -]{0,200}$/.test(url) ? url : "…";
}

/** In one call since Node 20.12; a third of the time that the same takes in JavaScript. */
const { hash } = crypto as { readonly hash?: (algorithm: string, data: string) => string };
lendSha256((text) =>
  hash === undefined ? crypto.createHash("sha256").update(text).digest("hex") : hash("sha256", text),
);
