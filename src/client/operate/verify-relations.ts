/** Compares a run with its children and its parent: the log of one must agree with the row of the other. */

import { childRunId } from "../../core/naming/ids.js";
import { nodeRunId } from "../../core/run/cancel-children.js";
import { retriedRunIdOf } from "../../core/run/lineage.js";
import { expandRanges } from "../../core/run/ranges.js";
import { isDispatched, type MapOp, type RunState } from "../../core/run/state.js";
import { childNode } from "../../core/run/step-key.js";
import type { Audit, AuditedRun } from "../../store/contract/store.js";
import type { Findings } from "./difference.js";

const childrenPerPage = 500;

/** A child as the log of its parent records it. */
interface ExpectedChild {
  readonly id: string;
  readonly state: "open" | "completed" | "failed" | "canceled" | "ended" | "not completed";
  /** Whether the parent has released the child, so that it may run. */
  readonly isReleased: boolean;
}

/** @param relatedRuns by id: the parent of the run and the run that it retries, if they exist */
export async function checkRelations(
  audit: Audit,
  { row, relatedRuns }: { readonly row: AuditedRun; readonly relatedRuns: ReadonlyMap<string, AuditedRun> },
  state: RunState | null,
  findings: Findings,
): Promise<void> {
  if (row.parentId !== null) checkParent(row, row.parentId, relatedRuns.get(row.parentId), state, findings);
  const predecessor = retriedRunIdOf(row);
  if (predecessor !== null && !relatedRuns.has(predecessor))
    findings.add("run.predecessor_missing", `is a retry of run ${predecessor}, which does not exist.`, {
      table: predecessor,
    });
  if (state !== null) await checkChildren(audit, row, state, findings);
}

function checkParent(
  row: AuditedRun,
  parentId: string,
  parent: AuditedRun | undefined,
  state: RunState | null,
  findings: Findings,
): void {
  if (parent === undefined)
    return findings.add("run.parent_missing", `is a child of run ${parentId}, which does not exist.`, {
      table: parentId,
    });
  const { task } = row;
  if (parent.finishedAt === null || row.finishedAt !== null || task === null) return;
  const isMoving = task.state === "owned" || task.pendingMessages > 0 || task.deliveries > 0;
  if (isMoving || state === null || state.cancelRequest !== null) return;
  findings.add("run.outlives_parent", `is open, although its parent ${parentId} has ended.`, {
    log: parent.status,
    table: row.status,
  });
}

async function checkChildren(audit: Audit, row: AuditedRun, state: RunState, findings: Findings): Promise<void> {
  for (const page of pagesOf(expectedChildren(row.id, state))) {
    const childrenById = new Map((await audit.runsById(page.map(({ id }) => id))).map((child) => [child.id, child]));
    for (const expectedChild of page) {
      const child = childrenById.get(expectedChild.id);
      if (child === undefined) await reportMissingChild(audit, row, expectedChild, findings);
      else checkChild(row, child, expectedChild, findings);
    }
  }
}

/**
 * Reports a missing child unless all its ancestors have ended: `prune` deletes children before their parents, so an
 * interrupted `prune` leaves parents without children.
 */
async function reportMissingChild(
  audit: Audit,
  row: AuditedRun,
  { id }: ExpectedChild,
  findings: Findings,
): Promise<void> {
  let ancestor: AuditedRun | undefined = row;
  while (ancestor?.finishedAt != null && ancestor.parentId !== null)
    ancestor = (await audit.runsById([ancestor.parentId]))[0];
  if (ancestor === undefined || ancestor.finishedAt !== null) return;
  findings.add("child.missing", `has started run ${id}, which does not exist.`, { log: id });
}

function checkChild(
  row: AuditedRun,
  child: AuditedRun,
  { state, isReleased }: ExpectedChild,
  findings: Findings,
): void {
  const values = { log: state, table: child.status };
  const { finishedAt, status, task } = child;
  if (state === "open") {
    const isParentNotified =
      row.finishedAt !== null || row.task === null || row.task.pendingMessages > 0 || row.task.state === "owned";
    if (finishedAt !== null && !isParentNotified)
      findings.add(
        "child.parent_not_notified",
        `waits for its child ${child.id}, which has ended without a message.`,
        values,
      );
    const isUnreleased =
      task?.state === "parked" && task.dueAt === null && task.pendingMessages === 0 && status === "pending";
    if (isUnreleased && isReleased && row.finishedAt === null)
      findings.add("task.stuck", `has released its child ${child.id}, which is still held.`, values);
    return;
  }
  const isConsistent =
    state === "ended"
      ? finishedAt !== null
      : state === "not completed"
        ? finishedAt !== null && status !== "completed"
        : status === state;
  if (!isConsistent)
    findings.add("child.status", `has its child ${child.id} as ${state} in its log, but that is ${status}.`, values);
}

function* expectedChildren(runId: string, state: RunState): Generator<ExpectedChild> {
  for (const [key, op] of state.ops) {
    if (op.kind === "child") yield { id: op.runId, state: op.phase, isReleased: true };
    else if (op.kind === "map") yield* childrenOfMap(runId, childNode(state, key), op);
    else if (isDispatched(op)) yield { id: nodeRunId(runId, state, key, op.attempt), state: "open", isReleased: true };
  }
}

function* childrenOfMap(runId: string, node: string, op: MapOp): Generator<ExpectedChild> {
  const failedIndexes = new Set(op.failedIndexes);
  // A retry adopts children of the run that it retries. These children have ids of that run and are checked with it.
  const adoptedIndexes = new Set((op.adopted ?? []).flatMap((one) => [...expandRanges(one.indexes)]));
  for (let index = 0; index < op.spawnedCount; index += 1) {
    if (adoptedIndexes.has(index)) continue;
    const state = !op.endedIndexes.has(index)
      ? "open"
      : failedIndexes.has(index)
        ? "not completed"
        : // The log does not record how the children ended that were still open when the map failed.
          op.phase === "failed"
          ? "ended"
          : "completed";
    yield { id: childRunId(runId, node, index), state, isReleased: index < op.releasedCount };
  }
}

function* pagesOf<T>(items: Iterable<T>): Generator<readonly T[]> {
  let page: T[] = [];
  for (const item of items) {
    page.push(item);
    if (page.length < childrenPerPage) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}
