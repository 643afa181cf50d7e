/**
 * A step that throws a PauseError waits for a person. It has not failed, and the payload of the resuming signal reaches
 * it.
 */
import {
  connect,
  graph,
  InvalidInputError,
  PauseError,
  type ResumedBy,
  type RunHandle,
  step,
  TransientError,
  Workflow,
  workflow,
} from "pawl";
import { traceRuns } from "pawl/otel";
import { prometheus } from "pawl/prometheus";
import { crashTest, testPawl } from "pawl/testing";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { forEachStore, testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { rawSql } from "../support/raw-sql.js";
import { tracing, treeOf } from "../support/spans.js";
import { expectSameAsLogs, viewRows } from "../support/view-rows.js";
import { silent, start, world } from "../support/virtual-worlds.js";
import { errorOf, until } from "../support/waiting.js";

let seen: (ResumedBy | null)[] = [];
afterEach(() => {
  seen = [];
});

/** Pauses the run until a signal says who has approved. */
function approval({ resumedBy }: { readonly resumedBy: ResumedBy | null }): string {
  seen.push(resumedBy);
  if (resumedBy === null) throw new PauseError("Waiting for approval", { resumeOn: "approved" });
  return `approved by ${resumedBy.payload.by}`;
}

const approvalFunction = workflow("asked_function", (ctx) => ctx.step("approve", approval));
const approvalGraph = graph("asked_graph", [step("approve", (ctx) => approval(ctx))]);
class ApprovalClass extends Workflow<unknown, void, string> {
  static {
    this.step("approve", async (w) => w.finish(approval(w)));
  }
}

const approvalHandler = workflow("asked_handler", async (ctx) => approval(ctx));

const styles = [
  ["function", approvalFunction],
  ["class", ApprovalClass],
  ["graph", approvalGraph],
  ["handler", approvalHandler],
] as const;

forMemoryAnd("sqlite", (kind) => {
  test("the payload of the signal reaches the step in every style, also if the worker dies before the attempt", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const w = await world(kind, database.url);
    const definitions = styles.map(([, definition]) => definition);
    const first = await w.worker(definitions);
    const runs: RunHandle<any, any>[] = [];
    for (const definition of definitions) runs.push(await w.pawl.start(definition as typeof approvalFunction));
    await first.settle();
    for (const run of runs) expect(await run.get()).toMatchObject({ status: "paused" });
    first.freeze();
    for (const run of runs) await run.signal("approved", { by: "ada" });
    // The signal and the end of the pause are in the log, and the worker that would act on them dies.
    await first.kill();
    const second = await w.worker(definitions);
    await second.settle();
    for (const run of runs) expect(await run.result()).toBe("approved by ada");
    expect(seen).toEqual([...Array(4).fill(null), ...Array(4).fill({ signal: "approved", payload: { by: "ada" } })]);
    expect((await w.pawl.verify()).differences).toEqual([]);
  });
});

test.each(styles)("a crash at any commit does not lose the payload (%s)", async (_style, definition) => {
  const drive = (run: RunHandle<any, any>) => run.signal("approved", { by: "ada" }, { key: "once" });
  const report = await crashTest(definition as typeof approvalFunction, undefined, { drive });
  expect(report).toMatchObject({ status: "completed", output: "approved by ada" });
});

describe("resumedBy", () => {
  test("stays set for further attempts, until the step pauses the run again", async () => {
    const wf = workflow("further", (ctx) =>
      ctx.step("approve", ({ resumedBy }) => {
        seen.push(resumedBy);
        if (seen.length === 2) throw new TransientError("busy", { retryAfter: "1s" });
        if (seen.length === 3) throw new Error("boom");
        if (seen.length < 6) throw new PauseError("again", { resumeOn: "go" });
        return seen.length;
      }),
    );
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    await run.signal("go", 1);
    await t.advance("1 minute");
    expect(seen.map((one) => one?.payload ?? null)).toEqual([null, 1, 1, 1]);
    expect(await run.status()).toBe("paused");
    await run.resume();
    await t.settle();
    await run.signal("go", 2);
    await t.settle();
    expect(await run.result()).toBe(6);
    expect(seen.map((one) => one?.payload ?? null)).toEqual([null, 1, 1, 1, null, 2]);
  });

  test("is set only for the step that had paused the run", async () => {
    const wf = workflow("others", async (ctx) => {
      await ctx.step("first", ({ resumedBy }) => {
        seen.push(resumedBy);
        if (resumedBy === null) throw new PauseError("wait", { resumeOn: "go" });
      });
      await ctx.step("second", ({ resumedBy }) => void seen.push(resumedBy));
      seen.push(ctx.resumedBy);
    });
    const t = await start(wf);
    const run = await t.pawl.start(wf);
    await t.settle();
    await run.signal("go");
    await t.speedrun(run);
    expect(seen).toEqual([null, { signal: "go", payload: undefined }, null, null]);
  });
});

