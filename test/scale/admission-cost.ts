/** Fills a lane with blocked runs, and counts what the next admission touches. */
import { laneIdOf, runClassOf } from "../../src/core/limits/lane.js";
import type { AdmissionRequest } from "../../src/store/contract/limits.js";
import type { Fence, NewRun, Store } from "../../src/store/contract/store.js";
import { batch, finish, newRuns, transition, workerInfo } from "../../src/testing/store-suite/builders.js";
import { openStore } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { openCounter } from "./counters.js";
import type { SeededKind } from "./seed-dialects.js";
import { captureStatements } from "./statement-capture.js";

const runsPerCommit = 500;
const workflow = "limited";
const routes = [{ workflow, version: "" }];

export interface AdmissionCost {
  readonly statements: number;
  /** Pages or rows, see `Counter.unit`. */
  readonly touched: number;
  /** The statements with their plans. */
  readonly details: readonly string[];
}

/** Indexes become a level deeper. */
export const allowedGrowth = 60;

/** What an admission costs beside each of these numbers of blocked runs, which grow. The database must be empty. */
export async function admissionCosts(
  kind: SeededKind,
  url: string,
  numbersOfBlocked: readonly number[],
): Promise<readonly AdmissionCost[]> {
  const store = await openStore(kind, url, { notify: false });
  try {
    await store.migrate();
    await store.limits.register([{ name: "api", concurrency: 1, rate: null, isHeldOpen: false }]);
    const fence = await store.registerWorker(workerInfo({ leaseMs: 3_600_000 }));
    const costs: AdmissionCost[] = [];
    let blockedCount = 0;
    for (const count of numbersOfBlocked) {
      await addWaiting(store, count - blockedCount);
      blockedCount = count;
      await blockAll(store, fence);
      costs.push(await settledCost(kind, url, store, fence));
    }
    return costs;
  } finally {
    await store.close();
  }
}

let tenantCount = 0;

/** Half of the runs are those of one tenant, and each of the others is a class of its own. All need the same slot. */
async function addWaiting(store: Store, howMany: number): Promise<void> {
  for (let from = 0; from < howMany; from += runsPerCommit) {
    const runs = newRuns(Math.min(runsPerCommit, howMany - from), { workflow });
    await store.commit(batch(null, [], runs));
    const classOf = (run: NewRun, n: number) => {
      const tenant = n % 2 === 0 ? "big" : `tenant ${++tenantCount}`;
      return runClassOf(run.workflow, run.version, [laneIdOf("api", "")], tenant);
    };
    await store.limits.sort(runs.map((run, n) => ({ runId: run.id, runClass: classOf(run, n), hasBegun: false })));
  }
}

/** Admits until the lane is full and every class is blocked on it. */
async function blockAll(store: Store, fence: Fence): Promise<void> {
  for (;;) {
    const { hasOpenClasses } = await store.limits.unsorted({ routes, limit: 1 });
    if (!hasOpenClasses) break;
    await store.limits.admit({ fence, routes, limit: 100 });
  }
}

/**
 * Thousands of classes were blocked at once, and have left dead entries in the index of open classes. On PostgreSQL a vacuum removes
 * them, which the server begins by itself when 2 % of the table have changed; on the others a few reads are enough.
 */
async function settledCost(kind: SeededKind, url: string, store: Store, fence: Fence): Promise<AdmissionCost> {
  for (let round = 0; round < 3; round += 1) await countAdmission(kind, url, store, fence);
  if (kind === "postgres") {
    const sql = await rawSql(url);
    await sql.query("VACUUM pawl_classes");
    await sql.close();
  }
  return countAdmission(kind, url, store, fence);
}

/** One run gives its slot back, and the next gets it. */
async function countAdmission(kind: SeededKind, url: string, store: Store, fence: Fence): Promise<AdmissionCost> {
  const lane = laneIdOf("api", "");
  const [holder] = await store.limits.slots({ lane }, 1);
  const next = finish("completed", { releasesSlots: true });
  await store.commit(batch(fence, [transition(holder?.runId as string, { next })]));
  const request: AdmissionRequest = { fence, routes, limit: 100, freed: [{ lane, count: 1 }] };
  let admittedCount = 0;
  const sent = await captureStatements(kind, async () => {
    const result = await store.limits.admit(request);
    admittedCount = result.kind === "admitted" ? result.tasks.length : 0;
  });
  if (admittedCount !== 1) throw new Error(`${admittedCount} runs were admitted, not one.`);
  const reads = sent.filter(({ sql }) => /pawl_/.test(sql) && /^\s*(\/\*.*?\*\/\s*)?(SELECT|WITH)\b/is.test(sql));
  const counter = await openCounter(kind, url);
  try {
    const details: string[] = [];
    let touched = 0;
    for (const statement of reads) {
      const { count, plan } = await counter.count(statement);
      touched += count;
      details.push(`${count} ${counter.unit}: ${statement.sql.replace(/\s+/g, " ").slice(0, 200)}\n${plan}`);
    }
    return { touched, statements: sent.length, details };
  } finally {
    await counter.close();
  }
}
