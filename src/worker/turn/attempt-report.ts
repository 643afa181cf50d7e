/** What a run that was an attempt at a node tells the graph's run beside its end. */
import { decode } from "../../core/encoding/decode.js";
import { type Failure, reviveFailure } from "../../core/encoding/error-record.js";
import type { HandlerOwner, RunPort, TurnEndPort } from "./ports.js";

type ReportingTurn = RunPort & Pick<TurnEndPort, "openedAt"> & HandlerOwner;

/** Whether there is to be another attempt is the job's business, and so it is decided where the job is. */
export function createAttemptReport(
  turn: ReportingTurn,
  error: Failure | null,
): { readonly retryMs: number | null; readonly ms: number } {
  const { nodeRetryDelayMs } = turn.definition;
  const ms = Math.round(turn.host.runtime.monotonic() - turn.openedAt);
  if (nodeRetryDelayMs === null || error === null) return { retryMs: null, ms };
  try {
    // The very error that was thrown, if it was thrown here.
    const thrown = turn.handler.thrown === null ? reviveFailure(error) : turn.handler.thrown.error;
    return { retryMs: nodeRetryDelayMs(thrown, decode(turn.run.input), turn.host.runtime.random()), ms };
  } catch (retryPolicyError) {
    turn.log.error(`Run ${turn.runId}: what its job says about retrying failed itself.`, retryPolicyError);
    return { retryMs: null, ms };
  }
}
