/** Jobs that no live worker has: runs that wait for one are paused with an error that says so. */

import { insist } from "../../concurrency/retry-until-reachable.js";
import { toFailure } from "../../core/encoding/error-record.js";
import { MissingJobError } from "../../core/errors/errors.js";
import { dagOf } from "../../core/graph/frozen-dag.js";
import { jobsUnderWay } from "../../core/run/job-runs.js";
import type { Pausing, Phased, RunAtHand, RunWriting } from "../turn/ports.js";

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
  turn.hold(error.message, toFailure(error), id);
}

/** Another worker has found that the job is gone. Whether the run still needs it, and the job is still gone, is looked at here. */
export async function holdIfGone(turn: NeedyTurn, job: string): Promise<void> {
  const needy = needyNode(turn, job);
  if (needy === null || turn.halted) return;
  const info = await insist(
    () => turn.host.jobInfo(job),
    () => turn.over,
  );
  if (info === null && !turn.halted) holdForMissingJob(turn, needy);
}

function needyNode({ run, state, given }: NeedyTurn, job: string): NeedyNode | null {
  for (const one of jobsUnderWay(state)) {
    if (one.job !== job) continue;
    const dag = dagOf(run, state, () => given.value);
    const name = dag?.nodes[one.step]?.name ?? one.step;
    return { id: one.step, name, job, frozenAt: dag === null ? null : Date.parse(dag.frozen_at) };
  }
  return null;
}
