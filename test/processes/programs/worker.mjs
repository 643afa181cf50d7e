// A worker in a process of its own; tests kill, stop and continue it. Its one argument contains all settings, and it
// reports through its IPC channel that it works, what it logs and how its commits ended.

import { Pawl } from "pawl";
import { workflowsFor } from "./workflows.mjs";

const options = JSON.parse(process.argv[2]);
const say = (message) => process.connected && process.send(message);
const logger = Object.fromEntries(
  ["debug", "info", "warn", "error"].map((level) => [
    level,
    (...args) => say({ kind: "log", level, text: args.map(String).join(" ") }),
  ]),
);

const store = await openStore(options.url, {
  notify: options.notify ?? true,
  ...(options.listenUrl === undefined ? {} : { listenUrl: options.listenUrl }),
  // As in `connect`, an unreachable server and its return are warnings of their own.
  onWarning: (what, ...error) => logger.warn(what, ...error),
});
await store.migrate();
if (options.deaf) store.watch = () => () => {};
const pawl = new Pawl(reporting(store), logger);
const known = workflowsFor(options);
const worker = pawl.worker({
  workflows: (options.workflows ?? ["steps"]).map((name) => known[name]),
  name: options.name,
  concurrency: options.concurrency ?? 100,
  lease: options.lease ?? 1_500,
  ...(options.maxDeliveries === undefined ? {} : { maxDeliveries: options.maxDeliveries }),
  // JSON has no Infinity.
  poll: options.poll === "never" ? Number.POSITIVE_INFINITY : (options.poll ?? 500),
});

process.on("message", async (message) => {
  if (message !== "stop") return;
  await pawl.close();
  // Nothing is left open now, so the process must end by itself.
  process.disconnect();
});
// The process that started this one is gone.
process.on("disconnect", () => setTimeout(() => process.exit(1), 5_000).unref());

await worker.start();
say({ kind: "ready", workerId: worker.id });

function openStore(url, storeOptions) {
  const openers = {
    sqlite: async () => (await import("pawl/sqlite")).openSqlite,
    libsql: async () => (await import("pawl/libsql")).openLibsql,
    ws: async () => (await import("pawl/libsql")).openLibsql,
    postgres: async () => (await import("pawl/postgres")).openPostgres,
    mysql: async () => (await import("pawl/mysql")).openMysql,
  };
  return openers[url.split(":")[0]]().then((open) => open(url, storeOptions));
}

/** The same store, but it reports how each commit under a fence ended. */
function reporting(store) {
  return new Proxy(store, {
    get(target, property) {
      const value = target[property];
      if (typeof value !== "function") return value;
      if (property !== "commit") return value.bind(target);
      return async (batch) => {
        const result = await target.commit(batch);
        if (batch.fence !== null) say({ kind: "commit", result: result.kind, epoch: batch.fence.epoch });
        return result;
      };
    },
  });
}
