/** Counts runs by workflow and status. */
import type { Store } from "../../store/contract/store.js";

/** The number of runs in each status. */
export interface StatusNumbers {
  /** Runs that have not started. */
  readonly pending: number;
  /** Runs that a worker executes. */
  readonly running: number;
  /** Runs that wait for a time, a signal or another run. */
  readonly waiting: number;
  /** Runs that wait for an operator. */
  readonly paused: number;
  /** Runs that failed. */
  readonly failed: number;
  /** Runs that were canceled. */
  readonly canceled: number;
}

/** The numbers of runs, as `pawl.counts()` returns them. */
export interface RunCounts {
  /** The numbers of all workflows together. */
  readonly total: StatusNumbers;
  /** The numbers of each workflow that has such runs. */
  readonly workflows: Readonly<Record<string, StatusNumbers>>;
  /** The statuses of which there are more runs than were counted, so that the numbers are lower bounds. */
  readonly capped: readonly (keyof StatusNumbers)[];
}

const maxCounted = 10_000;

export async function readCounts(store: Store): Promise<RunCounts> {
  const { counts, cappedStatuses } = await store.maintenance.questions.statusCounts({ cap: maxCounted });
  const total = newNumbers();
  const byWorkflow = new Map<string, Mutable<StatusNumbers>>();
  for (const { workflow, status, count } of counts) {
    const numbers = byWorkflow.get(workflow) ?? newNumbers();
    byWorkflow.set(workflow, numbers);
    numbers[status] += count;
    total[status] += count;
  }
  const sortedEntries = [...byWorkflow].sort(([a], [b]) => (a < b ? -1 : 1));
  return { total, workflows: Object.fromEntries(sortedEntries), capped: cappedStatuses };
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

const newNumbers = (): Mutable<StatusNumbers> => ({
  pending: 0,
  running: 0,
  waiting: 0,
  paused: 0,
  failed: 0,
  canceled: 0,
});
