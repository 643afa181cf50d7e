/** What the run of a job, which is one attempt at a graph node, reports to the run of the graph when it ends. */
import { decode } from "../../core/encoding/decode.js";
import { type Failure, reviveFailure } from "../../core/encoding/error-record.js";
import type { HandlerOwner, RunPort, TurnEndPort } from "./ports.js";

type ReportingTurn = RunPort & Pick<TurnEndPort, "openedAt"> & HandlerOwner;

/**
 * The retry delay is computed by the job's worker, because only workers that have the job's code know its retry policy.
 */
export function createAttemptReport(
  turn: ReportingTurn,
  error: Failure | null,
): { readonly retryMs: number | null; readonly ms: number } {
  const { nodeRetryDelayMs } = turn.definition;
  const ms = Math.round(turn.host.runtime.monotonic() - turn.openedAt);
  if (nodeRetryDelayMs === null || error === null) return { retryMs: null, ms };
  try {
    // If the error was thrown in this process, the retry policy gets the original instance.
    const thrown = turn.handler.thrown === null ? reviveFailure(error) : turn.handler.thrown.error;
    return { retryMs: nodeRetryDelayMs(thrown, decode(turn.run.input), turn.host.runtime.random()), ms };
  } catch (retryPolicyError) {
    turn.log.error(
      `Run ${turn.runId}: the retry policy of its job threw, so the node is not attempted again.`,
      retryPolicyError,
    );
    return { retryMs: null, ms };
  }
}
