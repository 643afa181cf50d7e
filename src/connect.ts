/** The composition root: a URL becomes a store, a store becomes Pawl. */
import { Client } from "./client/client.js";
import { newId } from "./client/new-id.js";
import { InvalidInputError, MigrationError } from "./core/errors.js";
import type { Logger } from "./define/context.js";
import type { ErrorReporter } from "./define/definition.js";
import type { Store, StoreOptions } from "./store/store.js";
import { defaultLogger } from "./telemetry/logger.js";
import { Worker, type WorkerOptions } from "./worker/worker.js";

export interface ConnectOptions extends Pick<StoreOptions, "clock" | "notify" | "schema"> {
  /** Bring the tables up to date first; default true. With false, pending migrations are an error. */
  readonly migrate?: boolean;
  /** `console`, pino, …; default: warnings and errors to the console. Every transition of a run is told at level debug. */
  readonly logger?: Logger;
  /** Told of every exception in a step, of all workflows. */
  readonly onError?: ErrorReporter;
}

/** Durable workflows on one database. */
export class Pawl extends Client {
  readonly #workers = new Set<Worker>();

  readonly #onError: ErrorReporter | null;

  constructor(store: Store, logger: Logger = defaultLogger, onError: ErrorReporter | null = null) {
    super(store, logger);
    this.#onError = onError;
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
      },
      options,
    );
    this.#workers.add(worker);
    this.addAdopter(worker);
    return worker;
  }

  /** Stops its workers and lets go of the database. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    this.closeClient();
    await this.store.close();
  }
}

/**
 * Connects to a database. Without a URL: an SQLite file, `./pawl.db`.
 *
 * `postgres://…` · `mysql://…` · `sqlite:path` · `sqlite::memory:` · `libsql:path` · `file:path` · `memory:`
 */
export async function connect(url = "sqlite:./pawl.db", options: ConnectOptions = {}): Promise<Pawl> {
  const logger = options.logger ?? defaultLogger;
  const store = await openStore(url, {
    ...(options.clock === undefined ? {} : { clock: options.clock }),
    ...(options.notify === undefined ? {} : { notify: options.notify }),
    ...(options.schema === undefined ? {} : { schema: options.schema }),
    onTrouble: (what, error) => logger.warn(`Pawl's database: ${what}`, error),
  });
  try {
    await prepare(store, options.migrate ?? true);
  } catch (error) {
    await store.close();
    throw error;
  }
  return new Pawl(store, logger, options.onError);
}

async function prepare(store: Store, migrate: boolean): Promise<void> {
  if (migrate) return store.migrate();
  const pending = await store.pendingMigrations();
  if (pending.length > 0)
    throw new MigrationError(
      `The database lacks migration(s) ${pending.join(", ")}. Connect once with { migrate: true }.`,
    );
}

/** Each store is loaded only when it is asked for: its driver may not be installed. */
export async function openStore(url: string, options: StoreOptions = {}): Promise<Store> {
  const scheme = /^([a-z+]+):/i.exec(url)?.[1]?.toLowerCase();
  switch (scheme) {
    case "memory":
      return new (await import("./store/memory.js")).MemoryStore(options);
    case "sqlite":
      return (await import("./store/sqlite/index.js")).openSqlite(url, options);
    case "libsql":
    case "file":
      return (await import("./store/libsql/index.js")).openLibsql(url, options);
    case "postgres":
    case "postgresql":
      return (await import("./store/postgres/index.js")).openPostgres(url, options);
    case "mysql":
    case "mariadb":
      return (await import("./store/mysql/index.js")).openMysql(url, options);
    default:
      throw new InvalidInputError(
        `"${url.split("@").at(-1)}" is not a database URL that Pawl knows. Examples: sqlite:./pawl.db, postgres://localhost/app, mysql://localhost/app, memory:`,
      );
  }
}
