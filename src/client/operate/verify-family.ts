/** Compares a run with its children and its parent: what one log says of another run must be so. */

import { childRunId } from "../../core/naming/ids.js";
import { nodeRunId } from "../../core/run/cancel-children.js";
import { predecessorOf } from "../../core/run/lineage.js";
import { indexes } from "../../core/run/ranges.js";
import { isDispatched, type MapOp, type RunState } from "../../core/run/state.js";
import { childNode } from "../../core/run/step-key.js";
import type { Audit, AuditedRun } from "../../store/contract/store.js";
import type { Findings } from "./difference.js";

const childrenPerPage = 500;

/** What the parent's log says of a child. */
interface Expected {
  readonly id: string;
  readonly how: "open" | "completed" | "failed" | "canceled" | "ended" | "not completed";
  /** It may run: its parent does not hold it back. */
  readonly released: boolean;
}

/** @param kin by id: the parents of runs, and the runs that retries go on for, as far as they exist */
export async function checkFamily(
  audit: Audit,
  { row, kin }: { readonly row: AuditedRun; readonly kin: ReadonlyMap<string, AuditedRun> },
  state: RunState | null,
  findings: Findings,
): Promise<void> {
  if (row.parentId !== null) checkParent(row, row.parentId, kin.get(row.parentId), state, findings);
  const predecessor = predecessorOf(row);
  if (predecessor !== null && !kin.has(predecessor))
    findings.add("run.predecessor_missing", `goes on for run ${predecessor}, which does not exist.`, {
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
  const isMoving = task.state === "owned" || task.mail > 0 || task.deliveries > 0;
  if (isMoving || state === null || state.cancel !== null) return;
  findings.add("run.outlives_parent", `is open, although its parent ${parentId} has ended.`, {
    log: parent.status,
    table: row.status,
  });
}

async function checkChildren(audit: Audit, row: AuditedRun, state: RunState, findings: Findings): Promise<void> {
  for (const expected of pagesOf(expectedChildren(row.id, state))) {
    const found = new Map((await audit.runsById(expected.map(({ id }) => id))).map((child) => [child.id, child]));
    for (const one of expected) {
      const child = found.get(one.id);
      if (child === undefined) await addMissing(audit, row, one, findings);
      else checkChild(row, child, one, findings);
    }
  }
}

/** Pruning takes the children of a tree that is over before their parent, and may be cut short. */
async function addMissing(audit: Audit, row: AuditedRun, { id }: Expected, findings: Findings): Promise<void> {
  let ancestor: AuditedRun | undefined = row;
  while (ancestor?.finishedAt != null && ancestor.parentId !== null)
    ancestor = (await audit.runsById([ancestor.parentId]))[0];
  if (ancestor === undefined || ancestor.finishedAt !== null) return;
  findings.add("child.missing", `has started run ${id}, which does not exist.`, { log: id });
}

function checkChild(row: AuditedRun, child: AuditedRun, { how, released }: Expected, findings: Findings): void {
  const says = { log: how, table: child.status };
  const { finishedAt, status, task } = child;
  if (how === "open") {
    const isTold = row.finishedAt !== null || row.task === null || row.task.mail > 0 || row.task.state === "owned";
    if (finishedAt !== null && !isTold)
      findings.add("child.untold", `waits for its child ${child.id}, which has ended without a message.`, says);
    const isHeld = task?.state === "parked" && task.dueAt === null && task.mail === 0 && status === "pending";
    if (isHeld && released && row.finishedAt === null)
      findings.add("task.stuck", `has let its child ${child.id} go, but that is still held.`, says);
    return;
  }
  const isSo =
    how === "ended"
      ? finishedAt !== null
      : how === "not completed"
        ? finishedAt !== null && status !== "completed"
        : status === how;
  if (!isSo) findings.add("child.status", `knows its child ${child.id} as ${how}, but that is ${status}.`, says);
}

function* expectedChildren(runId: string, state: RunState): Generator<Expected> {
  for (const [key, op] of state.ops) {
    if (op.kind === "child") yield { id: op.runId, how: op.phase, released: true };
    else if (op.kind === "map") yield* childrenOfMap(runId, childNode(state, key), op);
    else if (isDispatched(op)) yield { id: nodeRunId(runId, state, key, op.attempt), how: "open", released: true };
  }
}

function* childrenOfMap(runId: string, node: string, op: MapOp): Generator<Expected> {
  const failed = new Set(op.failed);
  // Those that a retry has taken over are children of the run that it goes on for, and are looked at there.
  const adopted = new Set((op.adopted ?? []).flatMap((one) => [...indexes(one.indexes)]));
  for (let index = 0; index < op.spawned; index += 1) {
    if (adopted.has(index)) continue;
    const how = !op.ended.has(index)
      ? "open"
      : failed.has(index)
        ? "not completed"
        : // Those that ended after the map had failed are not told apart.
          op.phase === "failed"
          ? "ended"
          : "completed";
    yield { id: childRunId(runId, node, index), how, released: index < op.released };
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
