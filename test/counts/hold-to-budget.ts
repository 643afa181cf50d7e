/** Measures operations on every store and compares each with its budget. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { budgetOf, type OperationName } from "./budget.js";
import { describeExcess, excesses, savings } from "./gate.js";
import { Meter } from "./meter.js";
import type { Operation } from "./operations.js";

/** @param exact whether the budgets are the exact costs: then budgets that are too high are reported as well */
export function testBudgets(
  things: Readonly<Partial<Record<OperationName, Operation>>>,
  { exact }: { exact: boolean },
): void {
  forEachStore((kind) => {
    let meter: Meter;
    const lower: string[] = [];
    beforeAll(async () => {
      meter = await Meter.open(kind);
    });
    afterAll(async () => {
      await meter?.close();
      if (lower.length > 0) console.info(`Budgets that can be lowered (test/counts/budget.ts):\n${lower.join("\n")}`);
    });

    test.each(Object.entries(things) as [OperationName, Operation][])(
      "%s: costs no more than its budget",
      async (name, thing) => {
        const budget = budgetOf(name, kind);
        let cost = await meter.measure(thing);
        // How many runs share a commit depends on the machine too, so a bound may be exceeded by chance, but not each time.
        for (let more = exact ? 0 : 4; more > 0 && excesses(budget, cost).length > 0; more -= 1)
          cost = await meter.measure(thing);
        const risen = excesses(budget, cost).map((excess) => `${kind}, ${name}: ${describeExcess(excess)}`);
        expect(
          risen,
          [...risen, "", "What was sent and written:", ...shortened(meter.sentAndWritten)].join("\n"),
        ).toEqual([]);
        if (exact) lower.push(...savings(budget, cost).map((saving) => `${kind}, ${name}: ${describeExcess(saving)}`));
      },
    );
  });
}

const shortened = (story: readonly string[]): string[] => story.slice(0, 40).map((line) => line.slice(0, 300));
