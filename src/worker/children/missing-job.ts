/** Pauses a run whose graph needs a job that no live worker has. */

import { toFailure } from "../../core/encoding/error-record.js";
import { MissingJobError } from "../../core/errors/errors.js";
import { dagOf } from "../../core/graph/frozen-dag.js";
import { runningJobs } from "../../core/run/job-runs.js";
import type { PausePort, PhasePort, RunPort, WritePort } from "../turn/ports.js";
import { readForTurn } from "../turn/read.js";

type JobWaitingTurn = RunPort & WritePort & PhasePort & PausePort;

/** The node that needs the job. */
interface JobWaitingNode {
  /** The key of the node in the log. */
  readonly id: string;
  /** The name of the node in the graph, for error messages. */
  readonly name: string;
  readonly job: string;
  readonly frozenAt: number | null;
}

export function pauseForMissingJob(turn: JobWaitingTurn, { id, name, job, frozenAt }: JobWaitingNode): void {
  const error = new MissingJobError({ runId: turn.runId, node: name, job, frozenAt });
  turn.pauseWithError(error.message, toFailure(error), id);
}

/**
 * Called when a worker reported that no live worker has the job. Pauses the run if it still waits for the job and there
 * still is no live worker.
 */
export async function pauseIfJobIsMissing(turn: JobWaitingTurn, job: string): Promise<void> {
  const waitingNode = findJobWaitingNode(turn, job);
  if (waitingNode === null || turn.isDraining) return;
  const info = await readForTurn(turn, () => turn.host.jobInfo(job));
  if (info === null && !turn.isDraining) pauseForMissingJob(turn, waitingNode);
}

function findJobWaitingNode({ run, state, storedInput }: JobWaitingTurn, job: string): JobWaitingNode | null {
  for (const runningJob of runningJobs(state)) {
    if (runningJob.job !== job) continue;
    const dag = dagOf(run, state, () => storedInput.value);
    const name = dag?.nodes[runningJob.step]?.name ?? runningJob.step;
    return { id: runningJob.step, name, job, frozenAt: dag === null ? null : Date.parse(dag.frozen_at) };
  }
  return null;
}
