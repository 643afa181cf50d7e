/** The list of workflows, joined from four answers that are about all of them. */
import type { Answer } from "../../api/api.js";

export type Workflow = Answer<"listWorkflows">["workflows"][number];
type Counts = Answer<"countRuns">;
type Worker = Answer<"listWorkers">["workers"][number];
type Figures = Answer<"getWorkflowFigures">;

export interface WorkflowRow {
  readonly workflow: Workflow;
  /** Whether it is the job of nodes of built graphs, which cannot be started on its own. */
  readonly isJob: boolean;
  /** The names of the live workers that have it; null while they are being read. */
  readonly workers: readonly string[] | null;
  readonly open: Count | null;
  readonly paused: Count | null;
  readonly failed: Count | null;
  /** Completed among completed and failed, in the time of the figures; null if there were none. */
  readonly success: number | null;
  readonly began: number;
  readonly beganByBucket: readonly number[];
}

export interface Count {
  readonly value: number;
  readonly isCapped: boolean;
}

const jobPrefix = "job:";
export const jobNameOf = (workflow: string): string | null =>
  workflow.startsWith(jobPrefix) ? workflow.slice(jobPrefix.length) : null;

function liveWorkersOf(workflow: string, workers: readonly Worker[]): Worker[] {
  const job = jobNameOf(workflow);
  return workers.filter(
    ({ live, workflows, jobs }) =>
      live && (workflows.some(({ name }) => name === workflow) || (job !== null && jobs.includes(job))),
  );
}

export function rowsOf(
  workflows: readonly Workflow[],
  counts: Counts | undefined,
  workers: readonly Worker[] | undefined,
  figures: Figures | undefined,
): WorkflowRow[] {
  const figuresOf = new Map(figures?.workflows.map((one) => [one.workflow, one]));
  return workflows.map((workflow) => {
    const own = figuresOf.get(workflow.name);
    const ended = own === undefined ? 0 : own.completed + own.failed;
    return {
      workflow,
      isJob: jobNameOf(workflow.name) !== null,
      workers: workers === undefined ? null : liveWorkersOf(workflow.name, workers).map(({ name }) => name),
      ...countsOf(workflow.name, counts),
      success: own === undefined || ended === 0 ? null : own.completed / ended,
      began: own?.began ?? 0,
      beganByBucket: own?.beganByBucket ?? [],
    };
  });
}

const openStatuses = ["pending", "running", "waiting", "paused"] as const;

function countsOf(workflow: string, counts: Counts | undefined): Pick<WorkflowRow, "open" | "paused" | "failed"> {
  if (counts === undefined) return { open: null, paused: null, failed: null };
  const numbers = counts.workflows[workflow];
  const count = (statuses: readonly ((typeof openStatuses)[number] | "failed")[]): Count => ({
    value: statuses.reduce((sum, status) => sum + (numbers?.[status] ?? 0), 0),
    isCapped: statuses.some((status) => counts.capped.includes(status)),
  });
  return { open: count(openStatuses), paused: count(["paused"]), failed: count(["failed"]) };
}
