/** Subscribers receive everything that becomes durable, once and in order. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type Logger, PermanentError, type RunEvent, type RunStatusChange, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { silent, world } from "../support/virtual-worlds.js";

function listen() {
  const events: RunEvent[] = [];
  const statuses: RunStatusChange[] = [];
  const onEvent = (message: unknown) => void events.push(message as RunEvent);
  const onRun = (message: unknown) => void statuses.push(message as RunStatusChange);
  subscribe("pawl:event", onEvent);
  subscribe("pawl:run", onRun);
  onTestFinished(() => {
    unsubscribe("pawl:event", onEvent);
    unsubscribe("pawl:run", onRun);
  });
  return { events, statuses };
}

const child = workflow("child", (ctx, n: number) => ctx.step("double", () => n * 2));
const story = workflow("story", async (ctx) => {
  await ctx.step("flaky", ({ attempt }) => {
    if (attempt === 1) throw new Error("once");
  });
  await ctx.map(child, [1, 2]);
  await ctx.waitForSignal("go");
  await ctx.sleep("nap", "1 day");
  throw new PermanentError("that was it");
});

forMemoryAnd("mysql", (kind) => {
  test("published events match the logs, whichever process wrote them", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const heard = listen();
    const w = await world(kind, database.url);
    const { settle } = await w.worker([story, child]);
    const run = await w.pawl.start(story, undefined, { hero: { type: "User", id: "7" } });
    await settle();
    await run.pause("by hand");
    await run.resume();
    await run.signal("go", 1);
    for (let due = await settle(); due !== null; due = await settle()) w.clock.moveTo(due);
    expect(await run.status()).toBe("failed");
    const { runs } = await w.pawl.runs();
    expect(runs).toHaveLength(3);
    for (const { id, parentId, workflow: name } of runs) {
      const told = heard.events.filter(({ runId }) => runId === id);
      const log = await w.pawl.run(id).history();
      const columns = ({
        seq,
        type,
        node,
        attempt,
        outcome,
      }: Pick<RunEvent, "seq" | "type" | "node" | "attempt" | "outcome">) => ({ seq, type, node, attempt, outcome });
      expect(told.map(columns)).toEqual(log.map((one) => columns(one as never)));
      for (const one of told) expect(one).toMatchObject({ workflow: name, parentId });
    }
    const statuses = (id: string) => heard.statuses.filter(({ runId }) => runId === id).map(({ status }) => status);
    const children = runs.filter(({ parentId }) => parentId === run.id);
    // A worker may claim a child before its parent has recorded that the child was created.
    for (const { id } of children) expect(statuses(id).sort()).toEqual(["completed", "pending", "running"]);
    expect(statuses(run.id)[0]).toBe("pending");
    expect(statuses(run.id).at(-1)).toBe("failed");
    expect(statuses(run.id)).toContain("paused");
    expect(heard.statuses[0]).toMatchObject({ workflow: "story", queue: "story", hero: { type: "User", id: "7" } });
  });
});

test("a given logger receives every transition at debug level", async () => {
  const lines: string[] = [];
  const logger: Logger = { ...silent, debug: (...args) => void lines.push(String(args[0])) };
  const w = await world("memory", "memory:", logger);
  const { settle } = await w.worker([child]);
  const run = await w.pawl.start(child, 1);
  await settle();
  expect(lines.filter((line) => line.includes(run.id))).toEqual([
    `Run ${run.id} (child) is pending`,
    `Run ${run.id} (child) is running`,
    `Run ${run.id} (child): run.started`,
    `Run ${run.id} (child): step.completed double, attempt 1, success`,
    `Run ${run.id} (child): run.completed`,
    `Run ${run.id} (child) is completed`,
  ]);
});
