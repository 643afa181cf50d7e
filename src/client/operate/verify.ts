/**
 * Reads everything that is stored and compares: each log with its run's row and task, runs with their children and
 * parents, and every other row with the run that it belongs to. The log is the truth; a difference is a bug or a hand.
 *
 * Workers may go on meanwhile. What looks wrong is looked at again a moment later, and counts only if the run stood still
 * while it was read. Memory is bounded: a page of rows, and as many payloads and logs as fit into a few megabytes.
 */

import { predecessorOf } from "../../core/run/lineage.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import type { AuditedRun, Store } from "../../store/contract/store.js";
import { withEnding } from "../inspect/log.js";
import type { Difference } from "./difference.js";
import { Shapes } from "./shapes.js";
import { checkFamily } from "./verify-family.js";
import { examineRun } from "./verify-run.js";
import { strayRows, unreadableRows } from "./verify-strays.js";

export interface Verification {
  readonly runs: number;
  readonly events: number;
  /** The first thousand. */
  readonly differences: readonly Difference[];
  /** How many there are in all. */
  readonly found: number;
  /** Ancestry hashes that could not be computed again: no worker has registered the steps that their run was executed with. */
  readonly unchecked: number;
}

const runsPerPage = 200;
const bytesAtOnce = 8 * 1024 * 1024;
const differencesKept = 1_000;
/** After each of these a suspect is looked at again; between two looks of a run at work, it has moved. */
const looksAfterMs = [50, 250, 1_000];

export async function verify(store: Store, onlyRun: string | undefined, runtime: Runtime): Promise<Verification> {
  const total = { runs: 0, events: 0, found: 0, unchecked: 0 };
  const shapes = await Shapes.read(store);
  const differences: Difference[] = [];
  const report = (difference: Difference) => {
    total.found += 1;
    if (differences.length < differencesKept) differences.push(difference);
  };
  for await (const page of pages(store, onlyRun)) {
    const suspects: string[] = [];
    for (const part of partsOf(page)) {
      for (const { row, events, found, unchecked } of await examine(store, part, shapes)) {
        total.runs += 1;
        total.unchecked += unchecked;
        total.events += events;
        if (found.length > 0) suspects.push(row.id);
      }
    }
    for (const difference of await confirmed(store, suspects, runtime)) report(difference);
  }
  if (onlyRun === undefined) for (const difference of await confirmedStrays(store, runtime)) report(difference);
  return { ...total, differences };
}

async function* pages(store: Store, onlyRun: string | undefined): AsyncGenerator<readonly AuditedRun[]> {
  const { audit } = store.upkeep;
  if (onlyRun !== undefined) return yield await audit.runsById([onlyRun]);
  let after: string | null = null;
  for (;;) {
    const page: readonly AuditedRun[] = await audit.runs({ after, limit: runsPerPage });
    if (page.length > 0) yield page;
    const last = page.at(-1);
    if (last === undefined || page.length < runsPerPage) return;
    after = last.id;
  }
}

/** Parts whose payloads and logs fit into memory together; a run that does not fit is one of its own. */
function* partsOf(page: readonly AuditedRun[]): Generator<readonly AuditedRun[]> {
  let part: AuditedRun[] = [];
  let bytes = 0;
  for (const row of page) {
    if (part.length > 0 && bytes + row.bytes > bytesAtOnce) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(row);
    bytes += row.bytes;
  }
  if (part.length > 0) yield part;
}

interface Looked {
  readonly row: AuditedRun;
  readonly events: number;
  readonly found: readonly Difference[];
  readonly unchecked: number;
}

/** `rows` must have been read before: what moved since then may look wrong. */
async function examine(store: Store, rows: readonly AuditedRun[], shapes: Shapes): Promise<readonly Looked[]> {
  const ids = rows.map(({ id }) => id);
  const mailed = rows.flatMap(({ id, inboxRows }) => (inboxRows > 0 ? id : []));
  const records = new Map((await store.runsById(ids)).map((run) => [run.id, run]));
  const logs = await store.logs(ids);
  const inboxes = mailed.length === 0 ? null : await store.inbox(mailed);
  const isOwned = rows.some(({ task }) => task?.state === "owned");
  const workers = isOwned ? await store.workers() : [];
  const epochs = new Map(workers.flatMap(({ id, epoch, live }) => (live ? [[id, epoch] as const] : [])));
  const kin = await kinOf(store, rows);
  const looked: Looked[] = [];
  for (const row of rows) {
    const run = records.get(row.id);
    if (run === undefined) continue;
    const log = withEnding({ ...run, finishedAt: row.finishedAt }, logs.get(row.id) ?? []);
    const inbox = inboxes?.get(row.id) ?? [];
    const { findings, state, unchecked } = examineRun({ row, run, log, inbox, epochs, shapes });
    await checkFamily(store.upkeep.audit, { row, kin }, state, findings);
    looked.push({ row, events: log.length, found: findings.found, unchecked });
  }
  return looked;
}

/** Their parents, and the runs that they go on for. */
async function kinOf(store: Store, rows: readonly AuditedRun[]): Promise<ReadonlyMap<string, AuditedRun>> {
  const ids = new Set(rows.flatMap((row) => [row.parentId, predecessorOf(row)]).filter((id) => id !== null));
  const found = ids.size === 0 ? [] : await store.upkeep.audit.runsById([...ids]);
  return new Map(found.map((row) => [row.id, row]));
}

/** Those differences of the suspects that are still there, of runs that stood still while they were read. */
async function confirmed(store: Store, suspects: readonly string[], runtime: Runtime): Promise<Difference[]> {
  const { audit } = store.upkeep;
  const differences: Difference[] = [];
  let open = suspects;
  let busy: Difference[] = [];
  for (const waitMs of looksAfterMs) {
    if (open.length === 0) break;
    await sleep(runtime, waitMs);
    const moved: string[] = [];
    busy = [];
    // Workers with other code may have come in between.
    const shapes = await Shapes.read(store);
    for (const part of partsOf(await audit.runsById(open))) {
      const looked = await examine(store, part, shapes);
      const after = new Map((await audit.runsById(part.map(({ id }) => id))).map((row) => [row.id, row]));
      for (const { row, found } of looked) {
        if (found.length === 0) continue;
        if (isSame(row, after.get(row.id))) differences.push(...found);
        else {
          moved.push(row.id);
          busy.push(...found.filter(isOfLogAlone));
        }
      }
    }
    open = moved;
  }
  return [...differences, ...busy];
}

/** What is wrong with a log alone stays so, however busy its run is. */
const isOfLogAlone = ({ kind }: Difference) => kind === "log.unreadable" || kind === "log.doubled_signal_key";

const isSame = (before: AuditedRun, after: AuditedRun | undefined) => JSON.stringify(before) === JSON.stringify(after);

/** A run may be born or deleted between two reads of different tables; what is found twice is really there. */
async function confirmedStrays(store: Store, runtime: Runtime): Promise<Difference[]> {
  const first = new Set<string>();
  for await (const { text } of allStrays(store)) first.add(text);
  if (first.size === 0) return [];
  await sleep(runtime, looksAfterMs[1] as number);
  const found: Difference[] = [];
  for await (const difference of allStrays(store)) if (first.has(difference.text)) found.push(difference);
  return found;
}

async function* allStrays(store: Store): AsyncGenerator<Difference> {
  yield* strayRows(store);
  yield* unreadableRows(store);
}
