// The workflows that the worker processes of these tests execute.

import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { workflow } from "pawl";

let executions = 0;

/** Notes the start and the end of every execution of a step in the ledger, one line and one append each. */
async function noted(ledger, runId, step, body) {
  const token = `${process.pid}.${++executions}`;
  const note = (what) => appendFileSync(ledger, `${runId} ${step} ${what} ${process.pid} ${token}\n`);
  note("begin");
  await body();
  note("end");
  return token;
}

/** Blocks the process, including its event loop, until the file exists. */
function standStillUntil(file) {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  while (!existsSync(file)) Atomics.wait(cell, 0, 0, 5);
}

export function workflowsFor({ ledger, gate }) {
  /** `count` inline steps, each taking up to `ms` milliseconds. A gated step blocks in a process with a gate. */
  const steps = workflow("steps", async (ctx, { count, ms, gatedStep, mark }) => {
    const tokens = [];
    for (let n = 1; n <= count; n += 1) {
      const body = async () => {
        if (gate !== undefined && n === gatedStep) standStillUntil(gate);
        else await sleep(Math.random() * ms);
      };
      const token = await ctx.step(`step_${n}`, () => noted(ledger, ctx.runId, `step_${n}`, body), { input: mark });
      tokens.push(token);
    }
    return tokens;
  });

  /** Parks once: by a sleep of `ms` milliseconds, or until a signal. */
  const sleeper = workflow("sleeper", async (ctx, { ms }) => {
    await ctx.sleep("nap", ms);
    return process.pid;
  });
  const listener = workflow("listener", async (ctx) => {
    const first = await ctx.waitForSignal("go");
    const second = await ctx.waitForSignal("go");
    return [first, second, process.pid];
  });
  const child = workflow("child", async (ctx, n) => ctx.step("double", () => n * 2));
  const parent = workflow("parent", async (ctx, n) => {
    const one = await ctx.run("child", n);
    const several = await ctx.map("child", [1, 2, 3, 4, 5], { concurrency: 2 });
    return [one, ...several];
  });

  return { steps, sleeper, listener, child, parent };
}
