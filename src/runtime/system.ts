/** The runtime of a real process: Node's own clocks, timers and random numbers. */
import { randomBytes } from "node:crypto";
import { maxTimerMs, type Runtime } from "./runtime.js";

export const systemRuntime: Runtime = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  processMonotonic: () => Number(process.hrtime.bigint() / 1_000n) / 1_000,
  random: () => Math.random(),
  randomBytes: (count) => randomBytes(count),
  setTimeout: (callback, ms) => setTimeout(callback, Math.min(ms, maxTimerMs)),
  clearTimeout: (timer) => clearTimeout((timer ?? undefined) as NodeTimer),
  setInterval: (callback, ms) => setInterval(callback, Math.min(ms, maxTimerMs)),
  clearInterval: (timer) => clearInterval((timer ?? undefined) as NodeTimer),
  setImmediate: (callback) => void setImmediate(callback),
};

/** Every timer that is passed to `clearTimeout` or `clearInterval` was created by this runtime, so it is a Node timer. */
type NodeTimer = NodeJS.Timeout | undefined;
