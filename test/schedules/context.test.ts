/** What a run knows of its occurrence, in each style. */
import { graph, type ScheduleContext, schedule, step, Workflow, workflow } from "pawl";
import { beforeEach, expect, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { briefly } from "../support/effort.js";
import { runsOf, schedulesOn } from "./support/schedule-worlds.js";

let seen: Record<string, unknown> = {};
beforeEach(() => {
  seen = {};
});
const look = (where: string, { schedule }: { readonly schedule: ScheduleContext | null }) => {
  seen[where] = schedule;
};
const occurrence = {
  scheduledFor: new Date("2026-11-01T13:00:00Z"),
  firedAt: new Date("2026-11-01T13:00:00Z"),
  missed: 0,
  manual: false,
  backfill: false,
};

const child = workflow("child", async (ctx) => look("child", ctx));
const ofFunctions = workflow("of_functions", async (ctx) => {
  look("function", ctx);
  await ctx.step("step", (inner) => look("step", inner as never));
  await ctx.run(child);
});
class OfClasses extends Workflow {
  static {
    this.options({ name: "of_classes" });
    this.step("first", (w) => look("class", w));
  }
}
const ofGraphs = graph("of_graphs", [step("only", (ctx) => look("graph", ctx as never))]);
const workflows = [child, ofFunctions, OfClasses, ofGraphs];

forEachStore(
  (kind) => {
    const { start } = schedulesOn(kind);

    test("functions, classes and graphs know their occurrence; children and other runs have none", async () => {
      const schedules = [
        schedule("functions", { workflow: ofFunctions, every: "1h" }),
        schedule("classes", { workflow: OfClasses, every: "1h" }),
        schedule("graphs", { workflow: ofGraphs, input: undefined, every: "1h" }),
      ];
      const t = await start({ workflows, schedules });
      await t.advance("1h");
      expect(seen).toMatchObject({
        function: { name: "functions", ...occurrence },
        class: { name: "classes", ...occurrence },
        graph: { name: "graphs", ...occurrence },
        child: null,
      });
      const run = await t.pawl.start(ofFunctions);
      await t.speedrun(run);
      expect(seen).toMatchObject({ function: null, child: null });
    });

    test("a retry of a run has its occurrence, and the ledger is as before", async () => {
      let isBroken = true;
      const fragile = workflow("fragile", async (ctx) => {
        look(isBroken ? "failed" : "retried", ctx);
        if (isBroken) throw new Error("broken");
      });
      const t = await start({
        workflows: [fragile],
        schedules: [schedule("fragile", { workflow: fragile, every: "1h" })],
      });
      await t.advance("1h");
      const [failed] = await runsOf(t.pawl, "fragile");
      const { occurrences } = await t.pawl.schedules.occurrences("fragile");
      isBroken = false;
      const retry = await t.pawl.run(failed?.id as string).retry();
      await t.settle();
      expect(await retry.status()).toBe("completed");
      expect(seen.retried).toEqual(seen.failed);
      expect(seen.retried).toEqual({ name: "fragile", ...occurrence });
      expect((await t.pawl.schedules.occurrences("fragile")).occurrences).toEqual(occurrences);
    });

    test("a run that begins in another process, after a wait, or again after a crash, has the same occurrence", async () => {
      const instants: unknown[] = [];
      const patient = workflow("patient", async (ctx) => {
        instants.push(ctx.schedule);
        await ctx.sleep("rest", "30m");
        await ctx.step("end", () => {});
      });
      const t = await start({
        workflows: [patient],
        schedules: [schedule("patient", { workflow: patient, every: "1h" })],
      });
      await t.advance("1h");
      await t.deploy([patient]);
      await t.advance("30m");
      expect((await runsOf(t.pawl, "patient")).map(({ status }) => status)).toEqual(["completed"]);
      expect(instants.length).toBeGreaterThan(1);
      for (const instant of instants) expect(instant).toEqual({ name: "patient", ...occurrence });
    });
  },
  briefly("memory", "sqlite"),
);
