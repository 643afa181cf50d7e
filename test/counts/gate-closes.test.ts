/**
 * The gate detects regressions: stores and engines that are made slightly more expensive on purpose exceed their
 * budgets.
 */
import { expect, onTestFinished, test } from "vitest";
import type { Batch, Store, Transition } from "../../src/store/contract/store.js";
import { forEachStore, type StoreKind } from "../support/databases.js";
import { budgetOf, type OperationName } from "./budget.js";
import { concurrentRuns } from "./concurrent-runs.js";
import { describeExcess, excesses } from "./gate.js";
import { Meter, type StoreWrapper } from "./meter.js";
import { type Operation, operations } from "./operations.js";

/** A store whose commits are made by `commit`. */
const committing =
  (commit: (store: Store, batch: Batch) => Promise<unknown>): StoreWrapper =>
  (store) =>
    new Proxy(store, {
      get: (inner, name) => {
        const member = Reflect.get(inner, name) as unknown;
        if (name === "commit") return (batch: Batch) => commit(inner, batch);
        return typeof member === "function" ? member.bind(inner) : member;
      },
    });

/** Each commit is followed by one more statement, such as SELECT 1. */
const oneMoreStatement = committing(async (store, batch) => {
  const result = await store.commit(batch);
  await store.workflow("nobody");
  return result;
});

/** Each run of a commit writes one more row. */
const oneMoreRow = committing((store, batch) =>
  store.commit(changed(batch, ({ afterSeq }) => ({ cursors: [{ node: `after ${afterSeq}`, progress: "1" }] }))),
);

/** Each event is a kilobyte longer. */
const oneMoreKilobyte = committing((store, batch) =>
  store.commit(
    changed(batch, ({ events }) => ({
      events: events.map((event) => ({ ...event, data: (event.data ?? "{}") + " ".repeat(1_024) })),
    })),
  ),
);

function changed(batch: Batch, change: (transition: Transition) => Partial<Transition>): Batch {
  return { ...batch, transitions: batch.transitions.map((each) => ({ ...each, ...change(each) })) };
}

async function excessesOf(
  kind: StoreKind,
  name: OperationName,
  operation: Operation,
  wrap?: StoreWrapper,
): Promise<string[]> {
  const meter = await Meter.open(kind, wrap);
  onTestFinished(() => meter.close());
  return excesses(budgetOf(name, kind), await meter.measure(operation)).map(describeExcess);
}

forEachStore(
  (kind) => {
    const { statements = 0, bytes = 0 } = budgetOf("step", kind);

    test("one more statement per commit is detected", async () => {
      const rise = await excessesOf(kind, "step", operations.step, oneMoreStatement);
      // A pool that opens a further connection meanwhile sends statements of its own.
      expect(rise).toContainEqual(expect.stringMatching(`^statements rose from ${statements} to `));
    });

    test("one more row per step is detected", async () => {
      const rise = await excessesOf(kind, "step", operations.step, oneMoreRow);
      expect(rise).toContain("cursors inserted rose from 0 to 1");
    });

    test("one more kilobyte per step is detected", async () => {
      const rise = await excessesOf(kind, "step", operations.step, oneMoreKilobyte);
      expect(rise).toEqual([`bytes rose from ${bytes} to ${bytes + 1_024}`]);
    });

    test("one more row per step is detected among a hundred concurrent runs", async () => {
      const rise = await excessesOf(kind, "100 runs of 10 steps", concurrentRuns["100 runs of 10 steps"], oneMoreRow);
      expect(rise).toContain("cursors inserted rose from 0 to 1100");
    });
  },
  ["sqlite", "postgres", "mysql"],
);

forEachStore((kind) => {
  test("additional store calls per step are detected", async () => {
    const rise = await excessesOf(kind, "step", operations.child);
    expect(rise).toContain("calls of commit rose from 1 to 3");
    expect(rise).toContain("calls of claim rose from 0 to 2");
  });
});
