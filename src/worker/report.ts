/** Tells whoever wants to know of every exception in a step: the log, and the reporters of the program and the workflow. */
import type { Turn } from "./turn.js";

export function report(turn: Turn, error: unknown, step: string, attempt: number): void {
  const { host, runId, definition } = turn;
  host.log.debug(`Run ${runId}: step "${step}" failed at attempt ${attempt}.`, error);
  if (host.onError === null && definition.onError === null) return;
  const about = { runId, workflowName: definition.name, step, attempt };
  for (const reporter of [host.onError, definition.onError]) {
    if (reporter === null) continue;
    try {
      // It may be async by mistake; what it rejects with must not take the worker down.
      Promise.resolve(reporter(error, about) as unknown).catch(complain);
    } catch (broken) {
      complain(broken);
    }
  }

  function complain(broken: unknown): void {
    host.log.error(`Run ${runId}: the onError reporter itself failed.`, broken);
  }
}
