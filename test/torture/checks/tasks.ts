/**
 * I19: every open task is due, owned, or waits for something that its log names. There is a task for every open run,
 * and a run for every task.
 */
import type { Evidence, Report } from "../evidence.js";
import type { LogEvent } from "../records.js";

export function checkTasks({ records }: Evidence, report: Report): void {
  const tasks = new Set<string>();
  for (const { runId, state, dueAt, owner, pendingMessages } of records.tasks) {
    if (tasks.has(runId)) report("tasks", runId, "It has two tasks.");
    tasks.add(runId);
    const run = records.runs.get(runId);
    if (run === undefined) report("tasks", runId, "There is a task without a run.");
    else if (run.finishedAt !== null) report("tasks", runId, `It is ${run.status} and still has a task.`);
    if (state !== 0 || dueAt !== null || owner !== null || pendingMessages > 0) continue;
    const log = records.logs.get(runId) ?? [];
    if (!isWaiting(log) && !isHeld(run?.parentId ?? null))
      report("I19", runId, "Its task is not due, has no owner, and its log names nothing that it waits for.");
  }
  for (const { id, finishedAt, status } of records.runs.values())
    if (finishedAt === null && !tasks.has(id)) report("tasks", id, `It is ${status} and has no task.`);
  for (const { runId, kind } of records.inbox)
    if (records.runs.get(runId)?.finishedAt !== null)
      report("inbox", runId, `It has ended, and a "${kind}" is left in its inbox.`);
}

/** A child of a map may be held by its parent, which limits how many run at a time. */
const isHeld = (parentId: string | null) => parentId !== null;

/** Whether the log has an open pause, wait without a timeout, child, map or node that runs elsewhere. */
function isWaiting(log: readonly LogEvent[]): boolean {
  const open = new Set<string>();
  for (const { type, node } of log) {
    const name = node ?? "";
    if (type === "run.paused") open.add("pause");
    if (type === "run.resumed" || type === "run.cancel_requested") open.delete("pause");
    if (/^(wait|child|map)\.started$|^node\.dispatched$/.test(type)) open.add(name);
    if (/^(wait|child)\.(completed|failed|canceled|timed_out|withdrawn)$|^step\.(completed|failed|skipped)$/.test(type))
      open.delete(name);
  }
  return open.size > 0;
}
