/** Tells of every exception in a step: the log, and the reporters of the program and the workflow. */
import { debugIsRead, logAbout } from "../../telemetry/safe-logger.js";
import type { RunAtHand } from "../turn/ports.js";
import { callSafely, warnOfNonsense } from "../turn/user-code.js";

export function report(turn: RunAtHand, error: unknown, step: string, attempt: number): void {
  const { host, runId, definition } = turn;
  const fields = { runId, workflow: definition.name, step, attempt };
  if (debugIsRead(host.log))
    logAbout(host.log, "debug", fields, `Run ${runId}: step "${step}" failed at attempt ${attempt}.`, error);
  warnOfNonsense(turn, error, `step "${step}"`);
  if (host.onError === null && definition.onError === null) return;
  const about = { runId, workflowName: definition.name, step, attempt };
  for (const reporter of [host.onError, definition.onError]) {
    if (reporter === null) continue;
    callSafely(turn.log, `Run ${runId}: the onError reporter itself failed.`, () => reporter(error, about));
  }
}
