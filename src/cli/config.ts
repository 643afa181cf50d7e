/** Where the settings of a call come from: options, then the environment, then the configuration file, then defaults. */
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
  readonly url?: string;
  /** PostgreSQL: the schema that the tables are in. */
  readonly schema?: string;
  /** PostgreSQL: whether a pooler shares its sessions, as PgBouncer does in transaction mode. Default "auto". */
  readonly pooled?: boolean | "auto";
  /** PostgreSQL, behind a pooler: the URL of the server itself, for the connection that hears of changes. */
  readonly listenUrl?: string;
  /** PostgreSQL and MySQL: how many connections a process may have open. */
  readonly pool?: PoolSizes;
  /** A libSQL server: its token. Better kept in the environment: PAWL_AUTH_TOKEN, or TURSO_AUTH_TOKEN. */
  readonly authToken?: string;
  /** False: nobody but `pawl migrate` changes the tables. */
  readonly migrate?: boolean;
  /** Workers delete runs that ended longer ago than this. */
  readonly retention?: Duration;
  /** When paused runs that wait for a signal are looked at again; null: never. */
  readonly recheckPausedAfter?: Duration | null;
  /** The files that `pawl worker` and `pawl dev` serve when none is named. */
  readonly workflows?: readonly string[];
  readonly concurrency?: number;
  readonly name?: string;
  readonly queues?: readonly string[];
  readonly lease?: Duration;
  readonly grace?: Duration;
}

export interface Settings {
  readonly url: string;
  /** Who says so: "--url", "PAWL_URL", "pawl.config.ts", "default". */
  readonly urlSource: string;
  readonly schema: string | undefined;
  /** Only of a libSQL server. */
  readonly authToken: string | undefined;
  readonly config: PawlConfig;
  /** null: there is none. */
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
  const [urlFrom, url] = sources.find(([, value]) => value !== undefined && value !== "") ?? ["default", defaultUrl];
  // `url: process.env.DATABASE_URL`, and nobody has set it: the default would be a surprise.
  if (urlFrom === "default" && Object.hasOwn(config, "url"))
    throw new CliError(`"url" in ${configFile} is empty; is the environment variable set that it comes from?`);
  return {
    url: url as string,
    urlSource: urlFrom as string,
    schema: globals.schema ?? config.schema,
    authToken: isRemoteUrl(url as string) ? tokenFor(url as string, config, env) : undefined,
    config,
    configFile,
  };
}

/** What a store is opened with. Settings for poolers are those of the database that the file names, and of no other. */
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

/** There is no option for it: what is on a command line can be read by others. */
function tokenFor(url: string, config: PawlConfig, env: Call["env"]): string | undefined {
  const configuredToken = env.PAWL_AUTH_TOKEN || config.authToken;
  // Turso's own name for it; the URL may have another.
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
  readonly [Key in keyof PawlConfig]-?: readonly [is: (value: unknown) => boolean, what: string];
} = {
  url: [isText, "a text"],
  schema: [isText, "a text"],
  pooled: [(value) => typeof value === "boolean" || value === "auto", 'true, false or "auto"'],
  listenUrl: [isText, "a text"],
  pool: [(value) => typeof value === "object" && value !== null, "an object: { max, transactions }"],
  authToken: [isText, "a text"],
  migrate: [(value) => typeof value === "boolean", "true or false"],
  retention: [isDuration, "a duration"],
  recheckPausedAfter: [isDuration, "a duration or null"],
  workflows: [isList, "a list of files"],
  concurrency: [(value) => typeof value === "number", "a number"],
  name: [isText, "a text"],
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
