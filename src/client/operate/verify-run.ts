/** Compares the row and the task of one run with its log, which is the source of truth. */

import { decode } from "../../core/encoding/decode.js";
import { type DamagedDataError, PawlError } from "../../core/errors/errors.js";
import { attemptRunId, childRunId } from "../../core/naming/ids.js";
import { heroKeyOf } from "../../core/naming/start-key.js";
import { dataOf } from "../../core/run/event.js";
import { callerNode } from "../../core/run/lineage.js";
import { decodeMessage } from "../../core/run/message.js";
import { readParkingNote } from "../../core/run/parking-note.js";
import { type RunState, statusOf } from "../../core/run/state.js";
import type { AuditedRun, RunRecord } from "../../store/contract/store.js";
import { damagedColumnError, foldLog, messageOf } from "../inspect/damaged-data.js";
import { parkingNoteOf } from "../inspect/run-info.js";
import { Findings } from "./difference.js";
import type { StoredRun } from "./stored-run.js";
import { checkAncestry } from "./verify-ancestry.js";
import { checkTask } from "./verify-task.js";

export interface RunExamination {
  readonly findings: Findings;
  /** The state of the run, computed from its log; null if the log cannot be folded. */
  readonly state: RunState | null;
  /** The number of hashes that could not be recomputed. */
  readonly uncheckedHashes: number;
}

export function examineRun(stored: StoredRun): RunExamination {
  const findings = new Findings(stored.row.id);
  checkReadable(stored, findings);
  const state = foldOrReport(stored, findings);
  checkKeys(stored.row, findings);
  if (stored.row.finishedAt === null) checkOpen(stored, state, findings);
  else checkEnded(stored, findings);
  const uncheckedHashes = state === null ? 0 : checkLog(stored, state, findings);
  return { findings, state, uncheckedHashes };
}

/** Checks that every encoded value can be decoded, because the other checks do not read all values. */
function checkReadable({ run, log, inbox }: StoredRun, findings: Findings): void {
  const { id } = run;
  const read = (what: string, work: () => unknown, values: object) => {
    try {
      work();
    } catch (error) {
      findings.add("row.unreadable", `has ${what} that cannot be read: ${messageOf(error)}`, values);
    }
  };
  for (const column of ["input", "output", "error"] as const) {
    const text = run[column];
    if (text !== null) read(`an ${column}`, () => decode(text), { table: column });
  }
  read("a note about its waiting", () => parkingNoteOf(run), { table: "waiting" });
  const { damage } = run;
  if (damage !== undefined)
    findings.add("row.unreadable", `has a column "${damage.column}" that cannot be read: ${damage.problem}.`, {
      table: damage.column,
    });
  for (const row of inbox) read(`a message (${row.id})`, () => decodeMessage(row), { table: `inbox ${row.id}` });
  for (const { seq, data } of log) {
    try {
      if (data !== null) decode(data);
    } catch (error) {
      const { message } = damagedColumnError(id, `event ${seq}`, error);
      findings.add("log.unreadable", `has an event that cannot be read: ${message}`, { log: seq });
      return;
    }
  }
}

function foldOrReport({ row, log }: StoredRun, findings: Findings): RunState | null {
  try {
    return foldLog(row.id, log);
  } catch (error) {
    const seq = error instanceof PawlError ? (error as DamagedDataError).event : undefined;
    if (!findings.differences.some(({ kind }) => kind === "log.unreadable"))
      findings.add("log.unreadable", `has a log that cannot be folded: ${messageOf(error)}`, { log: seq ?? null });
    return null;
  }
}

function checkKeys(row: AuditedRun, findings: Findings): void {
  const { id, workflow, heroType, heroId, heroKey, startKey, finishedAt } = row;
  const { parentId, parentNode, parentIndex, parentAttempt } = row;
  const expectedHeroKey = heroType === null ? null : heroKeyOf(workflow, heroType, heroId);
  if (heroKey !== null && finishedAt !== null)
    findings.add("run.hero_key", "has ended but keeps its hero's key: no other run may start.", { table: heroKey });
  else if (heroKey !== null && heroKey !== expectedHeroKey)
    findings.add("run.hero_key", "keeps the key of another hero than its own.", {
      log: expectedHeroKey,
      table: heroKey,
    });
  if (parentId === null) {
    // The `parentNode` of a retry contains only the run that it retries, and no call.
    const namesNoCall = parentNode === null || callerNode(parentNode) === "";
    if (!namesNoCall || parentIndex !== null || parentAttempt !== null)
      findings.add("run.parent", "names the call of a parent that it does not have.", { table: parentNode });
    return;
  }
  if (startKey !== null)
    findings.add("run.start_key", "is a child and has an idempotency key, which no child has.", { table: startKey });
  if (id !== expectedIdOf(row))
    findings.add("run.parent", `names run ${parentId} as its parent, but its id was made for another place.`, {
      table: { parentId, parentNode, parentIndex, parentAttempt },
    });
}

