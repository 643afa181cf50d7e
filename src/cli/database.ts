/** Opens the database that a call is about. Looking at something never makes a file or changes a table. */
import { existsSync } from "node:fs";
import { inspect } from "node:util";
import { openStore, Pawl } from "../connect.js";
import type { Logger } from "../define/context.js";
import type { ErrorReporter } from "../define/definition.js";
import type { Store } from "../store/contract/store.js";
import { parseLibsqlLocation } from "../store/libsql/location.js";
import { isRemoteUrl } from "../store/libsql-remote/address.js";
import { type DatabaseLocation, parseLocation } from "../store/sqlite/open.js";
import { discardLog } from "../telemetry/logger.js";
import { CliError, sentenceOf } from "./cli-error.js";
import type { Call } from "./command.js";
import { readSettings, type Settings, storeOptionsOf } from "./config.js";
import type { Output } from "./output.js";

export interface OpenOptions {
  /** Bring the tables up to date; otherwise they must be. */
  readonly migrate?: boolean;
  readonly logger?: Logger;
  readonly onError?: ErrorReporter;
}

export interface Database {
  readonly pawl: Pawl;
  readonly store: Store;
}

/** The store alone, in whatever state its tables are. */
export async function openBareStore(settings: Settings, onWarning: Logger["warn"]): Promise<Store> {
  return openStore(settings.url, {
    ...storeOptionsOf(settings),
    onWarning: (what, error) => onWarning(`The database: ${what}`, error),
  });
}

export async function openDatabase(settings: Settings, out: Output, options: OpenOptions = {}): Promise<Database> {
  // A command that ends at once says itself what it has done.
  const logger = options.logger ?? { ...createLogger(out), info: discardLog };
  if (options.migrate !== true) checkExists(settings.url);
  // Trouble that was dealt with matters to those who go on for long.
  const store = await openBareStore(settings, options.logger?.warn ?? logger.debug);
  try {
    if (options.migrate === true) await store.migrate();
    else await checkMigrated(store);
    const { retention, recheckPausedAfter } = settings.config;
    return { pawl: new Pawl(store, logger, { onError: options.onError, retention, recheckPausedAfter }), store };
  } catch (error) {
    await store.close();
    throw error;
  }
}

export async function withPawl<T>(call: Call, work: (pawl: Pawl) => Promise<T>): Promise<T> {
  const { pawl } = await openDatabase(await readSettings(call), call.out);
  try {
    return await work(pawl);
  } finally {
    await pawl.close();
  }
}

async function checkMigrated(store: Store): Promise<void> {
  const pending = await store.pendingMigrations();
  if (pending.length === 0) return;
  throw new CliError(`${store.description} lacks ${formatMigrations(pending)}; run: pawl migrate`);
}

/** "migration 3", "migrations 3, 4". */
export const formatMigrations = (numbers: readonly number[]): string =>
  `migration${numbers.length === 1 ? "" : "s"} ${numbers.join(", ")}`;

/** A file that is opened is made: whoever only looks is told instead. */
export function checkExists(url: string): void {
  const missing = missingFile(url);
  if (missing === null) return;
  throw new CliError(
    `There is no database ${missing}; \`pawl dev\` and \`pawl migrate\` make one, --url and PAWL_URL name another.`,
  );
}

/** The path of a local database that is not there yet; null for all others. */
export function missingFile(url: string): string | null {
  const location = locationOf(url);
  if (location === null || location.file === null || existsSync(location.file)) return null;
  return location.description.replace(/^\w+ /, "");
}

function locationOf(url: string): DatabaseLocation | null {
  if (/^sqlite:/i.test(url)) return parseLocation(url);
  if (isRemoteUrl(url)) return null;
  return /^(libsql|file):/i.test(url) ? parseLibsqlLocation(url) : null;
}

/** On stderr, whatever the level: stdout is for what was asked for. */
export function createLogger(out: Output, write: (text: string) => void = (text) => out.note(text)): Logger {
  // What an error says may be in the text already.
  const isInText = (args: readonly unknown[], arg: unknown) =>
    arg instanceof Error && !out.debug && typeof args[0] === "string" && args[0].includes(arg.message);
  const formatArgs = (args: readonly unknown[]) =>
    args
      .filter((arg) => arg !== undefined && !isInText(args, arg))
      .map((arg) => {
        if (typeof arg === "string") return arg;
        return arg instanceof Error && !out.debug ? sentenceOf(arg) : inspect(arg, { breakLength: Infinity });
      })
      .join(" ");
  return {
    // By this one it is known that nobody reads.
    debug: out.debug ? (...args) => write(formatArgs(args)) : discardLog,
    info: (...args) => write(formatArgs(args)),
    warn: (...args) => write(`warning: ${formatArgs(args)}`),
    error: (...args) => write(`error: ${formatArgs(args)}`),
  };
}
