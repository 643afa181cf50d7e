/** What `pawl doctor` looks at, in the order in which things can be missing; after the first that is, the rest is moot. */
import { isBuiltin } from "node:module";
import { openStore } from "../connect.js";
import { heardOf, isHeardOf, serves } from "../store/serving.js";
import type { Store, WorkerRecord } from "../store/store.js";
import { sentenceOf } from "./cli-error.js";
import type { Settings } from "./config.js";
import { migrations, missingFile, withoutPassword } from "./database.js";
import { lasting } from "./times.js";

export interface Check {
  readonly name: string;
  readonly verdict: "ok" | "warning" | "problem";
  readonly text: string;
}

const ok = (name: string, text: string): Check => ({ name, verdict: "ok", text });
const warning = (name: string, text: string): Check => ({ name, verdict: "warning", text });
const problem = (name: string, text: string): Check => ({ name, verdict: "problem", text });

const oldestNode = 20;
/** Delays count from the database's clock, dates are given by ours: a difference that people would notice. */
const mostSkewMs = 2_000;
/** How many runs that are not over are looked at. */
const runsLookedAt = 1_000;

export async function examine(settings: Settings): Promise<Check[]> {
  const begun = [checkNode(), checkSettings(settings), await checkDriver(settings.url)];
  if (begun.some(({ verdict }) => verdict === "problem")) return begun;
  try {
    const missing = missingFile(settings.url);
    if (missing !== null)
      return [...begun, problem("connection", `There is no database ${missing}; run: pawl migrate`)];
    const store = await openStore(settings.url, settings.schema === undefined ? {} : { schema: settings.schema });
    try {
      return [...begun, ...(await checkDatabase(store))];
    } finally {
      await store.close();
    }
  } catch (error) {
    return [...begun, problem("connection", sentenceOf(error))];
  }
}

function checkNode(): Check {
  const { node } = process.versions;
  return Number.parseInt(node, 10) >= oldestNode
    ? ok("node", node)
    : problem("node", `${node} is too old; Pawl needs ${oldestNode} or later.`);
}

function checkSettings({ url, urlFrom, configFile }: Settings): Check {
  const from = urlFrom === "default" ? "the default" : `from ${urlFrom}`;
  const file = configFile === null ? "no configuration file" : configFile;
  return ok("settings", `${withoutPassword(url)} (${from}); ${file}`);
}

const drivers: Readonly<Record<string, string>> = {
  sqlite: isBuiltin("node:sqlite") ? "node:sqlite" : "better-sqlite3",
  libsql: "libsql",
  file: "libsql",
  postgres: "pg",
  postgresql: "pg",
  mysql: "mysql2",
  mariadb: "mysql2",
};

const inMemory: Readonly<Record<string, string>> = {
  sqlite: "sqlite::memory:",
  libsql: "libsql::memory:",
  file: "libsql::memory:",
};

/** Whether it is there is found out by opening something that makes no file; a server may not answer, and that is another matter. */
async function checkDriver(url: string): Promise<Check> {
  const scheme = url.split(":")[0]?.toLowerCase() ?? "";
  const name = drivers[scheme];
  if (name === undefined) return ok("driver", "none is needed");
  try {
    await (await openStore(inMemory[scheme] ?? url)).close();
  } catch (error) {
    if (isMissingPackage(error)) return problem("driver", sentenceOf(error));
  }
  return ok("driver", name);
}

function isMissingPackage(error: unknown): boolean {
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown };
  if (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND" || code === "ERR_DLOPEN_FAILED") return true;
  return cause !== undefined && cause !== null && isMissingPackage(cause);
}

async function checkDatabase(store: Store): Promise<Check[]> {
  const before = Date.now();
  const now = await store.now();
  const after = Date.now();
  const connection = ok("connection", `${store.description}, answers in ${lasting(after - before)}`);
  const pending = await store.pendingMigrations();
  if (pending.length > 0)
    return [connection, problem("migrations", `${migrations(pending)} not applied; run: pawl migrate`)];
  return [
    connection,
    ok("migrations", "up to date"),
    checkClock(now - (before + after) / 2),
    ...(await checkWorkers(store)),
  ];
}

function checkClock(skewMs: number): Check {
  const by = lasting(Math.abs(Math.round(skewMs)));
  if (Math.abs(skewMs) < mostSkewMs) return ok("clock", "the database and this machine agree");
  return warning("clock", `the database is ${by} ${skewMs > 0 ? "ahead of" : "behind"} this machine; its clock counts`);
}

async function checkWorkers(store: Store): Promise<Check[]> {
  const [live, all, now] = await Promise.all([heardOf(store), store.workers(), store.now()]);
  const silent = all.filter((worker) => worker.live && !isHeardOf(worker, now));
  const names = live.map(({ name }) => name).join(", ");
  const checks = [
    live.length === 0
      ? warning("workers", "none is live; run: pawl worker <file>")
      : ok("workers", `${live.length} live: ${names}`),
  ];
  if (silent.length > 0)
    checks.push(warning("workers", `not heard of lately: ${silent.map(({ name }) => name).join(", ")}`));
  return [...checks, await checkServed(store, live)];
}

/** Runs that are due, or will be, and that no live worker would take. A paused run waits for a person. */
async function checkServed(store: Store, live: readonly WorkerRecord[]): Promise<Check> {
  const runs = (await store.runs({ active: true, limit: runsLookedAt })).filter(
    ({ status }) => status === "pending" || status === "waiting",
  );
  const byId = new Map(runs.map((run) => [run.id, run]));
  const lonely = new Map<string, number>();
  for (const task of await store.tasks([...byId.keys()])) {
    const run = byId.get(task.runId);
    if (run === undefined || live.some((worker) => serves(worker, task, run))) continue;
    const what = run.version === "" ? run.workflow : `${run.workflow} ${run.version}`;
    lonely.set(what, (lonely.get(what) ?? 0) + 1);
  }
  if (lonely.size === 0) return ok("runs", "every open run has a worker that serves it");
  const list = [...lonely].map(([what, count]) => `${what} (${count})`).join(", ");
  return warning("runs", `no live worker serves: ${list}`);
}
