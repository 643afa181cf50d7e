/** The parts of a waterfall: spans of time, in rows. Instants are milliseconds of the store's clock. */

/** What the time of a span was spent on. */
export const spanKinds = [
  /** The run or step could have gone on, and no worker had taken it yet. */
  "queue",
  /** Code of a step was running, or waited for calls of its own. */
  "execution",
  /** The code waited for a time, a signal or another run. */
  "wait",
  /** The run was paused. */
  "pause",
  /** The worker that had the run died, and recorded nothing in this time. */
  "lost",
] as const;
export type SpanKind = (typeof spanKinds)[number];

export const waitCauses = ["start", "step", "retry", "reattempt", "sleep", "signal", "child", "map"] as const;
/** What a span of waiting ends with. */
export type WaitCause = (typeof waitCauses)[number];

export const rowKinds = ["run", "step", "compensation", "sleep", "signal", "child", "map", "branch"] as const;
export type RowKind = (typeof rowKinds)[number];

/** The states of rows, and of spans unless they are of a row that has not begun or of the run. */
export const rowStates = [
  "pending",
  "scheduled",
  "executing",
  "running",
  "waiting",
  "paused",
  "completed",
  "failed",
  "canceled",
  "skipped",
] as const;
export type RowState = (typeof rowStates)[number];

export interface WaterfallSpan {
  readonly kind: SpanKind;
  /** What a wait ends with; null for other kinds. */
  readonly waitsFor: WaitCause | null;
  readonly state: RowState;
  /** How an execution ended; "timed_out" for a wait that did, and "inherited" for a step that an earlier run executed. */
  readonly outcome: string | null;
  readonly attempt: number | null;
  /** The name of the worker, where the log has it. */
  readonly worker: string | null;
  readonly from: number;
  /** null: it has not ended. */
  readonly to: number | null;
  /** When a wait is over if nothing else happens. */
  readonly dueAt: number | null;
  /** Whether the span began before the first event of the window, so that `from` is too late. */
  readonly isCut: boolean;
  /** Why the run was paused. It may quote payloads. */
  readonly reason: string | null;
  /** How many spans of a group this one stands for. */
  readonly count: number;
}

export type MutableSpan = { -readonly [Field in keyof WaterfallSpan]: WaterfallSpan[Field] };

export interface ChildLink {
  /** null: the id cannot be computed from this window of the log. */
  readonly runId: string | null;
  readonly workflow: string;
}

/** What a row that stands for several others contains. */
export interface GroupSummary {
  /** What `expand` takes. */
  readonly id: string;
  readonly count: number;
  readonly ended: number;
  readonly failed: number;
  /** How many have not begun. */
  readonly pending: number;
}

export interface WaterfallRow {
  /** Unique in the answer, and the same in later answers. */
  readonly id: string;
  /** The key of the call in the log; null for the run and for groups. */
  readonly node: string | null;
  readonly name: string;
  readonly kind: RowKind;
  /** How deep the row is nested. */
  readonly depth: number;
  readonly state: RowState;
  /** The number of the latest attempt; 0 for what has no attempts. */
  readonly attempts: number;
  /** The names of the signals of a wait, or the choice of a branch. */
  readonly detail: string | null;
  readonly child: ChildLink | null;
  /** Set if the row stands for several others: steps with similar names, or the children of a map. */
  readonly group: GroupSummary | null;
  readonly spans: readonly WaterfallSpan[];
}

/** A row before it is grouped and flattened. */
export interface RowNode {
  readonly row: WaterfallRow;
  /** The number of the first event about it, for windows that move while a group is open. */
  readonly firstSeq: number;
  /** The calls of its body. */
  readonly children: readonly RowNode[];
  /** The children of a map, which are listed only when they are asked for. */
  readonly members?: () => readonly RowNode[];
}

const spanDefaults = {
  waitsFor: null,
  outcome: null,
  attempt: null,
  worker: null,
  to: null,
  dueAt: null,
  isCut: false,
  reason: null,
  count: 1,
} as const;

export const newSpan = (
  span: Pick<WaterfallSpan, "kind" | "state" | "from"> & Partial<WaterfallSpan>,
): MutableSpan => ({ ...spanDefaults, ...span });

/** When the row begins; infinite if it has not begun. */
export const startOf = ({ spans }: Pick<WaterfallRow, "spans">): number =>
  spans.reduce((first, { from }) => Math.min(first, from), Number.POSITIVE_INFINITY);

/** A claim takes a few milliseconds. Shorter queue times would double the number of spans and tell nothing. */
export const minQueueMs = 20;

/**
 * Splits a wait at the instant when it was due: what follows is queue time, until a worker went on. A wait that has not
 * ended by `until` and was due before is in the queue still.
 *
 * @param dueAt when the wait was over; null if it was over when it ended
 */
export function splitAtDue(wait: MutableSpan, dueAt: number | null, until: number): MutableSpan[] {
  const end = wait.to ?? until;
  if (dueAt === null || end - dueAt < minQueueMs || dueAt < wait.from) return [wait];
  const queue = newSpan({ ...wait, kind: "queue", waitsFor: null, from: dueAt, dueAt: null, isCut: false });
  const isOver = wait.to === null;
  return [{ ...wait, to: dueAt, state: isOver ? "completed" : wait.state }, queue];
}
