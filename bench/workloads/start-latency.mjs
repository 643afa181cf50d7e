// W4: from the call of start() until the step's function is entered, one run at a time: in the starting process, and in
// another one.

import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { workflow } from "pawl";
import { percentile } from "../statistics.mjs";
import { withWorker } from "./with-worker.mjs";

/** The system's monotonic clock: the same in every process. */
const nowMs = () => Number(process.hrtime.bigint()) / 1e6;

const latency = (name) => workflow(name, (ctx, calledAt) => ctx.step("enter", () => nowMs() - calledAt));
export const latencyHere = latency("w4_here");
export const latencyThere = latency("w4_there");

const names = {
  here: ["W4 start → step entered, p50 ms", "W4 start → step entered, p95 ms"],
  there: ["W4 … in another process, p50 ms", "W4 … in another process, p95 ms"],
};

export const startLatency = {
  id: "W4",
  sizes: { full: 200, quick: 100 },
  figures: Object.fromEntries(
    [...names.here, ...names.there].map((name) => [name, { limit: "oneRow", as: "multiple" }]),
  ),

  async measure({ pawl, database }, count) {
    const here = await withWorker(pawl, [latencyHere], () => latencies(pawl, latencyHere, count));
    const figures = percentiles(names.here, here);
    if (database.url === "memory:") return { figures };
    const there = await latenciesElsewhere(pawl, database.url, count);
    return { figures: { ...figures, ...percentiles(names.there, there) } };
  },
};

/** Milliseconds from each start in this process until its step is entered in a worker process. */
export async function latenciesElsewhere(pawl, url, count) {
  const stop = await startSecondProcess(url);
  try {
    return await latencies(pawl, latencyThere, count);
  } finally {
    await stop();
  }
}

/** Where every start waits for a poll, this would take minutes; fewer starts give the same figure. */
const longestMs = 5_000;

async function latencies(pawl, definition, count) {
  const times = [];
  const beganAt = nowMs();
  // The first starts connect, prepare and compile.
  for (let n = -5; n < count; n += 1) {
    if (nowMs() - beganAt > longestMs && times.length > 0) break;
    const run = await pawl.start(definition, nowMs());
    const ms = await run.result();
    if (n >= 0) times.push(ms);
    // Let the worker become idle, because a start during its last commit would wait for that.
    await sleep(1);
  }
  return times;
}

const percentiles = ([p50, p95], times) => ({ [p50]: percentile(times, 0.5), [p95]: percentile(times, 0.95) });

async function startSecondProcess(url) {
  const child = fork(new URL("second-process.mjs", import.meta.url), [url]);
  const [message] = await Promise.race([once(child, "message"), once(child, "exit")]);
  if (message !== "ready") throw new Error(`The second process did not start (exit code ${message}).`);
  return async () => {
    child.send("stop");
    await once(child, "exit");
  };
}
