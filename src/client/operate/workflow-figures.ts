/** Reads how many runs of each workflow began and ended, for a list of all workflows. */
import { InvalidInputError } from "../../core/errors/errors.js";
import type { Store } from "../../store/contract/store.js";

export interface WorkflowFiguresOptions {
  /** The first instant. Default: three hours before the last. */
  readonly from?: Date | undefined;
  /** The last instant. Default: the present. At most one day after the first. */
  readonly to?: Date | undefined;
}

/** What happened to the runs of one workflow, in total and in each bucket of time. */
export interface WorkflowFigures {
  readonly workflow: string;
  readonly began: number;
  readonly completed: number;
  readonly failed: number;
  readonly canceled: number;
  readonly paused: number;
  readonly beganByBucket: readonly number[];
  readonly completedByBucket: readonly number[];
  readonly failedByBucket: readonly number[];
}

export interface WorkflowFiguresReport {
  /** The beginning of the first bucket. */
  readonly from: Date;
  readonly bucketMs: number;
  readonly workflows: readonly WorkflowFigures[];
  /** Whether more workflows had runs than are listed. */
  readonly isCut: boolean;
}

const minuteMs = 60_000;
const bucketMinutes = 5;
const defaultMinutes = 3 * 60;
const maxMinutes = 24 * 60;
const maxWorkflows = 500;

/** The database adds up the minutes of each bucket, so that the answer has a fifth of the stored rows at most. */
export async function readWorkflowFigures(
  store: Store,
  options: WorkflowFiguresOptions,
): Promise<WorkflowFiguresReport> {
  const to = Math.floor((options.to?.getTime() ?? (await store.now())) / minuteMs);
  const from = options.from === undefined ? to - defaultMinutes + 1 : Math.floor(options.from.getTime() / minuteMs);
  if (to < from || to - from > maxMinutes)
    throw new InvalidInputError("`from` and `to` must be in order, and at most one day apart.");
  const first = from - (from % bucketMinutes);
  const bucketCount = Math.floor((to - first) / bucketMinutes) + 1;
  const rows = await store.maintenance.questions.figures({ from: first, to, bucketMinutes });
  const byWorkflow = new Map<string, MutableFigures>();
  for (const row of rows) {
    const sum = byWorkflow.get(row.workflow) ?? newFigures(row.workflow, bucketCount);
    byWorkflow.set(row.workflow, sum);
    const bucket = (row.minute - first) / bucketMinutes;
    for (const name of ["began", "completed", "failed", "canceled", "paused"] as const) sum[name] += row[name];
    sum.beganByBucket[bucket] = row.began;
    sum.completedByBucket[bucket] = row.completed;
    sum.failedByBucket[bucket] = row.failed;
  }
  const busiestFirst = [...byWorkflow.values()].sort((a, b) => b.began - a.began || (a.workflow < b.workflow ? -1 : 1));
  return {
    from: new Date(first * minuteMs),
    bucketMs: bucketMinutes * minuteMs,
    workflows: busiestFirst.slice(0, maxWorkflows),
    isCut: busiestFirst.length > maxWorkflows,
  };
}

type MutableFigures = {
  -readonly [Key in keyof WorkflowFigures]: WorkflowFigures[Key] extends readonly number[]
    ? number[]
    : WorkflowFigures[Key];
};

const newFigures = (workflow: string, bucketCount: number): MutableFigures => {
  const zeros = () => new Array<number>(bucketCount).fill(0);
  return {
    workflow,
    ...{ began: 0, completed: 0, failed: 0, canceled: 0, paused: 0 },
    ...{ beganByBucket: zeros(), completedByBucket: zeros(), failedByBucket: zeros() },
  };
};
