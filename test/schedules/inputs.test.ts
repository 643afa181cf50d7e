/** Functions that compute inputs: they fail, hang, or return what cannot be stored, and only their occurrence suffers. */
import { type Logger, Pawl, schedule } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import type { Runtime } from "../../src/runtime/runtime.js";
import { systemRuntime } from "../../src/runtime/system.js";
import { forEachStore } from "../support/databases.js";
import { briefly } from "../support/effort.js";
import { silent } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";
import { ledgerOf, report, runsOf, schedulesOn } from "./support/schedule-worlds.js";

const hourly = (name: string, input: () => unknown) => schedule(name, { workflow: report, input, every: "1h" });
const plain = schedule("plain", { workflow: report, input: null, every: "1h" });

/** How long a look waits for inputs before it fires the other schedules, and after how long a function has failed. */
const [patience, limit] = [1_000, 10_000];

/** Replaces timers by their lengths, so that nothing depends on how fast this machine is. */
const withTimers = (timers: Readonly<Record<number, (callback: () => void) => void>>): Runtime => ({
  ...systemRuntime,
  setTimeout: (callback, ms) => {
    const replacement = timers[ms];
    if (replacement === undefined) return systemRuntime.setTimeout(callback, ms);
    replacement(callback);
    return systemRuntime.setTimeout(() => {}, 0);
  },
});

forEachStore(
  (kind) => {
    const { start, cluster } = schedulesOn(kind);

    test.each<[string, () => unknown, string]>([
      [
        "throws",
        () => {
          throw new Error("The price list is missing.");
        },
        "The price list is missing.",
      ],
      [
        "rejects",
        async () => {
          throw new Error("The price list is missing.");
        },
        "The price list is missing.",
      ],
      [
        "throws no error",
        () => {
          throw "nothing";
        },
        "nothing",
      ],
      ["returns a function", () => ({ send: () => {} }), "the input of schedule"],
      [
        "returns a cycle",
        () => {
          const cycle: unknown[] = [];
          cycle.push(cycle);
          return cycle;
        },
        "the input of schedule",
      ],
    ])(
      "a function that %s: its occurrence fails to start, the reason is in the ledger, the next one and others run",
      async (_, broken, reason) => {
        const errors: string[] = [];
        const logger: Logger = { ...silent, error: (message) => void errors.push(String(message)) };
        let count = 0;
        const fragile = hourly("fragile", () => (++count === 1 ? broken() : "fine"));
        const t = await start({ schedules: [fragile, plain], logger });
        await t.advance("2h");
        expect(await ledgerOf(t.pawl, "fragile")).toEqual(["failed_to_start 2026-11-01T13:00", "ran 2026-11-01T14:00"]);
        expect(await ledgerOf(t.pawl, "plain")).toEqual(["ran 2026-11-01T13:00", "ran 2026-11-01T14:00"]);
        const [, failed] = (await t.pawl.schedules.occurrences("fragile")).occurrences;
        expect(failed).toMatchObject({ runId: null, pending: null, count: 1 });
        expect(failed?.error).toContain(reason);
        expect(errors).toEqual(['Schedule "fragile" could not start its run for 2026-11-01T13:00:00.000Z.']);
      },
    );

    test("a workflow that is not registered: the occurrence fails to start", async () => {
      const t = await start({ schedules: [] });
      await t.pawl.schedules.put("lost", { workflow: "no_such_workflow", every: "1h" });
      await t.advance("1h");
      const [row] = (await t.pawl.schedules.occurrences("lost")).occurrences;
      expect(row?.outcome).toBe("failed_to_start");
      expect(row?.error).toContain("no_such_workflow");
    });

    test("a function that takes long delays no other schedule, and its own run starts when it has returned", async () => {
      const w = await cluster();
      const computed = gate<string>();
      const called = gate();
      // Both schedules have the same workflow, so once this is called, the other one is decided within the same turn.
      const input = () => {
        systemRuntime.setImmediate(() => called.open());
        return computed.opened;
      };
      const slow = schedule("slow", { workflow: report, input, every: "1h" });
      const pawl = new Pawl(w.store, silent, {
        runtime: withTimers({
          [patience]: (end) => void called.opened.then(() => systemRuntime.setTimeout(end, 0)),
          [limit]: () => {},
        }),
      });
      const worker = pawl.worker({
        workflows: [report],
        schedules: [slow, plain],
        lease: "1s",
        grace: 100,
        poll: Number.POSITIVE_INFINITY,
      });
      onTestFinished(() => worker.stop());
      await worker.start();
      w.clock.moveTo(Number(w.clock.now) + 3_600_000);
      await until(async () => (await ledgerOf(w.pawl, "plain")).length === 1);
      expect(await ledgerOf(w.pawl, "slow")).toEqual([]);
      computed.open("late");
      await until(async () => (await ledgerOf(w.pawl, "slow")).length === 1);
      expect(await ledgerOf(w.pawl, "slow")).toEqual(["ran 2026-11-01T13:00"]);
      expect((await runsOf(w.pawl, "report")).filter(({ input }) => input === "late")).toHaveLength(1);
    });

    test("a function that never returns fails to start its occurrence, and not the next one", async () => {
      const w = await cluster();
      let count = 0;
      const hanging = hourly("hanging", () => (++count === 1 ? new Promise(() => {}) : "fine"));
      const pawl = new Pawl(w.store, silent, {
        runtime: withTimers({ [limit]: (end) => void systemRuntime.setTimeout(end, 0) }),
      });
      const worker = pawl.worker({ workflows: [report], schedules: [hanging], poll: Number.POSITIVE_INFINITY });
      onTestFinished(() => worker.stop());
      await worker.startDriven(w.clock.read);
      for (let hours = 0; hours < 2; hours += 1) {
        w.clock.moveTo(Number(w.clock.now) + 3_600_000);
        await worker.runUntilIdle();
      }
      const [next, failed] = (await w.pawl.schedules.occurrences("hanging")).occurrences;
      expect(failed).toMatchObject({
        outcome: "failed_to_start",
        error: 'The function that computes the input of schedule "hanging" took more than 10 seconds.',
      });
      expect(next?.outcome).toBe("ran");
    });
  },
  briefly("memory", "mysql"),
);
