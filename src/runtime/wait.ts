/** Promises that resolve after a timer has fired or after a turn of the event loop. */
import type { Runtime, Timer } from "./runtime.js";

export const sleep = (runtime: Runtime, ms: number): Promise<void> =>
  new Promise((resolve) => void runtime.setTimeout(resolve, ms));

/** Resolves after all callbacks that are due now (timers, sockets) have run. */
export const yieldToEventLoop = (runtime: Runtime): Promise<void> =>
  new Promise((resolve) => runtime.setImmediate(resolve));

/** Sleeps, and resolves early (it does not reject) when the signal is aborted. */
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

/** Resolves when the work is done or the time is up. */
export async function waitAtMost(runtime: Runtime, ms: number, work: Promise<unknown>): Promise<void> {
  let timer: Timer | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = runtime.setTimeout(resolve, ms);
  });
  await Promise.race([work, timeout]);
  runtime.clearTimeout(timer);
}
