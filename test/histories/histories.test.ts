/**
 * Golden logs: histories that were written once, and that must fold to the same state in every later version, because a
 * run that was started last year is read by today's code.
 *
 * To add one, add a story below, run with PAWL_RECORD_HISTORIES=1, and check the file that was written. Existing files
 * are never overwritten.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { branch, graph, PermanentError, step, Workflow, workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { executionsOf } from "../../src/client/inspect/executions.js";
import { snapshotAt } from "../../src/client/inspect/snapshot.js";
import type { StoredEvent } from "../../src/core/run/event.js";
import { type MortalWorker, type World, world } from "../support/virtual-worlds.js";

const folder = import.meta.dirname;

interface History {
  readonly runId: string;
  readonly log: readonly StoredEvent[];
  /** The state that the log folded to when it was written: the run after each event, and its executions. */
  readonly states: readonly unknown[];
  readonly executions: readonly unknown[];
}

const plain = (value: unknown): any => JSON.parse(JSON.stringify(value));

function fold(runId: string, log: readonly StoredEvent[]): History {
  const states = [0, ...log.map(({ seq }) => seq)].map((seq) => snapshotAt(log, seq));
  return { runId, log, states: plain(states), executions: plain(executionsOf(runId, log)) };
}

const files = readdirSync(folder).filter((name) => name.endsWith(".json"));

describe.each(files)("%s", (file) => {
  test("folds to the same state as when it was written", () => {
    const { runId, log, states, executions } = JSON.parse(readFileSync(join(folder, file), "utf8")) as History;
    expect(fold(runId, log)).toMatchObject({ states, executions });
  });
});

type Story = (w: World, newWorker: () => Promise<MortalWorker>) => Promise<string>;

const child = workflow("child", (ctx, n: number) => ctx.step("double", () => n * 2));
const everything = workflow("everything", async (ctx) => {
  await ctx.step("flaky", ({ attempt }) => {
    if (attempt < 2) throw new Error("once");
  });
  await ctx.race({ soon: ctx.sleep("soon", 1_000), late: ctx.sleep("late", "1 day") });
  await ctx.map(child, [1, 2, 3], { concurrency: 2 });
  await ctx.run(child, 4);
  await ctx.branch("way", () => "left" as const, { left: () => ctx.step("left", () => "l") });
  return ctx.waitForAny(["yes", "no"], { timeout: "2 days" });
});

class Onboarding extends Workflow {
  static {
    this.step("welcome", () => {});
    this.resumableStep("tell", { maxIterations: 2 }, (_w, iter) => iter.over([1, 2, 3], () => {}));
    this.step("remind", { wait: "2 days", onException: "pause" }, (w) => {
      if (w.attempt === 1) throw new Error("no network");
    });
    this.step("ask", async (w) => void (await w.waitForSignal("answer")));
  }
}

const nap = step("wait", (ctx) => ctx.sleep("nap", "1 hour"));
const decline = step("pay", () => {
  throw new PermanentError("declined");
});
const saga = graph("saga", [
  step("book", () => "b", { compensate: () => {} }),
  branch("way", () => "yes" as const, { yes: [step("go", () => 1)], no: [step("stay", () => 2)] }),
  nap,
  decline.after(nap),
]);

const runToEnd = async (w: World, { settle }: MortalWorker) => {
  for (let due = await settle(); due !== null; due = await settle()) w.clock.moveTo(due);
};

const stories: Record<string, Story> = {
  "function-with-everything": async (w, newWorker) => {
    const worker = await newWorker();
    const run = await w.pawl.start(everything);
    w.clock.moveTo((await worker.settle()) as number);
    await worker.settle();
    await run.pause("a look");
    await run.signal("yes", { by: "ada" }, { key: "k" });
    await run.resume();
    await runToEnd(w, worker);
    return run.id;
  },
  "class-paused-skipped-and-moved": async (w, newWorker) => {
    const worker = await newWorker();
    const run = await w.pawl.start(Onboarding);
    w.clock.moveTo((await worker.settle()) as number);
    await worker.settle();
    await run.resume();
    await worker.settle();
    await run.pause();
    await run.resumeAt("welcome");
    w.clock.moveTo((await worker.settle()) as number);
    await worker.settle();
    await run.skip();
    await worker.settle();
    return run.id;
  },
  "class-canceled": async (w, newWorker) => {
    const first = await newWorker();
    const run = await w.pawl.start(Onboarding);
    await first.settle();
    await first.kill();
    const second = await newWorker();
    await run.cancel("enough");
    await second.settle();
    return run.id;
  },
  "graph-undone": async (w, newWorker) => {
    const worker = await newWorker();
    const run = await w.pawl.start(saga);
    await runToEnd(w, worker);
    return run.id;
  },
};

if (process.env.PAWL_RECORD_HISTORIES === "1") {
  test.each(Object.entries(stories))("recording %s", async (name, story) => {
    const path = join(folder, `${name}.json`);
    if (existsSync(path)) return;
    const w = await world();
    const runId = await story(w, () => w.worker([everything, child, Onboarding, saga]));
    const log = (await w.store.logs([runId])).get(runId) ?? [];
    // The directory in which the history was recorded does not belong in the file.
    const text = JSON.stringify(fold(runId, log), null, 1).replaceAll(process.cwd(), "/app");
    writeFileSync(path, `${text}\n`);
  });
}
