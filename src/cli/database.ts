/** Opens the database of a call. A command that only reads never creates a file or changes a table. */
import { existsSync } from "node:fs";
import { inspect } from "node:util";
import { formatMigrations } from "../client/operate/doctor.js";
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
  /** Migrate the tables first. Default false: opening fails if migrations are pending. */
  readonly migrate?: boolean;
  readonly logger?: Logger;
  readonly onError?: ErrorReporter;
  /** The application, if it is not the one of the configuration file. */
  readonly app?: string | undefined;
}

export interface Database {
  readonly pawl: Pawl;
  readonly store: Store;
}

/** Opens the store alone, without checking its tables. */
export async function openBareStore(settings: Settings, onWarning: Logger["warn"]): Promise<Store> {
  return openStore(settings.url, {
    ...storeOptionsOf(settings),
    onWarning: (text, error) => onWarning(`The database: ${text}`, error),
  });
}

export async function openDatabase(settings: Settings, out: Output, options: OpenOptions = {}): Promise<Database> {
  // A short command prints its own result; the library's info lines would repeat it.
  const logger = options.logger ?? { ...createLogger(out), info: discardLog };
  if (options.migrate !== true) checkExists(settings.url);
  // Warnings about problems that the store has recovered from matter only to a process that keeps running.
  const store = await openBareStore(settings, options.logger?.warn ?? logger.debug);
  try {
    if (options.migrate === true) await store.migrate();
    else await checkMigrated(store);
    const { retention, recheckPausedAfter } = settings.config;
    const app = options.app ?? settings.config.app;
    return { pawl: new Pawl(store, logger, { app, onError: options.onError, retention, recheckPausedAfter }), store };
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

/** Opening a missing database file would create it, so a command that only reads fails here instead. */
export function checkExists(url: string): void {
  const missing = missingFile(url);
  if (missing === null) return;
  throw new CliError(
    `There is no database ${missing}; \`pawl dev\` and \`pawl migrate\` make one, --url and PAWL_URL name another.`,
  );
}

/** Returns the path of a local database file that does not exist yet, and null for every other URL. */
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

/** Logs every level to stderr, because stdout carries the result of the command. */
export function createLogger(out: Output, write: (text: string) => void = (text) => out.note(text)): Logger {
  // An error is not printed again if the text already contains its message.
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
    // The library recognises `discardLog` and does not prepare debug lines for it.
    debug: out.debug ? (...args) => write(formatArgs(args)) : discardLog,
    info: (...args) => write(formatArgs(args)),
    warn: (...args) => write(`warning: ${formatArgs(args)}`),
    error: (...args) => write(`error: ${formatArgs(args)}`),
  };
}
