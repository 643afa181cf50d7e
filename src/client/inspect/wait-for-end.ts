/** Waits for the end of a run: until a time limit, or until a signal fires. */
import { RunNotFoundError, TimeoutError } from "../../core/errors/errors.js";
import { maxTimerMs, type Runtime, type Timer } from "../../runtime/runtime.js";
import type { RunRecord } from "../../store/contract/store.js";
import type { ResultWaiter } from "./result-waiter.js";

export function waitForEnd(
  { runtime, results }: { readonly runtime: Runtime; readonly results: ResultWaiter },
  runId: string,
  { timeoutMs, signal }: { readonly timeoutMs: number | null; readonly signal: AbortSignal | undefined },
): Promise<RunRecord> {
  return new Promise((resolve, reject) => {
    let timer: Timer | undefined;
    if (signal?.aborted === true) return reject(signal.reason);
    const stopWaiting = results.wait(runId, (run) => {
      runtime.clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      if (!(run instanceof Error)) resolve(run);
      else reject(run.message === "unknown" ? new RunNotFoundError(runId) : run);
    });
    const onAbort = () => {
      stopWaiting();
      runtime.clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    if (timeoutMs === null || timeoutMs > maxTimerMs) return;
    timer = runtime.setTimeout(() => {
      stopWaiting();
      signal?.removeEventListener("abort", onAbort);
      reject(
        new TimeoutError(
          `Run ${runId} did not end within ${timeoutMs} ms. It goes on; call result() again later, or explain() to see why.`,
        ),
      );
    }, timeoutMs);
  });
}
