/** Calls that the database executes although, or after, the worker was told that they had failed; and signals that arrive while a transaction is open. */
import { type AnyWorkflow, Pawl, Workflow, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { StoreError } from "../../src/core/errors/errors.js";
import { newEvent } from "../../src/core/run/event.js";
import type { Batch, ClaimRequest, CommitResult, Fence, Store, Transition } from "../../src/store/contract/store.js";
import { MemoryStore } from "../../src/store/memory/index.js";
import { silent, world } from "../support/virtual-worlds.js";
import { gate, until } from "../support/waiting.js";

const connectionLost = () => new StoreError("the connection is gone", { transient: true, unreachable: true });

test("signals that arrive while a transactional step is open complete the wait that they are for", async () => {
  const w = await world();
  const open = gate();
  const begun = gate();
  const wf = workflow("parallel", async (ctx) => {
    const paid = ctx.waitForSignal("paid");
    const booked = ctx.transaction("book", async () => {
      begun.open();
      await open.opened;
      return "booked";
    });
    return [await booked, await paid];
  });
  const worker = await w.worker([wf]);
  const run = await w.pawl.start(wf);
  const settled = worker.settle();
  await begun.opened;
  await run.signal("paid", "in full");
  // All that the worker can do about the signal while the transaction is open.
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  open.open();
  await settled;
  await worker.settle();
  expect(await run.result()).toEqual(["booked", "in full"]);
  expect((await w.pawl.verify()).differences).toEqual([]);
});

/** A worker on a store whose calls the test may replace. */
async function workerOn(members: (inner: MemoryStore) => Partial<Store>, wf: AnyWorkflow) {
  const inner = new MemoryStore();
  const own = members(inner);
  const store = new Proxy<Store>(inner, {
    get: (target, name) => {
      const value = Reflect.get(Object.hasOwn(own, name) ? own : target, name) as unknown;
      return typeof value === "function" ? value.bind(inner) : value;
    },
  });
  const pawl = new Pawl(store, silent);
  onTestFinished(() => pawl.close());
  const worker = pawl.worker({ workflows: [wf], lease: 600, poll: 20 });
  return { pawl, worker, client: new Pawl(inner, silent), inner };
}

test("a claim that is executed long after its connection failed does not strand the runs that it took", async () => {
  const wf = workflow("stranded", async (ctx) => ctx.step("work", () => 1));
  let claims = 0;
  let failedClaim: ClaimRequest | null = null;
  const { worker, client } = await workerOn(
    (inner) => ({
      claim: async (request) => {
        claims += 1;
        if (claims === 1) {
          failedClaim = request;
          throw connectionLost();
        }
        if (claims === 2) {
          // The worker has read which runs it owns; now the server executes the claim.
          await client.start(wf);
          await inner.claim(failedClaim as ClaimRequest);
        }
        return inner.claim(request);
      },
    }),
    wf,
  );
  await worker.start();
  await until(async () => (await client.runs()).runs.some(({ status }) => status === "completed"));
});

test("a commit that is executed after its connection failed neither pauses the run nor repeats a step", async () => {
  let bodies = 0;
  const wf = workflow("late", async (ctx) => {
    await ctx.step("once", () => {
      bodies += 1;
    });
    return bodies;
  });
  let fail = true;
  const { worker, client } = await workerOn(
    (inner) => ({
      commit: async (batch: Batch): Promise<CommitResult> => {
        const isLate = fail && batch.transitions.some(({ events }) => events.some(({ node }) => node === "once"));
        if (!isLate) return inner.commit(batch);
        fail = false;
        // The worker looks into the log before it tries again, and the server executes the commit after that.
        const log = inner.log.bind(inner);
        inner.log = async (...args) => {
          inner.log = log;
          const page = await log(...args);
          await inner.commit(batch);
          return page;
        };
        throw connectionLost();
      },
    }),
    wf,
  );
  const run = await client.start(wf);
  await worker.start();
  expect(await run.result({ timeout: "100s" })).toBe(1);
  expect((await run.history()).some(({ type }) => type === "run.paused")).toBe(false);
});

test("another event is no proof that a transaction was committed: the code sees what is recorded", async () => {
  const wf = workflow("proof", async (ctx) => ctx.transaction("book", () => "own"));
  let isFirst = true;
  const { worker, client } = await workerOn(
    (inner) => ({
      beginTransaction: async () => {
        const transaction = await inner.beginTransaction();
        const commit = async (batch: Batch): Promise<CommitResult> => {
          if (!isFirst) return transaction.commit(batch);
          isFirst = false;
          // An earlier commit of the worker that is executed late writes its event where the transaction's would be.
          const [transition] = batch.transitions as [Transition];
          const events = transition.events.map((event) => ({
            ...event,
            data: event.data?.replace("own", "other") ?? null,
          }));
          await inner.commit({ ...batch, transitions: [{ ...transition, events }] });
          throw connectionLost();
        };
        return { handle: transaction.handle, commit, rollback: () => transaction.rollback() };
      },
    }),
    wf,
  );
  const run = await client.start(wf);
  await worker.start();
  expect(await run.result({ timeout: "100s" })).toBe("other");
});

test("a transactional step whose connection comes after another owner has recorded the step does not execute its body", async () => {
  let bodies = 0;
  const wf = workflow("late_connection", (ctx) => ctx.transaction("book", async () => (bodies += 1)));
  const [asked, connected, rolledBack] = [gate(), gate(), gate()];
  let begins = 0;
  let fence: Fence | null = null;
  const { worker, client, inner } = await workerOn(
    (store) => ({
      claim: (request) => {
        fence = request.fence;
        return store.claim(request);
      },
      beginTransaction: async () => {
        begins += 1;
        if (begins > 1) return store.beginTransaction();
        asked.open();
        await connected.opened;
        const transaction = await store.beginTransaction();
        return { ...transaction, handle: transaction.handle, rollback: async () => rolledBack.open() };
      },
    }),
    wf,
  );
  const run = await client.start(wf);
  await worker.start();
  await asked.opened;
  // The worker learns with its next heartbeat that it has lost the run, and claims it again.
  await inner.deregisterWorker(fence as unknown as Fence);
  expect(await run.result()).toBe(1);
  connected.open();
  await rolledBack.opened;
  expect(bodies).toBe(1);
  await worker.stop();
});

test("a step that was running when its run is replayed because of a late commit counts as one whose worker died", async () => {
  let bodies = 0;
  class Payment extends Workflow {
    static {
      this.options({ name: "Payment" });
      this.step("pay", { onCrash: "pause" }, () => void (bodies += 1));
    }
  }
  let isFirst = true;
  const { worker, client } = await workerOn(
    (inner) => ({
      commit: async (batch: Batch): Promise<CommitResult> => {
        const [transition] = batch.transitions;
        const isCompletion = transition?.events.some(({ type }) => type === "step.completed") === true;
        if (isCompletion && isFirst) {
          isFirst = false;
          // A commit that the worker was told had failed is executed now.
          const events = [newEvent("signal.received", {}, { name: "late", payload: null, key: "late" })];
          await inner.commit({ ...batch, transitions: [{ ...transition, events }] });
        }
        return inner.commit(batch);
      },
    }),
    Payment,
  );
  const run = await client.start(Payment);
  await worker.start();
  await until(async () => (await run.status()) === "paused");
  expect(bodies).toBe(1);
  expect((await run.get()).pauseReason).toContain("it is unknown whether the step took effect");
});
