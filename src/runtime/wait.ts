/** Waiting, as promises. */
import type { Runtime } from "./runtime.js";

export const sleep = (runtime: Runtime, ms: number): Promise<void> =>
  new Promise((resolve) => void runtime.setTimeout(resolve, ms));

/** Resolves when everything that is due now has run: timers, sockets and other callbacks have had a turn. */
export const yieldToEventLoop = (runtime: Runtime): Promise<void> =>
  new Promise((resolve) => runtime.setImmediate(resolve));

/** Ends early, without an error, when the signal is aborted. */
export function sleepUnlessAborted(runtime: Runtime, ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return sleep(runtime, ms);
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      runtime.clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = runtime.setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}
