/** Reads the settings of a call: from its options, then the environment, then the configuration file, then defaults. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Duration } from "../core/naming/duration.js";
import { didYouMean } from "../core/naming/nearest-word.js";
import type { PoolSizes, StoreOptions } from "../store/contract/store.js";
import { isRemoteUrl } from "../store/libsql-remote/address.js";
import { CliError, sentenceOf } from "./cli-error.js";
import type { Call } from "./command.js";
import { loadModule } from "./module-loader.js";

/** What `pawl.config.ts` exports by default. */
export interface PawlConfig {
  /** The name of the application, which owns the schedules that its workers declare. Default: "default". */
  readonly app?: string;
  /** The database. */
  readonly url?: string;
  /** PostgreSQL: the schema that the tables are in. */
  readonly schema?: string;
  /** PostgreSQL: whether a pooler shares sessions among clients, as PgBouncer does in transaction mode. Default "auto". */
  readonly pooled?: boolean | "auto";
  /** PostgreSQL, behind a pooler: the URL of the server itself, for the connection that listens for notifications. */
  readonly listenUrl?: string;
  /** PostgreSQL and MySQL: how many connections a process may have open. */
  readonly pool?: PoolSizes;
  /** The token for a libSQL server. Prefer the environment: PAWL_AUTH_TOKEN, or TURSO_AUTH_TOKEN. */
  readonly authToken?: string;
  /** False: only `pawl migrate` changes the tables. Default true: workers migrate them when they start. */
  readonly migrate?: boolean;
  /** Workers delete runs that ended longer ago than this. */
  readonly retention?: Duration;
  /** How long a paused run waits for its signal before its step runs once more; null means for ever. */
  readonly recheckPausedAfter?: Duration | null;
  /** The files that `pawl worker` and `pawl dev` serve when none is named. */
  readonly workflows?: readonly string[];
  /** How many runs a worker executes at a time. */
  readonly concurrency?: number;
  /** The name of the worker. */
  readonly name?: string;
  /** The only queues that the worker takes runs from. */
  readonly queues?: readonly string[];
  /** How long the worker may miss its heartbeats before other workers take its runs. */
  readonly lease?: Duration;
  /** How long the worker waits for running steps when it stops. */
  readonly grace?: Duration;
}

export interface Settings {
  readonly url: string;
  /** Where the URL comes from: "--url", "PAWL_URL", "pawl.config.ts" or "default". */
  readonly urlSource: string;
  readonly schema: string | undefined;
  /** Set only for a libSQL server. */
  readonly authToken: string | undefined;
  readonly config: PawlConfig;
  /** The name of the configuration file, or null if there is none. */
  readonly configFile: string | null;
}

export const configNames = ["pawl.config.ts", "pawl.config.js", "pawl.config.mjs", "pawl.config.json"];
const defaultUrl = "sqlite:./pawl.db";

export async function readSettings({ globals, env }: Pick<Call, "globals" | "env">): Promise<Settings> {
  const { config, file: configFile } = await readConfig();
  const sources = [
    ["--url", globals.url],
    ["PAWL_URL", env.PAWL_URL],
    [configFile, config.url],
    ["default", defaultUrl],
  ] as const;
  const [urlSource, url] = sources.find(([, value]) => value !== undefined && value !== "") ?? ["default", defaultUrl];
  // `url: process.env.DATABASE_URL` with the variable unset: opening the default database would surprise the user.
  if (urlSource === "default" && Object.hasOwn(config, "url"))
    throw new CliError(`"url" in ${configFile} is empty; is the environment variable set that it comes from?`);
  return {
    url: url as string,
    urlSource: urlSource as string,
    schema: globals.schema ?? config.schema,
    authToken: isRemoteUrl(url as string) ? tokenFor(url as string, config, env) : undefined,
    config,
    configFile,
  };
}

/** The options to open the store with. Connection settings of the file do not apply to a URL from elsewhere. */
export function storeOptionsOf({ schema, authToken, config, configFile, urlSource }: Settings): StoreOptions {
  const { pooled, listenUrl, pool } = urlSource === configFile || config.url === undefined ? config : {};
  return {
    ...(schema === undefined ? {} : { schema }),
    ...(authToken === undefined ? {} : { authToken }),
    ...(pooled === undefined ? {} : { pooled }),
    ...(listenUrl === undefined ? {} : { listenUrl }),
    ...(pool === undefined ? {} : { pool }),
  };
}

/** There is no option for the token, because other users of the machine can read command lines. */
function tokenFor(url: string, config: PawlConfig, env: Call["env"]): string | undefined {
  const configuredToken = env.PAWL_AUTH_TOKEN || config.authToken;
  // TURSO_AUTH_TOKEN belongs to Turso's own tools, so a token in the URL takes precedence over it.
  return configuredToken || (/[?&]authToken=/.test(url) ? undefined : env.TURSO_AUTH_TOKEN || undefined);
}

async function readConfig(): Promise<{ readonly config: PawlConfig; readonly file: string | null }> {
  const file = configNames.find((name) => existsSync(name));
  if (file === undefined) return { config: {}, file: null };
  const content = file.endsWith(".json") ? readJson(file) : ((await loadModule(file)) as { default?: unknown }).default;
  return { config: checkConfig(content, file), file };
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new CliError(`${file} is not valid JSON: ${sentenceOf(error)}`);
  }
}

const isText = (value: unknown) => typeof value === "string";
const isList = (value: unknown) => Array.isArray(value) && value.every(isText);
const isDuration = (value: unknown) => ["string", "number", "object"].includes(typeof value);

const settingChecks: {
  readonly [Key in keyof PawlConfig]-?: readonly [isValid: (value: unknown) => boolean, expected: string];
} = {
  app: [isText, "a string"],
  url: [isText, "a string"],
  schema: [isText, "a string"],
  pooled: [(value) => typeof value === "boolean" || value === "auto", 'true, false or "auto"'],
  listenUrl: [isText, "a string"],
  pool: [(value) => typeof value === "object" && value !== null, "an object: { max, transactions }"],
  authToken: [isText, "a string"],
  migrate: [(value) => typeof value === "boolean", "true or false"],
  retention: [isDuration, "a duration"],
  recheckPausedAfter: [isDuration, "a duration or null"],
  workflows: [isList, "a list of files"],
  concurrency: [(value) => typeof value === "number", "a number"],
  name: [isText, "a string"],
  queues: [isList, "a list of names"],
  lease: [isDuration, "a duration"],
  grace: [isDuration, "a duration"],
};

function checkConfig(content: unknown, file: string): PawlConfig {
  if (typeof content !== "object" || content === null || Array.isArray(content))
    throw new CliError(`${file} must export an object by default: export default { url: "…" }.`);
  for (const [key, value] of Object.entries(content)) {
    if (!Object.hasOwn(settingChecks, key))
      throw new CliError(
        `${file} has a setting "${key}", which does not exist${didYouMean(key, Object.keys(settingChecks)) || "."}`,
      );
    const [isValid, expected] = settingChecks[key as keyof PawlConfig];
    if (value !== undefined && !isValid(value)) throw new CliError(`"${key}" in ${file} must be ${expected}.`);
  }
  const config = content as PawlConfig;
  if (config.workflows === undefined) return config;
  return { ...config, workflows: config.workflows.map((path) => resolve(dirname(file), path)) };
}
