/** The record of a run that a worker owns from its creation. */
import type { NewRun, RunRecord } from "../../store/contract/store.js";

/** Copies field by field, because object spread took 2 % of the time of one-step runs. */
export function toRunRecord(run: NewRun, at: number): RunRecord {
  return {
    id: run.id,
    workflow: run.workflow,
    version: run.version,
    queue: run.queue,
    priority: run.priority,
    input: run.input,
    heroType: run.heroType,
    heroId: run.heroId,
    tags: run.tags,
    startKey: run.startKey,
    parentId: run.parentId,
    parentNode: run.parentNode,
    parentIndex: run.parentIndex,
    parentAttempt: run.parentAttempt,
    status: "running",
    output: null,
    error: null,
    waiting: null,
    createdAt: at,
    startedAt: null,
    finishedAt: null,
  };
}
