/**
 * Reads all stored data and compares each log with the row and the task of its run, each run with its children and its
 * parent, and every other row with its run; then the schedules with the runs that they wait for. The log is the source of truth: a difference is a bug or a manual change.
 *
 * Workers may execute runs meanwhile. A run with a difference is therefore read again a moment later, and the difference is
 * reported only if the run did not change while it was read. `verify` has at most a page of rows, and payloads and logs of
 * 8 MiB (or of one larger run), in memory.
 */

import { retriedRunIdOf } from "../../core/run/lineage.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import type { AuditedRun, Store } from "../../store/contract/store.js";
import { withEndEvent } from "../inspect/run-log.js";
import type { Difference } from "./difference.js";
import { ShapeRegistry } from "./shape-registry.js";
import { leftOverSlots, readRunsWithParkedSteps, stuckClasses, tasksWithoutClass } from "./verify-limits.js";
import { orphanedRows, unreadableRows } from "./verify-orphans.js";
import { checkQueuedStart } from "./verify-queued-starts.js";
import { checkRelations } from "./verify-relations.js";
import { examineRun } from "./verify-run.js";
import { stuckSchedules } from "./verify-schedules.js";

/** The result of `pawl.verify()`. */
export interface Verification {
  /** The number of runs that were checked. */
  readonly runs: number;
  /** The number of events that were read. */
  readonly events: number;
  /** The differences; at most 1,000 of them. */
  readonly differences: readonly Difference[];
  /** The number of all differences. */
  readonly found: number;
  /** The number of ancestry hashes that could not be recomputed, because no worker has registered the steps of their run. */
  readonly unchecked: number;
}

const runsPerPage = 200;
const maxBytesPerBatch = 8 * 1024 * 1024;
const maxDifferences = 1_000;
/** The delays before runs with differences are read again. There are several, because a run may change during each read. */
const recheckDelaysMs = [50, 250, 1_000];

export async function verify(store: Store, onlyRunId: string | undefined, runtime: Runtime): Promise<Verification> {
  const total = { runs: 0, events: 0, found: 0, unchecked: 0 };
  const shapes = await ShapeRegistry.read(store);
  const differences: Difference[] = [];
  const report = (difference: Difference) => {
    total.found += 1;
    if (differences.length < maxDifferences) differences.push(difference);
  };
  for await (const page of readPages(store, onlyRunId)) {
    const suspects: string[] = [];
    for (const batch of batchesOf(page)) {
      for (const { row, eventCount, differences: found, uncheckedHashes } of await examineRows(store, batch, shapes)) {
        total.runs += 1;
        total.unchecked += uncheckedHashes;
        total.events += eventCount;
        if (found.length > 0) suspects.push(row.id);
      }
    }
    for (const difference of await confirmDifferences(store, suspects, runtime)) report(difference);
  }
  if (onlyRunId === undefined) for (const difference of await confirmOrphans(store, runtime)) report(difference);
  return { ...total, differences };
}

async function* readPages(store: Store, onlyRunId: string | undefined): AsyncGenerator<readonly AuditedRun[]> {
  const { audit } = store.maintenance;
  if (onlyRunId !== undefined) return yield await audit.runsById([onlyRunId]);
  let after: string | null = null;
  for (;;) {
    const page: readonly AuditedRun[] = await audit.runs({ after, limit: runsPerPage });
    if (page.length > 0) yield page;
    const last = page.at(-1);
    if (last === undefined || page.length < runsPerPage) return;
    after = last.id;
  }
}

/** Splits a page into batches whose payloads and logs fit into memory; a larger run is a batch of its own. */
function* batchesOf(page: readonly AuditedRun[]): Generator<readonly AuditedRun[]> {
  let batch: AuditedRun[] = [];
  let bytes = 0;
  for (const row of page) {
    if (batch.length > 0 && bytes + row.bytes > maxBytesPerBatch) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(row);
    bytes += row.bytes;
  }
  if (batch.length > 0) yield batch;
}

interface VerifiedRun {
  readonly row: AuditedRun;
  readonly eventCount: number;
  readonly differences: readonly Difference[];
  readonly uncheckedHashes: number;
}

