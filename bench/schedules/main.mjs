// How late do schedules of every second fire, and begin their runs, with one worker and with four?
//
//   npm run build && node bench/schedules/main.mjs [--store sqlite,postgres,mysql] [--workers 1,4] [--seconds 20]
//
// Each worker is a process of its own. On PostgreSQL and MariaDB, servers of its own are started.

import { fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { connect } from "pawl";
import { ownMariadb, ownPostgres } from "../../scripts/servers.mjs";
import { percentile } from "../statistics.mjs";

const scheduleCount = 10;
const { values } = parseArgs({
  options: {
    store: { type: "string", default: "sqlite,postgres,mysql" },
    workers: { type: "string", default: "1,4" },
    seconds: { type: "string", default: "20" },
  },
});

for (const store of values.store.split(","))
  for (const workers of values.workers.split(",").map(Number)) await measure(store, workers, Number(values.seconds));
process.exit();

async function measure(store, workerCount, seconds) {
  const folder = mkdtempSync(join(tmpdir(), "pawl-bench-schedules-"));
  const server = store === "postgres" ? await ownPostgres() : store === "mysql" ? await ownMariadb() : null;
  const url = server?.url ?? `sqlite:${join(folder, "pawl.sqlite")}`;
  const begun = [];
  const pawl = await connect(url);
  const program = new URL("worker.mjs", import.meta.url);
  const children = [];
  for (let n = 0; n < workerCount; n += 1) {
    const child = fork(program, [url]);
    child.on("message", (message) => message.begunLateMs !== undefined && begun.push(message.begunLateMs));
    await new Promise((resolve) => child.once("message", resolve));
    children.push(child);
  }
  for (let n = 0; n < scheduleCount; n += 1)
    await pawl.schedules.put(`schedule-${n}`, { workflow: "tick", input: {}, every: "1s" });
  // The first seconds are those of connections and plans.
  await sleep(5_000);
  begun.length = 0;
  const from = Date.now();
  await sleep(seconds * 1_000);
  const until = Date.now();
  const fired = [];
  for (let n = 0; n < scheduleCount; n += 1) {
    const { occurrences } = await pawl.schedules.occurrences(`schedule-${n}`, { limit: 1_000 });
    for (const { scheduledFor, latenessMs, outcome } of occurrences)
      if (outcome === "ran" && scheduledFor >= from && scheduledFor < until - 1_000) fired.push(latenessMs);
  }
  const figures = (list) => `p50 ${percentile(list, 0.5)} ms, p99 ${percentile(list, 0.99)} ms`;
  console.log(
    `${store}, ${workerCount} worker(s): fired ${figures(fired)}; first line of the run ${figures(begun)} (${fired.length} occurrences)`,
  );
  for (const child of children) child.kill("SIGKILL");
  await pawl.close();
  await server?.remove();
  rmSync(folder, { recursive: true, force: true });
}
