/** Jobs that no live worker has: runs that wait for one are paused with an error that says so. */

import { toFailure } from "../../core/encoding/error-record.js";
import { MissingJobError } from "../../core/errors/errors.js";
import { dagOf } from "../../core/graph/frozen-dag.js";
import { jobsUnderWay } from "../../core/run/job-runs.js";
import type { Pausing, Phased, RunAtHand, RunWriting } from "../turn/ports.js";
import { readForTurn } from "../turn/read.js";

type NeedyTurn = RunAtHand & RunWriting & Phased & Pausing;

/** The node that needs the job, by the id that the log has and the name that people gave it. */
interface NeedyNode {
  readonly id: string;
  readonly name: string;
  readonly job: string;
  readonly frozenAt: number | null;
}

export function holdForMissingJob(turn: NeedyTurn, { id, name, job, frozenAt }: NeedyNode): void {
  const error = new MissingJobError({ runId: turn.runId, node: name, job, frozenAt });
  turn.pauseWithError(error.message, toFailure(error), id);
}

/** Another worker has found that the job is gone. Whether the run still needs it, and the job is still gone, is looked at here. */
export async function holdIfGone(turn: NeedyTurn, job: string): Promise<void> {
  const needy = needyNode(turn, job);
  if (needy === null || turn.halted) return;
  const info = await readForTurn(turn, () => turn.host.jobInfo(job));
  if (info === null && !turn.halted) holdForMissingJob(turn, needy);
}

function needyNode({ run, state, storedInput }: NeedyTurn, job: string): NeedyNode | null {
  for (const one of jobsUnderWay(state)) {
    if (one.job !== job) continue;
    const dag = dagOf(run, state, () => storedInput.value);
    const name = dag?.nodes[one.step]?.name ?? one.step;
    return { id: one.step, name, job, frozenAt: dag === null ? null : Date.parse(dag.frozen_at) };
  }
  return null;
}