/** Reads and checks the runs of `rows`. A run that changed since `rows` were read may show false differences. */
async function examineRows(
  store: Store,
  rows: readonly AuditedRun[],
  shapes: ShapeRegistry,
): Promise<readonly VerifiedRun[]> {
  const ids = rows.map(({ id }) => id);
  const idsWithMessages = rows.flatMap(({ id, inboxRows }) => (inboxRows > 0 ? id : []));
  const records = new Map((await store.runsById(ids)).map((run) => [run.id, run]));
  const logs = await store.logs(ids);
  const inboxes = idsWithMessages.length === 0 ? null : await store.inbox(idsWithMessages);
  const isOwned = rows.some(({ task }) => task?.state === "owned");
  const workers = isOwned ? await store.workers() : [];
  const liveEpochs = new Map(workers.flatMap(({ id, epoch, live }) => (live ? [[id, epoch] as const] : [])));
  const runsWithParkedSteps = await readRunsWithParkedSteps(store, [...records.values()]);
  const relatedRuns = await readRelatedRuns(store, rows);
  const withoutClass: Difference[] = [];
  for await (const difference of tasksWithoutClass(store, rows)) withoutClass.push(difference);
  const verifiedRuns: VerifiedRun[] = [];
  for (const row of rows) {
    const run = records.get(row.id);
    if (run === undefined) continue;
    const log = withEndEvent({ ...run, finishedAt: row.finishedAt }, logs.get(row.id) ?? []);
    const inbox = inboxes?.get(row.id) ?? [];
    const { findings, state, uncheckedHashes } = examineRun({
      ...{ row, run, log, inbox, liveEpochs, shapes },
      hasParkedStep: runsWithParkedSteps.has(row.id),
    });
    await checkRelations(store.maintenance.audit, { row, relatedRuns }, state, findings);
    await checkQueuedStart(store, { row, run }, state, findings);
    const differences = [...findings.differences, ...withoutClass.filter(({ runId }) => runId === row.id)];
    verifiedRuns.push({ row, eventCount: log.length, differences, uncheckedHashes });
  }
  return verifiedRuns;
}

/** Reads the parents of these runs and, for retries, the runs that they retry. */
async function readRelatedRuns(store: Store, rows: readonly AuditedRun[]): Promise<ReadonlyMap<string, AuditedRun>> {
  const ids = new Set(rows.flatMap((row) => [row.parentId, retriedRunIdOf(row)]).filter((id) => id !== null));
  const relatedRows = ids.size === 0 ? [] : await store.maintenance.audit.runsById([...ids]);
  return new Map(relatedRows.map((row) => [row.id, row]));
}

/** Reads the runs again and returns the differences that still exist in runs that did not change while they were read. */
async function confirmDifferences(store: Store, suspects: readonly string[], runtime: Runtime): Promise<Difference[]> {
  const { audit } = store.maintenance;
  const differences: Difference[] = [];
  let unconfirmedIds = suspects;
  let differencesOfMovedRuns: Difference[] = [];
  for (const waitMs of recheckDelaysMs) {
    if (unconfirmedIds.length === 0) break;
    await sleep(runtime, waitMs);
    const movedIds: string[] = [];
    differencesOfMovedRuns = [];
    // The shapes are read again, because a worker with other code may have registered new ones since the last read.
    const shapes = await ShapeRegistry.read(store);
    for (const batch of batchesOf(await audit.runsById(unconfirmedIds))) {
      const verifiedRuns = await examineRows(store, batch, shapes);
      const rowsAfterwards = new Map((await audit.runsById(batch.map(({ id }) => id))).map((row) => [row.id, row]));
      for (const { row, differences: found } of verifiedRuns) {
        if (found.length === 0) continue;
        if (isUnchanged(row, rowsAfterwards.get(row.id))) differences.push(...found);
        else {
          movedIds.push(row.id);
          differencesOfMovedRuns.push(...found.filter(concernsLogOnly));
        }
      }
    }
    unconfirmedIds = movedIds;
  }
  return [...differences, ...differencesOfMovedRuns];
}

/** Whether the difference is in the log alone. Events never change, so it is reported even if the run keeps changing. */
const concernsLogOnly = ({ kind }: Difference) => kind === "log.unreadable" || kind === "log.duplicate_signal_key";

const isUnchanged = (before: AuditedRun, after: AuditedRun | undefined) =>
  JSON.stringify(before) === JSON.stringify(after);

/**
 * Searches twice and returns the rows that were found both times, because a run that is created or deleted between the reads
 * of two tables looks like an orphan.
 */
async function confirmOrphans(store: Store, runtime: Runtime): Promise<Difference[]> {
  const firstTexts = new Set<string>();
  for await (const { text } of orphanedAndUnreadableRows(store)) firstTexts.add(text);
  if (firstTexts.size === 0) return [];
  await sleep(runtime, recheckDelaysMs[1] as number);
  const confirmedOrphans: Difference[] = [];
  for await (const difference of orphanedAndUnreadableRows(store))
    if (firstTexts.has(difference.text)) confirmedOrphans.push(difference);
  return confirmedOrphans;
}

async function* orphanedAndUnreadableRows(store: Store): AsyncGenerator<Difference> {
  yield* orphanedRows(store);
  yield* unreadableRows(store);
  yield* leftOverSlots(store);
  yield* stuckClasses(store);
  yield* stuckSchedules(store);
}