/** Returns the id that the parent computes for the call that the row names; null if no call has such columns. */
function expectedIdOf({ parentId, parentNode, parentIndex, parentAttempt }: AuditedRun): string | null {
  if (parentId === null || parentNode === null) return null;
  const node = callerNode(parentNode);
  if (parentAttempt === null) return childRunId(parentId, node, parentIndex ?? 0);
  return parentIndex === null ? attemptRunId(parentId, node, parentAttempt) : null;
}

const activeStatuses = new Set(["pending", "waiting", "paused"]);

function checkOpen(stored: StoredRun, state: RunState | null, findings: Findings): void {
  const { row, run } = stored;
  if (!activeStatuses.has(row.status) && run.damage?.column !== "status")
    findings.add("run.status", `is ${row.status} but has no time of its end.`, {
      log: state === null ? null : statusOf(state),
      table: row.status,
    });
  if (row.task === null) return findings.add("task.missing", "has not ended but has no task: no worker finds it.");
  checkTask(stored, row.task, state, findings);
}

/** The end of a run is stored only in its row, so the columns must agree, and no event may be later than the end. */
function checkEnded({ row, run, log }: StoredRun, findings: Findings): void {
  const { status, finishedAt } = row;
  if (activeStatuses.has(status))
    findings.add("run.status", `is ${status} but has a time of its end.`, { table: status });
  if (row.task !== null)
    findings.add("task.left_over", `has ended (${status}) but still has a task.`, { log: status, table: row.task });
  const { seq } = readParkingNote(run.waiting);
  // The last event of `log` is the terminal event. It is made from the row, and `seq` does not count it.
  const events = log.length - 1;
  if (seq !== undefined && seq !== events)
    findings.add("log.short", `had ${seq} events when it ended, and its log has ${events}.`, {
      log: events,
      table: seq,
    });
  const lastAt = log.at(-2)?.at;
  if (lastAt !== undefined && lastAt > (finishedAt as number))
    findings.add("run.finished_at", "ended before the last event of its log.", { log: lastAt, table: finishedAt });
  if ((run.output !== null) !== (status === "completed") && !activeStatuses.has(status))
    findings.add("run.output", `is ${status} but has ${run.output === null ? "no" : "an"} output.`, { log: status });
  checkError(run, status, findings);
}

function checkError(run: RunRecord, status: string, findings: Findings): void {
  const name = errorName(run.error);
  if (status === "completed" && run.error !== null)
    findings.add("run.error", "is completed but has an error.", { log: status, table: name });
  if (status === "failed" && run.error === null) findings.add("run.error", "has failed but has no error.");
  if (status === "canceled" && run.error !== null && name !== "RunCanceledError")
    findings.add("run.error", "is canceled but has the error of a run that failed.", { log: status, table: name });
}

function errorName(text: string | null): unknown {
  try {
    return text === null ? null : (decode(text) as { readonly name?: unknown }).name;
  } catch {
    return "RunCanceledError";
  }
}

/** @returns the number of hashes that could not be recomputed */
function checkLog({ row, run, log, shapes }: StoredRun, state: RunState, findings: Findings): number {
  if (row.finishedAt !== null) findings.compare("run.started_at", "start", state.startedAt, row.startedAt);
  const keys = new Set<string>();
  for (const event of log) {
    const { key } = event.type === "signal.received" ? dataOf(event, "signal.received") : { key: undefined };
    if (key === undefined) continue;
    if (keys.has(key))
      findings.add("log.duplicate_signal_key", `has received the signal with the key "${key}" twice.`, {
        log: event.seq,
      });
    keys.add(key);
  }
  try {
    const { wrongHashes, uncheckedHashes } = checkAncestry(run, log, shapes);
    for (const { node, expected, actual } of wrongHashes)
      findings.add("log.ancestry", `has another ancestry hash for node "${node}" than its log gives.`, {
        log: expected,
        table: actual,
      });
    return uncheckedHashes;
  } catch (error) {
    findings.add("row.unreadable", `has a graph that cannot be read: ${messageOf(error)}`, { table: "input" });
    return 0;
  }
}
