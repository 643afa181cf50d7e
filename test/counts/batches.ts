/**
 * The same operations for a hundred runs at once, directly on the store, as a busy worker does them. How many runs
 * share a commit depends on timing; what a commit of a hundred costs does not.
 */
import { randomUUID } from "node:crypto";
import type { Batch, Fence, NewRun, Store, Transition } from "../../src/store/contract/store.js";
import * as build from "../../src/testing/store-suite/builders.js";
import type { Cost } from "./gate.js";
import type { Meter } from "./meter.js";
import type { Operation } from "./operations.js";

const size = 100;

/** A hundred runs that are owned by a worker, and that worker. */
async function owned(meter: Meter): Promise<{ readonly store: Store; readonly fence: Fence; readonly ids: string[] }> {
  const { store } = meter.observed;
  const workflow = meter.newName();
  const fence = await store.registerWorker(build.workerInfo({ id: randomUUID(), routes: [{ workflow, version: "" }] }));
  const starts = births(workflow, { kind: "owned" });
  await store.commit(build.batch(fence, [], starts));
  return { store, fence, ids: starts.map(({ id }) => id) };
}

/** Ids in time order, as clients create them; inputs and outputs of the size that small workflows have. */
const births = (workflow: string, due: NewRun["due"]): NewRun[] =>
  build.newRuns(size, { workflow, due, input: '{"sku":"A-1"}' });

const stepCompleted = build.event("step.completed", {
  node: "charge",
  attempt: 1,
  outcome: "success",
  data: '{"ms":0,"output":{"ok":true}}',
});

/** One commit with a transition for each of the hundred runs. */
async function commitOfAll(meter: Meter, change: (runId: string) => Partial<Transition>): Promise<Cost> {
  const { store, fence, ids } = await owned(meter);
  const transitions = ids.map((id) => build.transition(id, change(id)));
  return commitOf(meter, store, build.batch(fence, transitions));
}

async function commitOf(meter: Meter, store: Store, batch: Batch): Promise<Cost> {
  return meter.cost(async () => {
    const { kind } = await store.commit(batch);
    if (kind !== "committed") throw new Error(`The commit was refused: ${kind}.`);
  });
}

const starts: Operation = async (meter) =>
  commitOf(meter, meter.observed.store, build.batch(null, [], births(meter.newName(), { kind: "now" })));

const claims: Operation = async (meter) => {
  const { store } = meter.observed;
  const workflow = meter.newName();
  const routes = [{ workflow, version: "" }];
  const fence = await store.registerWorker(build.workerInfo({ id: randomUUID(), routes }));
  await store.commit(build.batch(null, [], births(workflow, { kind: "now" })));
  return meter.cost(async () => {
    const claim = await store.claim({ fence, routes, limit: size, limitPerRoute: size });
    if (claim.kind !== "claimed" || claim.tasks.length !== size) throw new Error("Not all were claimed.");
  });
};

const steps: Operation = (meter) => commitOfAll(meter, () => ({ events: [stepCompleted] }));

const checkpoints: Operation = (meter) =>
  commitOfAll(meter, () => ({ cursors: [{ node: "sweep", cursor: "102", progress: '{"done":2,"total":null}' }] }));

const parks: Operation = (meter) =>
  commitOfAll(meter, () => ({
    events: [build.event("timer.started", { node: "nap", data: '{"ms":86400000}' })],
    next: build.park("waiting", { waiting: '{"seenVersion":0}', startedAt: "now", wakeInMs: 86_400_000 }),
  }));

const finishes: Operation = (meter) =>
  commitOfAll(meter, () => ({ next: build.finish("completed", { output: '{"ok":true}', startedAt: "now" }) }));

const messages: Operation = async (meter) => {
  const { store, ids } = await owned(meter);
  return meter.cost(() => store.send(ids.map((id) => build.newMessage(id, '{"name":"word"}'))));
};

export const batches = {
  "100 starts in one commit": starts,
  "100 claims at once": claims,
  "100 steps in one commit": steps,
  "100 checkpoints in one commit": checkpoints,
  "100 parks in one commit": parks,
  "100 finishes in one commit": finishes,
  "100 messages at once": messages,
} satisfies Record<string, Operation>;
