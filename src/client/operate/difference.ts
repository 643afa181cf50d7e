/** What `verify` finds: a stable kind, whose it is, what the log and the table say, and a sentence for people. */
import { encode } from "../../core/encoding/encode.js";

/** What is wrong. New kinds may be added; the meaning of one never changes. */
export type DifferenceKind =
  /** A column, a message or the registry cannot be read. */
  | "row.unreadable"
  /** The log has a gap, or an event that cannot be read. */
  | "log.unreadable"
  /** Events at the end of the log are missing. */
  | "log.short"
  | "log.without_run"
  | "log.duplicate_signal_key"
  | "log.ancestry"
  | "run.status"
  | "run.started_at"
  | "run.finished_at"
  | "run.output"
  | "run.error"
  | "run.waiting"
  | "run.hero_key"
  | "run.start_key"
  /** The id of a child is made from its parent; these do not belong together. */
  | "run.parent"
  | "run.parent_missing"
  /** The run that it goes on for, as a retry, does not exist. */
  | "run.predecessor_missing"
  /** Its parent has ended, and nothing cancels it. */
  | "run.outlives_parent"
  | "task.missing"
  | "task.left_over"
  | "task.without_run"
  | "task.route"
  | "task.state"
  /** It belongs to a worker that is dead or unknown: no worker takes it. */
  | "task.owner"
  | "task.due"
  /** It is not due, not owned, and waits for nothing that could come. */
  | "task.stuck"
  | "task.message_count"
  | "inbox.without_task"
  | "cursor.without_run"
  | "child.missing"
  | "child.status"
  /** It has ended, and its parent waits without having been told. */
  | "child.parent_not_notified";

export interface Difference {
  /** Stable, for programs: `kinds` of the documentation. */
  readonly kind: DifferenceKind;
  /** null: of a row that belongs to no run. */
  readonly runId: string | null;
  readonly log: unknown;
  readonly table: unknown;
  /** One plain sentence. */
  readonly text: string;
}

/** Collects what is wrong with one run. */
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

  /** Adds a finding unless the log and the table say the same. */
  compare(kind: DifferenceKind, field: string, log: unknown, table: unknown): void {
    if (stableText(log) === stableText(table)) return;
    this.add(kind, `has another ${field} in its row (${stableText(table)}) than its log says (${stableText(log)}).`, {
      log,
      table,
    });
  }
}

const stableText = (value: unknown) => encode(value ?? null, { label: "value", limitBytes: Number.POSITIVE_INFINITY });
