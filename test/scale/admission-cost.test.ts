/** What an admission touches does not grow with the number of runs that wait for slots. */
import { expect, onTestFinished, test } from "vitest";
import { laneIdOf, runClassOf } from "../../src/core/limits/lane.js";
import type { AdmissionRequest } from "../../src/store/contract/limits.js";
import type { Fence, NewRun, Store } from "../../src/store/contract/store.js";
import { batch, finish, newRuns, transition, workerInfo } from "../../src/testing/store-suite/builders.js";
import { forEachStore, openStore, testDatabase } from "../support/databases.js";
import { openCounter } from "./counters.js";
import type { SeededKind } from "./seed-dialects.js";
import { captureStatements } from "./statement-capture.js";

const [few, many] = [100, 5_000];
/** Indexes become a level deeper. */
const allowedGrowth = 60;
const runsPerCommit = 500;
const workflow = "limited";
const routes = [{ workflow, version: "" }];

const kinds: readonly SeededKind[] = ["postgres", "mysql", "sqlite"];
// The pages that SQLite reads are counted by Linux.
const countedKinds = kinds.filter((kind) => kind !== "sqlite" || process.platform === "linux");

forEachStore<SeededKind>((kind) => {
  test(`an admission beside ${many} blocked runs touches no more than beside ${few}`, async () => {
    const { url, drop } = await testDatabase(kind);
    onTestFinished(drop);
    const store = await openStore(kind, url, { notify: false });
    onTestFinished(() => store.close());
    await store.migrate();
    await store.limits.register([{ name: "api", concurrency: 1, rate: null, isHeldOpen: false }]);
    const fence = await store.registerWorker(workerInfo());
    await addWaiting(store, few);
    await blockAll(store, fence);
    const before = await settledCost(kind, url, store, fence);
    await addWaiting(store, many - few);
    await blockAll(store, fence);
    const after = await settledCost(kind, url, store, fence);
    expect(after.touched, after.details.join("\n")).toBeLessThanOrEqual(before.touched + allowedGrowth);
    expect(after.statements).toBeLessThanOrEqual(before.statements);
  });
}, countedKinds);

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
 * When thousands of classes were blocked at once, the next reads pass over the entries that they have left in the index of
 * open classes, and mark them as dead.
 */
async function settledCost(kind: SeededKind, url: string, store: Store, fence: Fence) {
  for (let round = 0; round < 3; round += 1) await countAdmission(kind, url, store, fence);
  return countAdmission(kind, url, store, fence);
}

/** One run gives its slot back, and the next gets it. */
async function countAdmission(kind: SeededKind, url: string, store: Store, fence: Fence) {
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
  expect(admittedCount).toBe(1);
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
