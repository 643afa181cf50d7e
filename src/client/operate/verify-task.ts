/**
 * Compares a task with the log of its run, and checks that no run is stuck: every open task is due, is owned, or waits for
 * something that its log names.
 */

import { frozenDagVersion, graphRoute } from "../../core/naming/route.js";
import { readParkingNote } from "../../core/run/parking-note.js";
import { type RunState, statusOf } from "../../core/run/state.js";
import type { ParkingNote } from "../../core/run/stored-schema.js";
import { nextDueAt, waitingFor } from "../../core/run/waiting.js";
import type { AuditedRun, AuditedTask } from "../../store/contract/store.js";
import type { Findings } from "./difference.js";
import type { StoredRun } from "./stored-run.js";
import { isQueued } from "./verify-queued-starts.js";

export function checkTask(stored: StoredRun, task: AuditedTask, state: RunState | null, findings: Findings): void {
  const { row } = stored;
  checkTaskRow(row, task, findings);
  checkOwner(stored, task, findings);
  if (task.pendingMessages !== row.inboxRows)
    findings.add("task.message_count", `counts ${task.pendingMessages} messages, but its inbox has ${row.inboxRows}.`, {
      log: row.inboxRows,
      table: task.pendingMessages,
    });
  if (row.inboxRows > 0 && task.state === "parked")
    findings.add("task.stuck", "has messages in its inbox and is parked: no worker reads them.", { table: task });
  if (state !== null) checkAgainstLog(stored, task, state, findings);
}

function checkTaskRow(row: AuditedRun, task: AuditedTask, findings: Findings): void {
  const report = (text: string) => findings.add("task.state", text, { table: task });
  if (task.state === null) report("has a task in a state that does not exist.");
  if (task.state === "ready" && task.dueAt === null) report("has a task that is ready but not due.");
  if (task.state === "owned" && (task.owner === null || task.epoch === null)) report("is owned by no worker.");
  if (task.state !== "owned" && task.owner !== null) report("names an owner but is not owned.");
  const isRouteOfWorkflow = task.route === row.workflow || task.route === graphRoute || task.route.includes("\t");
  if (!isRouteOfWorkflow || task.version !== row.version)
    findings.add("task.route", "has a task of another workflow or version: only workers that lack it look for it.", {
      log: { workflow: row.workflow, version: row.version },
      table: { route: task.route, version: task.version },
    });
}

function checkOwner({ liveEpochs }: StoredRun, task: AuditedTask, findings: Findings): void {
  if (task.state !== "owned" || task.owner === null) return;
  const epoch = liveEpochs.get(task.owner);
  if (epoch === task.epoch) return;
  const why = epoch === undefined ? "which is dead or unknown" : `whose epoch is ${epoch} by now`;
  findings.add("task.owner", `belongs to worker ${task.owner} (epoch ${task.epoch}), ${why}: no worker takes it.`, {
    log: epoch ?? null,
    table: { owner: task.owner, epoch: task.epoch },
  });
}

function checkAgainstLog(
  { row, run, hasParkedStep }: StoredRun,
  task: AuditedTask,
  state: RunState,
  findings: Findings,
): void {
  const note = readParkingNote(run.waiting);
  // An owner writes the row only when it parks the run, so while the run is owned, or after its owner died, only the log
  // is current.
  const isRowCurrent = task.state !== "owned" && task.deliveries === 0;
  if (note.seq !== undefined && (state.seq < note.seq || (isRowCurrent && state.seq > note.seq)))
    findings.add("log.short", `had ${note.seq} events when it was parked, and its log has ${state.seq}.`, {
      log: state.seq,
      table: note.seq,
    });
  if (!isRowCurrent) return;
  if (row.status !== statusOf(state)) findings.compare("run.status", "status", statusOf(state), row.status);
  findings.compare("run.started_at", "start", state.startedAt, row.startedAt);
  if (task.pendingMessages > 0) return;
  if (state.startedAt === null) checkNotStarted(row, task, state, findings, isQueued(run));
  else checkParked({ waiting: run.waiting, note, hasParkedStep }, task, state, findings);
}

/**
 * A run that has not started has a due time, also while it is paused. If it has none, its parent, the run before it or
 * `run.start()` must be going to release it, or its time came during a pause and it starts when it is resumed.
 */
function checkNotStarted(
  row: AuditedRun,
  task: AuditedTask,
  state: RunState,
  findings: Findings,
  waitsForRun: boolean,
): void {
  if (task.dueAt !== null || waitsForRun || awaitsRelease(row) || (state.paused !== null && state.becameDueWhilePaused))
    return;
  findings.add("task.stuck", "has not started, is not due, and nothing will start it.", { table: task });
}

/**
 * Whether the run may wait to be released: a built graph by `run.start()`, a child of a map by its parent.
 * `verify-relations.ts` checks whether the parent has released the child.
 */
const awaitsRelease = ({ version, parentId, parentIndex }: AuditedRun) =>
  parentId === null ? version === frozenDagVersion : parentIndex !== null;

interface ParkedNote {
  readonly waiting: string | null;
  readonly note: ParkingNote;
  readonly hasParkedStep: boolean;
}

function checkParked(
  { waiting, note, hasParkedStep }: ParkedNote,
  task: AuditedTask,
  state: RunState,
  findings: Findings,
): void {
  const hasUnseenWake = note.seenVersion === undefined || note.seenVersion < state.wakeVersion;
  const expectedWaits = waitingFor(state);
  if (waiting === null) findings.add("run.waiting", "is parked without a note of what it waits for.");
  else findings.compare("run.waiting", "note of what it waits for", expectedWaits, note.waitingFor);
  if (task.state === "ready" && hasUnseenWake) return;
  // The time of a step that waits for a slot of a limit may have passed: a slot makes the run due.
  const waitsForSlots = note.parkedSteps === true && note.seenVersion === undefined;
  if (!waitsForSlots) findings.compare("task.due", "due time", nextDueAt(state), task.dueAt);
  if (state.paused !== null || task.state === "ready" || task.dueAt !== null) return;
  if (waitsForSlots && !hasParkedStep)
    findings.add("task.stuck", "waits for a slot of a limit, and has no place in its line.", { table: task });
  if (!waitsForSlots && expectedWaits.length === 0)
    findings.add("task.stuck", "is parked, not due, and waits for nothing that its log names.", { table: task });
}
