/** Reports an exception in a step to the debug log and to the `onError` reporters of `connect()` and of the workflow. */
import { isDebugEnabled, logWithFields } from "../../telemetry/safe-logger.js";
import type { RunPort } from "../turn/ports.js";
import { callSafely, warnOfInvalidOptions } from "../turn/user-code.js";

export function reportError(turn: RunPort, error: unknown, step: string, attempt: number): void {
  const { host, runId, definition } = turn;
  const fields = { runId, workflow: definition.name, step, attempt };
  if (isDebugEnabled(host.log))
    logWithFields(host.log, "debug", fields, `Run ${runId}: step "${step}" failed at attempt ${attempt}.`, error);
  warnOfInvalidOptions(turn, error, `step "${step}"`);
  if (host.onError === null && definition.onError === null) return;
  const errorContext = { runId, workflowName: definition.name, step, attempt };
  for (const reporter of [host.onError, definition.onError]) {
    if (reporter === null) continue;
    callSafely(turn.log, `Run ${runId}: the onError reporter threw.`, () => reporter(error, errorContext));
  }
}
