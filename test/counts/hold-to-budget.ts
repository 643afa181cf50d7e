/** Measures operations on every store and compares each with its budget. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { forEachStore } from "../support/databases.js";
import { budgetOf, type ThingName } from "./budget.js";
import { excesses, inWords, savings } from "./gate.js";
import { Meter } from "./meter.js";
import type { Thing } from "./things.js";

/** @param exact whether the budgets are the exact costs: then budgets that are too high are reported as well */
export function holdToBudget(things: Readonly<Partial<Record<ThingName, Thing>>>, { exact }: { exact: boolean }): void {
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

    test.each(Object.entries(things) as [ThingName, Thing][])(
      "%s: costs no more than its budget",
      async (name, thing) => {
        const cost = await meter.price(thing);
        const budget = budgetOf(name, kind);
        const risen = excesses(budget, cost).map((excess) => `${kind}, ${name}: ${inWords(excess)}`);
        expect(risen, [...risen, "", "What was sent and written:", ...abridged(meter.story)].join("\n")).toEqual([]);
        if (exact) lower.push(...savings(budget, cost).map((saving) => `${kind}, ${name}: ${inWords(saving)}`));
      },
    );
  });
}

const abridged = (story: readonly string[]): string[] => story.slice(0, 40).map((line) => line.slice(0, 300));
