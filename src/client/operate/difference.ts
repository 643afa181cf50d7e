/** The differences that `verify` finds: each has a stable kind, its run, the values in log and table, and a sentence. */
import { encode } from "../../core/encoding/encode.js";

/** The kind of a difference. New kinds may be added, but the meaning of a kind never changes. */
export type DifferenceKind =
  /** A column, a message or the registry cannot be read. */
  | "row.unreadable"
  /** The log has a gap, or an event that cannot be read. */
  | "log.unreadable"
  /** Events at the end of the log are missing. */
  | "log.short"
  /** Events exist for a run that does not exist. */
  | "log.without_run"
  /** Two signals with the same key were received. */
  | "log.duplicate_signal_key"
  /** The ancestry hash of a step differs from the hash that is recomputed from the log. */
  | "log.ancestry"
  /** The status in the row differs from the status that follows from the log, or contradicts the end of the run. */
  | "run.status"
  /** The start time in the row differs from the start time in the log. */
  | "run.started_at"
  /** The run ended before the last event of its log. */
  | "run.finished_at"
  /** A completed run has no output, or a run that did not complete has an output. */
  | "run.output"
  /** The error in the row contradicts the status. */
  | "run.error"
  /** The note of what a parked run waits for is missing, or differs from what the log says. */
  | "run.waiting"
  /** The run has ended but still blocks new runs for its hero, or it blocks new runs for a hero that is not its own. */
  | "run.hero_key"
  /** The run is a child but has an idempotency key, which only runs that a client started may have. */
  | "run.start_key"
  /** The id of a child is computed from the id of its parent and the call, and the stored id differs from that. */
  | "run.parent"
  /** The parent of the run does not exist. */
  | "run.parent_missing"
  /** The run is a retry, and the run that it retries does not exist. */
  | "run.predecessor_missing"
  /** The run is open although its parent has ended, and no cancel was requested. */
  | "run.outlives_parent"
  /** The run has not ended and has no task, so no worker finds it. */
  | "task.missing"
  /** The run has ended and still has a task. */
  | "task.left_over"
  /** A task exists for a run that does not exist. */
  | "task.without_run"
  /** The task names a workflow or version that is not the one of its run. */
  | "task.route"
  /** The columns of the task contradict each other. */
  | "task.state"
  /** The owner of the task is dead or unknown, so no worker executes the run. */
  | "task.owner"
  /** The due time of the task differs from the due time that follows from the log. */
  | "task.due"
  /** The task waits in a class that does not exist, or is of another version, so it is never admitted. */
  | "task.class_missing"
  /** A slot of a limit is held for a run that its worker does not execute, so other runs wait for it in vain. */
  | "slot.left_over"
  /** A slot is held of a limit that does not exist, so nothing says how many there are. */
  | "slot.limit_missing"
  /** Runs wait for a slot of a limit that does not exist, so they are never admitted. */
  | "class.limit_missing"
  /** A class of waiting runs is blocked on a key that its runs do not need, so it is not looked at when theirs has room. */
  | "class.blocked_elsewhere"
  /** A class of waiting runs names another queue than the one that they came from, so no worker asks for it. */
  | "class.route"
  /** The task is not due and not owned, and the run waits for no event that could wake it. */
  | "task.stuck"
  /** The number of messages that the task counts differs from the number in the inbox. */
  | "task.message_count"
  /** Messages exist for a run that has no task. */
  | "inbox.without_task"
  /** A cursor exists for a run that does not exist. */
  | "cursor.without_run"
  /** Starts were gathered for a run that does not exist. */
  | "gathered.without_run"
  /** An instant by which a run must begin exists for a run that does not exist. */
  | "start_deadline.without_run"
  /** The run has started a child that does not exist. */
  | "child.missing"
  /** The status of a child differs from the status that the log of its parent records. */
  | "child.status"
  /** The child has ended, but its parent still waits for it and has no message about the end in its inbox. */
  | "child.parent_not_notified"
  /** The schedule is active and has no time at which it fires. */
  | "schedule.stuck"
  /** An occurrence waits for the end of a run that is not open, and nothing makes its schedule due. */
  | "occurrence.stuck";

/** A difference that `pawl.verify()` found. */
export interface Difference {
  /** The kind of the difference, for programs. */
  readonly kind: DifferenceKind;
  /** The id of the run; null for a row that belongs to no run. */
  readonly runId: string | null;
  /** The value in the log, or the value that follows from the log. */
  readonly log: unknown;
  /** The value in the table. */
  readonly table: unknown;
  /** The difference in one sentence. */
  readonly text: string;
}

/** Collects the differences of one run. */
export class Findings {
  readonly runId: string;
  readonly differences: Difference[] = [];

  constructor(runId: string) {
    this.runId = runId;
  }

  add(kind: DifferenceKind, text: string, values: { readonly log?: unknown; readonly table?: unknown } = {}): void {
    const { log = null, table = null } = values;
    this.differences.push({ kind, runId: this.runId, log, table, text: `Run ${this.runId} ${text}` });
  }

  /** Adds a difference unless the log and the table have the same value. */
  compare(kind: DifferenceKind, field: string, log: unknown, table: unknown): void {
    if (stableText(log) === stableText(table)) return;
    this.add(kind, `has another ${field} in its row (${stableText(table)}) than its log says (${stableText(log)}).`, {
      log,
      table,
    });
  }
}

const stableText = (value: unknown) => encode(value ?? null, { label: "value", limitBytes: Number.POSITIVE_INFINITY });