describe("a step that paused its run has not failed", () => {
  test("in executions(), timeline(), the onError reporter, the log, metrics and traces", async () => {
    const reported: unknown[] = [];
    const warned: unknown[] = [];
    const logTo = (...entry: unknown[]) => void warned.push(entry);
    const pawl = await connect("memory:", {
      logger: { ...silent, warn: logTo, error: logTo },
      onError: (error) => reported.push(error),
    });
    onTestFinished(() => pawl.close());
    const { tracerProvider, spans } = tracing();
    const traces = traceRuns(pawl, { tracerProvider });
    const metrics = prometheus(pawl);
    onTestFinished(async () => {
      await metrics.stop();
      await traces.stop();
    });
    const wf = workflow("told", { onError: (error) => void reported.push(error) }, (ctx) =>
      ctx.step("approve", approval),
    );
    const worker = await pawl.worker({ workflows: [wf] }).start();
    const run = await pawl.start(wf);
    await worker.runUntilIdle();
    expect(await run.executions()).toMatchObject([
      { step: "approve", attempt: 1, state: "canceled", outcome: "workflow_paused", error: null },
    ]);
    expect(await run.timeline()).toMatchObject([{ step: "approve", state: "canceled", outcome: "workflow_paused" }]);
    await run.signal("approved", { by: "ada" });
    expect(await run.result({ timeout: "100s" })).toBe("approved by ada");
    expect(reported).toEqual([]);
    expect(warned).toEqual([]);
    expect(await metrics()).not.toMatch(/pawl_step_failures_total\{/);
    // The result is available as soon as it is committed; the span of the run is created after that.
    await until(() => spans().length === 3);
    expect(treeOf(spans())).toEqual([
      "run told: completed",
      "  step approve 1: workflow_paused",
      "  step approve 2: success",
    ]);
  });

  forEachStore(
    (kind) => {
      test("in the SQL views", async () => {
        const database = await testDatabase(kind);
        onTestFinished(() => database.drop());
        const w = await world(kind, database.url);
        const { settle } = await w.worker([approvalFunction]);
        const run = await w.pawl.start(approvalFunction);
        await settle();
        const sql = await rawSql(database.url);
        const viewed = await viewRows(sql);
        await sql.close();
        expect(viewed.get(run.id)).toMatchObject([
          { step: "approve", state: "canceled", outcome: "workflow_paused", error_message: null },
        ]);
        await expectSameAsLogs(w.store, [run.id], viewed);
      });
    },
    ["sqlite", "postgres", "mysql"],
  );
});

describe("a paused run that waits for a signal is rechecked", () => {
  /** Returns the hours after the start of the run at which the step was executed. */
  async function hoursOfExecutions(pauseOptions: object, options: { readonly recheckPausedAfter?: string | null }) {
    const at: number[] = [];
    const wf = workflow("rechecked", (ctx) =>
      ctx.step("approve", () => {
        at.push(t.clock.read());
        throw new PauseError("wait", pauseOptions);
      }),
    );
    const t = await testPawl({ workflows: [wf], logger: silent, ...options });
    onTestFinished(() => t.close());
    await t.pawl.start(wf);
    await t.advance("5 hours");
    return at.map((one) => (one - (at[0] as number)) / 3_600_000);
  }

  test.each<[string, object, { readonly recheckPausedAfter?: string | null }, number[]]>([
    ["every hour", { resumeOn: "go" }, {}, [0, 1, 2, 3, 4, 5]],
    ["at the interval that connect() was given", { resumeOn: "go" }, { recheckPausedAfter: "2 hours" }, [0, 2, 4]],
    ["at the interval of the error", { resumeOn: "go", recheckAfter: "3 hours" }, {}, [0, 3]],
    ["never, if connect() was given null", { resumeOn: "go" }, { recheckPausedAfter: null }, [0]],
    ["never, if the pause does not wait for a signal", {}, {}, [0]],
    [
      "at the interval of the error, even if connect() was given null",
      { recheckAfter: "4h" },
      { recheckPausedAfter: null },
      [0, 4],
    ],
  ])("%s", async (_when, pauseOptions, options, expected) => {
    expect(await hoursOfExecutions(pauseOptions, options)).toEqual(expected);
  });

  test("connect() accepts a recheck interval, and refuses one that would keep the run busy", async () => {
    const wf = workflow("interval", (ctx) => ctx.step("approve", approval));
    const pawl = await connect("memory:", { recheckPausedAfter: "3 hours", logger: silent });
    onTestFinished(() => pawl.close());
    const worker = await pawl.worker({ workflows: [wf] }).start();
    const run = await pawl.start(wf);
    await worker.runUntilIdle();
    expect((await run.history()).at(-1)).toMatchObject({ type: "run.paused", data: { recheckMs: 3 * 3_600_000 } });
    const refused = await errorOf(connect("memory:", { recheckPausedAfter: 0 }));
    expect(refused).toBeInstanceOf(InvalidInputError);
    expect(refused.message).toBe("recheckPausedAfter is at least a second, not 0 ms; null turns it off.");
  });

  test("speedrun reports the pause when a recheck does not end it", async () => {
    const t = await start(approvalFunction);
    const run = await t.pawl.start(approvalFunction);
    expect((await errorOf(t.speedrun(run))).message).toBe(`Run ${run.id} is paused: Waiting for approval`);
  });
});
