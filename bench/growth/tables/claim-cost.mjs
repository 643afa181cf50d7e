// What a claim reads. Every store claims a hundred runs, several times, as a worker would; how the cost is observed
// differs. Afterwards the runs are released and executed.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { workName, workOf } from "../work.mjs";

const runsPerClaim = 100;

const watchers = {
  postgres: () => import("./claim-postgres.mjs"),
  mysql: () => import("./claim-mysql.mjs"),
  sqlite: () => import("./claim-sqlite.mjs"),
};

/** Figures by name, per claimed run; or `plan`, where nothing can be counted. */
export async function claimCost(storeName, { pawl, database }) {
  const { claims, watchClaims } = await watchers[storeName]();
  const work = workOf();
  const { openStore } = await import("../../../dist/connect.js");
  const store = await openStore(database.url, { notify: false });
  const routes = [{ workflow: workName, version: "" }];
  const claimer = { id: randomUUID(), name: "claimer", host: "here", pid: process.pid, routes, leaseMs: 60_000 };
  const fence = await store.registerWorker(claimer);
  try {
    const inputs = Array.from({ length: claims * runsPerClaim }, () => ({ steps: 1 }));
    await pawl.startMany(work, inputs);
    const request = { fence, routes, limit: runsPerClaim, limitPerRoute: runsPerClaim };
    return await watchClaims({ store, database, request });
  } finally {
    await store.deregisterWorker(fence);
    await store.close();
    await execute(pawl, work);
  }
}

async function execute(pawl, work) {
  const worker = await pawl.worker({ workflows: [work], concurrency: 500 }).start();
  // Only among the newest runs: finding none among a million takes a while.
  const pending = { workflow: work, status: "pending", createdAfter: Date.now() - 600_000, limit: 1 };
  while (worker.active > 0 || (await pawl.runs(pending)).runs.length > 0) await sleep(5);
  await worker.stop();
}

/** A claim that is not full would be cheaper than the others. */
export async function claimFully(store, request) {
  const { tasks } = await store.claim(request);
  if (tasks.length !== request.limit) throw new Error(`A claim gave ${tasks.length} of ${request.limit} runs.`);
}
