/** The view pawl_step_executions for real runs: every state, every outcome, and every transition in between. */
import { type AnyWorkflow, Workflow, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { working } from "../support/class-workflows.js";
import { forEachStore } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { type AnyRun, recorded } from "../support/run-checks.js";
import { expectSameAsLogs, sqlStores, viewRows } from "../support/view-rows.js";
import { databaseFor, type World } from "../support/virtual-worlds.js";
import { gate } from "../support/waiting.js";

const boom = () => {
  throw new Error("boom");
};
const never = () => new Promise(() => {});

const Waiting = working(() => {}, { wait: "2 days" }, { name: "waits" });
const Pausing = working((w) => w.pause("look at this"), {}, { name: "pauses" });
const Failing = working(boom, { onException: "pause" }, { name: "fails and is paused" });
const Retrying = working(boom, { onException: "reattempt" }, { name: "fails and is reattempted" });

/** Workflows whose executions end by themselves, without a command. */
const byThemselves: readonly AnyWorkflow[] = [
  Waiting,
  Pausing,
  Failing,
  Retrying,
  working(() => "done", {}, { name: "returns" }),
  working((w) => w.attempt === 1 && w.reattempt({ wait: "1h" }), {}, { name: "reattempts" }),
  working((w) => w.attempt === 1 && w.suspend(), {}, { name: "suspends" }),
  working(boom, { skipIf: true }, { name: "is skipped by a condition" }),
  working((w) => w.skip(), {}, { name: "skips" }),
  working((w) => w.cancel("enough"), {}, { name: "cancels" }),
  class extends Workflow {
    static {
      this.options({ name: "is canceled by a condition" });
      this.cancelIf(() => true);
      this.step("work", boom);
    }
  },
  working(boom, { onException: "cancel" }, { name: "fails and is canceled" }),
  working(boom, { onException: "skip" }, { name: "fails and is skipped" }),
  working(boom, { onException: "fail" }, { name: "fails" }),
  working(never, { timeout: 5 }, { name: "takes too long" }),
  class extends Workflow {
    static {
      this.options({ name: "is interrupted" });
      this.resumableStep("work", { maxIterations: 2 }, (_w, iter) => iter.over([1, 2, 3, 4, 5], () => {}));
    }
  },
  workflow("side by side", async (ctx) => {
    const step = (n: number) => ctx.step(`part ${n}`, ({ attempt }) => (attempt === 1 && n % 7 === 0 ? boom() : n));
    await Promise.all(Array.from({ length: 40 }, (_, n) => step(n)));
  }),
  workflow("rewinds", async (ctx) => {
    await ctx.step("work", () => {});
    await ctx.step("once more", ({ attempt }) => attempt);
    if (ctx.attempt === 1) ctx.reattempt({ wait: "1h", rewind: true });
  }),
];

/** Commands for runs that wait or are paused. */
const commands: readonly ((run: AnyRun) => Promise<void>)[] = [
  (run) => run.pause(),
  (run) => run.cancel(),
  (run) => run.skip(),
  (run) => run.resume(),
  async (run) => {
    if ((await run.status()) !== "paused") await run.pause();
    await run.resumeAt("after");
  },
];

const states = ["canceled", "completed", "executing", "failed", "scheduled", "skipped"];
const outcomes = [
  "abandoned",
  "canceled_by_condition",
  "canceled_by_exception",
  "canceled_by_flow_control",
  "continued",
  "failed_by_exception",
  "paused_by_exception",
  "reattempted",
  "reattempted_by_exception",
  "skipped_by_condition",
  "skipped_by_exception",
  "skipped_by_flow_control",
  "success",
  "timed_out",
  "workflow_paused",
];

forEachStore((kind) => {
  const database = databaseFor(kind);

  test("after every phase of the scenario, the view matches the logs", async () => {
    const w = await database.world();
    const sql = await rawSql(database.url());
    onTestFinished(() => sql.close());
    const seen = { states: new Set<unknown>(), outcomes: new Set<unknown>() };
    const runs: AnyRun[] = [];
    const look = async () => {
      const shown = await viewRows(sql);
      await expectSameAsLogs(
        w.store,
        runs.map(({ id }) => id),
        shown,
      );
      for (const row of [...shown.values()].flat()) {
        seen.states.add(row.state);
        seen.outcomes.add(row.outcome);
      }
    };

    // The view and the logs are read after the worker stopped, because two reads would see different states.
    const work = async () => {
      const worker = await w.worker(byThemselves);
      await worker.settle();
      await worker.worker.stop();
      await look();
    };

    for (const each of byThemselves) runs.push(await start(w, each));
    await look();
    await work();

    for (const command of commands) {
      const these = [];
      for (const each of [Waiting, Pausing, Failing, Retrying]) these.push(await start(w, each));
      runs.push(...these);
      await work();
      for (const run of these) {
        // Some commands are refused, which changes nothing.
        await command(run).catch((error) => expect(error).toMatchObject({ code: "INVALID_STATE" }));
      }
      await look();
      await work();
    }

    for (let days = 0; days < 3; days += 1) {
      w.clock.moveTo(w.clock.read() + 86_400_000);
      await work();
    }

    const begun = gate();
    const hang = () => {
      begun.open();
      return never();
    };
    const Dying = working(hang, { onCrash: "pause" }, { name: "dies" });
    const mortal = await w.worker([Dying]);
    const dying = await start(w, Dying);
    runs.push(dying);
    await begun.opened;
    await recorded(dying, "step.started work");
    await look();
    await mortal.kill();
    const heir = await w.worker([Dying]);
    await heir.settle();
    await heir.worker.stop();
    await look();
    await dying.resume({ output: "by hand" });
    await look();

    const logs = await w.store.logs(runs.map(({ id }) => id));
    const types = [...logs.values()].flat().map(({ type }) => type);
    expect(types).toEqual(expect.arrayContaining(["run.resumed", "run.moved", "run.reattempted", "run.recovered"]));
    expect([...seen.states].sort()).toEqual(states);
    expect([...seen.outcomes].filter((outcome) => outcome !== null).sort()).toEqual(outcomes);
  });
}, sqlStores);

let heroes = 0;
function start(w: World, each: AnyWorkflow): Promise<AnyRun> {
  heroes += 1;
  return w.pawl.start(each as never, undefined as never, { hero: { type: "User", id: `${heroes}` } });
}
