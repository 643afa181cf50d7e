/** Processes that die around the commit that fires a schedule, and answers that never arrive: nothing is lost or doubled. */
import { type ScheduleSettings, schedule, workflow } from "pawl";
import { crashTest } from "pawl/testing";
import { expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { type Fault, FaultyStore } from "./support/faulty-store.js";
import { type Cluster, type Process, report, runsOf, schedulesOn } from "./support/schedule-worlds.js";

const hour = 3_600_000;
const slow = workflow("slow", async (ctx, _input: unknown) => void (await ctx.sleep("work", "90m")));

/** What happens, and what is done again by the next process, or after an error, if a fault hits it. */
interface Step {
  /** The time that passes before it. */
  readonly hours?: number;
  readonly act?: (process: Process, name: string, begunAt: number) => Promise<unknown>;
}

const hourly = { every: "1h", input: null } as const;
const stories: [string, typeof report, Partial<ScheduleSettings>, readonly Step[]][] = [
  ["that skips", slow, {}, [{ hours: 1 }, { hours: 1 }, { hours: 1 }]],
  ["that buffers", slow, { overlap: "bufferAll" }, [{ hours: 1 }, { hours: 1 }, { hours: 1 }]],
  ["that replaces its run", slow, { overlap: "cancelOther" }, [{ hours: 1 }, { hours: 1 }]],
  ["that catches up", report, { catchUp: "all" }, [{ hours: 3 }]],
  [
    "with a backfill",
    report,
    {},
    [{ act: ({ pawl }, name, begunAt) => pawl.schedules.backfill(name, { from: begunAt - 2 * hour }) }, { hours: 1 }],
  ],
  [
    "that is paused and resumed",
    report,
    {},
    [
      { act: ({ pawl }, name) => pawl.schedules.pause(name) },
      { hours: 2, act: ({ pawl }, name) => pawl.schedules.resume(name) },
    ],
  ],
];

/** Tells a story, which a fault may hit, and returns the ledger and the number of runs. */
async function tell(
  w: Cluster,
  number: number,
  [, scheduled, options, steps]: (typeof stories)[number],
  fault: Fault | null,
) {
  const name = `story-${number}`;
  const begunAt = Number(w.clock.now);
  const runsBefore = (await runsOf(w.pawl, scheduled.name)).length;
  const faulty = new FaultyStore(w.store, fault);
  const code = {
    app: name,
    workflows: [report, slow],
    schedules: [schedule(name, { ...hourly, workflow: scheduled, ...options })],
  };
  const processes: Process[] = [];
  const withoutFaults = async () => {
    processes.push(await w.process(code));
    return processes.at(-1) as Process;
  };
  const survives = async <T>(work: Promise<T>): Promise<T | "dead" | "failed"> => {
    const result = await Promise.race([work.catch(() => "failed" as const), faulty.died]);
    if (result === "dead") await faulty.expireLease();
    return result;
  };
  const first = await survives(w.process({ ...code, wrap: () => faulty.store }));
  // A process that a test drives does not register its schedules again by itself.
  let current = typeof first === "string" || fault?.change === 1 ? await withoutFaults() : first;
  for (const { hours = 0, act } of steps) {
    w.clock.moveTo(Number(w.clock.now) + hours * hour);
    const work = async () => {
      await act?.(current, name, begunAt);
      await current.settle();
    };
    const result = await survives(work());
    if (result === "dead") current = await withoutFaults();
    if (result !== undefined) await work();
  }
  await withoutFaults();
  for (const { settle } of processes) await settle();
  const { occurrences } = await w.pawl.schedules.occurrences(name, { limit: 100 });
  const ledger = occurrences.map(({ outcome, scheduledFor, count, missed }) => {
    return `${outcome} ${(Number(scheduledFor) - begunAt) / hour} ${count} ${missed}`;
  });
  for (const { stop } of processes) await stop();
  if (fault?.fate !== "dies" && typeof first !== "string") await first.stop();
  return { ledger, runs: (await runsOf(w.pawl, scheduled.name)).length - runsBefore, changes: faulty.changes };
}

forMemoryAnd("sqlite", (kind) => {
  const { cluster } = schedulesOn(kind);

  test.each(stories)(
    "a schedule %s: a crash or a lost answer at any change of it makes no difference",
    async (...story) => {
      const w = await cluster();
      let number = 0;
      const { changes, ...undisturbed } = await tell(w, number, story, null);
      expect(changes).toBeGreaterThan(1);
      expect(undisturbed.runs).toBe(undisturbed.ledger.filter((line) => line.startsWith("ran")).length);
      for (let change = 1; change <= changes; change += 1)
        // What is never written looks the same in every store, so it is tried in one.
        for (const when of kind === "memory" ? (["before", "after"] as const) : (["after"] as const))
          for (const fate of ["dies", "error"] as const) {
            number += 1;
            const { changes: _, ...disturbed } = await tell(w, number, story, { change, when, fate });
            expect({ change, when, fate, ...disturbed }).toEqual({ change, when, fate, ...undisturbed });
          }
    },
  );

  test("the run of a schedule ends in the same way after a crash at any of its commits", async () => {
    const database = await testDatabase(kind);
    onTestFinished(() => database.drop());
    const nightly = schedule("nightly", { workflow: "daily", cron: "30 2 * * *" });
    const daily = workflow("daily", async (ctx, input: { what: string }) => {
      await ctx.sleep("wait", "1h");
      const day = await ctx.step("day", () => ctx.schedule?.scheduledFor);
      return { ...input, day, name: ctx.schedule?.name };
    });
    const result = await crashTest(daily, { what: "sales" }, { schedule: nightly, store: database.url });
    expect(result.output).toEqual({ what: "sales", day: expect.any(Date), name: "nightly" });
    expect(result.points).toBeGreaterThan(4);
  });
});
