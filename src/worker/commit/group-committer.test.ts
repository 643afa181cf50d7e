import { describe, expect, test } from "vitest";
import { StoreError } from "../../core/errors/errors.js";
import { systemRuntime } from "../../runtime/system.js";
import type { Batch, CommitResult, Store, StoredEvent } from "../../store/contract/store.js";
import { event, newRun, transition } from "../../testing/store-suite/builders.js";
import { GroupCommitter } from "./group-committer.js";

const fence = { workerId: "w", epoch: 1 };
const connectionLostError = () => new StoreError("the connection is gone", { transient: true });
const committed = (more: Partial<CommitResult & { kind: "committed" }> = {}): CommitResult => ({
  kind: "committed",
  at: 7,
  notParked: [],
  ownedWithMessages: [],
  refused: [],
  ...more,
});

/** A committer on a store that handles each batch as the script says, and commits all further batches. */
function createCommitter(...script: ((batch: Batch) => CommitResult | Promise<CommitResult>)[]) {
  const batches: Batch[] = [];
  const written = new Map<string, StoredEvent[]>();
  const storeState = { isAlive: true, fenced: 0, uncertain: 0, transientErrors: 0, uncertainParks: [] as string[] };
  const store = {
    commit: async (batch: Batch) => {
      batches.push(batch);
      const act = script.shift();
      return act === undefined ? committed() : act(batch);
    },
    heartbeat: async () => ({
      isAlive: storeState.isAlive,
      ownedWithMessages: [],
      reapedWorkerIds: [],
      pausedQueues: [],
    }),
    log: async (runId: string, { after }: { after: number }) => (written.get(runId) ?? []).slice(after),
  } as unknown as Store;
  const committer = new GroupCommitter({
    runtime: systemRuntime,
    store,
    fence,
    slots: null,
    lateCallMs: 1_000,
    onFenced: () => {
      storeState.fenced += 1;
    },
    onUncertain: () => {
      storeState.uncertain += 1;
    },
    onUncertainPark: (runId) => {
      storeState.uncertainParks.push(runId);
    },
    onTransientError: () => {
      storeState.transientErrors += 1;
    },
  });
  const write = (batch: Batch) => {
    for (const { runId, events } of batch.transitions) {
      written.set(runId, [
        ...(written.get(runId) ?? []),
        ...events.map((newEvent, index) => ({ ...newEvent, seq: index + 1, at: 5 })),
      ]);
    }
  };
  return { committer, batches, storeState, write };
}

const createTransition = (runId: string, ...types: string[]) =>
  transition(runId, { events: types.map((type) => event(type)) });
const runsOf = (batch: Batch | undefined) => batch?.transitions.map(({ runId }) => runId);

describe("the group committer", () => {
  test("recognises its own commit that the server executed after the connection had failed, and after it had looked", async () => {
    const { committer, batches, storeState, write } = createCommitter(
      () => Promise.reject(connectionLostError()),
      (batch) => {
        write(batch);
        return { kind: "conflict", runId: "a" };
      },
    );
    expect(await committer.submit(createTransition("a", "x"))).toMatchObject({ kind: "committed", at: 5 });
    expect(batches).toHaveLength(2);
    expect(storeState.uncertain).toBe(1);
  });

  test("does not take an event of another writer for its own commit", async () => {
    const { committer, write } = createCommitter(
      () => Promise.reject(connectionLostError()),
      () => {
        write({ fence: null, transitions: [createTransition("a", "y")], starts: [] });
        return { kind: "conflict", runId: "a" };
      },
    );
    expect(await committer.submit(createTransition("a", "x"))).toMatchObject({ kind: "evicted" });
  });

  test("reports the parks without events whose connection failed, and no others", async () => {
    const { committer, storeState } = createCommitter(
      () => Promise.reject(new StoreError("a deadlock", { transient: true })),
      () => Promise.reject(new StoreError("the connection is gone", { transient: true, unreachable: true })),
    );
    const park = {
      kind: "park",
      status: "waiting",
      waiting: null,
      startedAt: null,
      wakeAt: null,
      wakeInMs: null,
    } as const;
    await Promise.all([
      committer.submit(transition("a", { next: park })),
      committer.submit(transition("b", { next: park, events: [event("x")] })),
      committer.submit(createTransition("c", "x")),
    ]);
    expect(storeState.uncertainParks).toEqual(["a"]);
  });

  test("does not repeat the failed write of a turn whose run was claimed again", async () => {
    let failCommit = (_: unknown) => {};
    const { committer, batches } = createCommitter(() => new Promise((_, reject) => (failCommit = reject)));
    const lost = committer.submit(createTransition("a", "x")).catch((error: Error) => error.name);
    const other = committer.submit(createTransition("b", "x"));
    await expect.poll(() => batches.length).toBe(1);
    committer.noteReclaimed("a");
    failCommit(connectionLostError());
    expect(await lost).toBe("FencedError");
    expect(await other).toMatchObject({ kind: "committed" });
    expect(batches.map(runsOf)).toEqual([["a", "b"], ["b"]]);
  });

  test("the same event of the next owner of one run is no proof that the other runs of the batch were written", async () => {
    const { committer, batches, write } = createCommitter(
      () => Promise.reject(connectionLostError()),
      () => {
        write({ fence: null, transitions: [createTransition("a", "x")], starts: [] });
        return { kind: "conflict", runId: "a" };
      },
    );
    const receipts = await Promise.all(["a", "b"].map((runId) => committer.submit(createTransition(runId, "x"))));
    expect(receipts).toMatchObject([{ kind: "evicted" }, { kind: "committed", at: 7 }]);
    expect(batches.map(runsOf)).toEqual([["a", "b"], ["a", "b"], ["b"]]);
  });

  test("starts a second flush beside the first when enough is queued, but never with a run of the first", async () => {
    let completeFirstCommit = (_: CommitResult) => {};
    const { committer, batches } = createCommitter(
      () => new Promise<CommitResult>((resolve) => (completeFirstCommit = resolve)),
    );
    const first = committer.submit(createTransition("a", "x"));
    await Promise.resolve();
    expect(batches.map(runsOf)).toEqual([["a"]]);
    // Too little for a second flush: it waits for the first.
    const again = committer.submit({ ...createTransition("a", "y"), afterSeq: 1 });
    const few = Array.from({ length: 100 }, (_, n) => committer.submit(createTransition(`few${n}`, "x")));
    await Promise.resolve();
    expect(batches).toHaveLength(1);
    const many = Array.from({ length: 100 }, (_, n) => committer.submit(createTransition(`many${n}`, "x")));
    await Promise.all([...few, ...many]);
    expect(batches).toHaveLength(2);
    expect(batches[1]?.transitions).toHaveLength(200);
    expect(runsOf(batches[1])).not.toContain("a");
    completeFirstCommit(committed());
    await Promise.all([first, again]);
    expect(batches.map(runsOf)[2]).toEqual(["a"]);
  });

  test("other runs do not wait for a flush that creates many child runs", async () => {
    let completeFirstCommit = (_: CommitResult) => {};
    const { committer, batches } = createCommitter(
      () => new Promise<CommitResult>((resolve) => (completeFirstCommit = resolve)),
    );
    const children = Array.from({ length: 500 }, (_, n) => newRun({ id: `child${n}` }));
    const first = committer.submit({ ...createTransition("a", "x"), newChildren: children });
    await Promise.resolve();
    await committer.submit(createTransition("b", "x"));
    expect(batches.map(runsOf)).toEqual([["a"], ["b"]]);
    completeFirstCommit(committed());
    await first;
  });

  test("writes everything that is submitted in one tick in one commit under the worker's fence", async () => {
    const { committer, batches } = createCommitter();
    await Promise.all(["a", "b", "c"].map((id) => committer.submit(createTransition(id, "x"))));
    expect(batches).toHaveLength(1);
    expect(batches[0]?.fence).toBe(fence);
    expect(runsOf(batches[0])).toEqual(["a", "b", "c"]);
  });

  test("queues writes that are submitted during a flush for the next one", async () => {
    let release = () => {};
    const { committer, batches } = createCommitter(
      () =>
        new Promise((resolve) => {
          release = () => resolve(committed());
        }),
    );
    const first = committer.submit(createTransition("a", "x"));
    await new Promise((resolve) => setImmediate(resolve));
    const rest = [
      committer.submit(createTransition("b", "x")),
      committer.submit(createTransition("a", "y")),
      committer.submit(createTransition("c", "x")),
    ];
    await new Promise((resolve) => setImmediate(resolve));
    expect(batches).toHaveLength(1);
    release();
    await Promise.all([first, ...rest]);
    expect(batches.map(runsOf)).toEqual([["a"], ["b", "a", "c"]]);
  });

  test("merges everything that one run submits into one transition, in order", async () => {
    const { committer, batches } = createCommitter();
    const kept = committer.submit({
      ...createTransition("a", "first"),
      afterSeq: 4,
      cursors: [{ node: "n", progress: "1" }],
      drainedInboxIds: [1],
    });
    const parked = committer.submit({
      ...createTransition("a", "second", "third"),
      afterSeq: 5,
      cursors: [
        { node: "n", cursor: "c" },
        { node: "m", progress: "2" },
      ],
      drainedInboxIds: [2],
      next: { kind: "park", status: "waiting", waiting: null, startedAt: null, wakeAt: null, wakeInMs: null },
    });
    await Promise.all([kept, parked]);
    expect(batches).toHaveLength(1);
    expect(batches[0]?.transitions).toMatchObject([
      {
        runId: "a",
        afterSeq: 4,
        drainedInboxIds: [1, 2],
        next: { kind: "park" },
        cursors: [
          { node: "n", progress: "1", cursor: "c" },
          { node: "m", progress: "2" },
        ],
      },
    ]);
    expect(batches[0]?.transitions[0]?.events.map(({ type }) => type)).toEqual(["first", "second", "third"]);
  });

  test("does not send a message in the flush in which its recipient ends, whichever was submitted first", async () => {
    const finish = { kind: "finish", status: "completed", output: "1", error: null, startedAt: null } as const;
    const messages = [{ to: "parent", kind: "child", data: "{}" }];
    const { committer, batches } = createCommitter();
    await Promise.all([
      committer.submit({ ...createTransition("parent", "x"), next: finish }),
      committer.submit({ ...createTransition("child", "y"), next: finish, messages }),
    ]);
    expect(batches.map(runsOf)).toEqual([["parent"], ["child"]]);
    const other = createCommitter();
    await Promise.all([
      other.committer.submit({ ...createTransition("child", "y"), next: finish, messages }),
      other.committer.submit({ ...createTransition("parent", "x"), next: finish }),
    ]);
    expect(other.batches.map(runsOf)).toEqual([["child"], ["parent"]]);
  });

  test("limits the transitions and the bytes of a flush", async () => {
    const { committer, batches } = createCommitter();
    await Promise.all(Array.from({ length: 600 }, (_, n) => committer.submit(createTransition(`r${n}`, "x"))));
    expect(batches.map(({ transitions }) => transitions.length)).toEqual([250, 250, 100]);
    const big = createCommitter();
    const data = "x".repeat(1_000_000);
    await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        big.committer.submit(transition(`r${n}`, { events: [event("x", { data })] })),
      ),
    );
    for (const { transitions } of big.batches) expect(transitions.length).toBeLessThanOrEqual(5);
    expect(big.batches.flatMap(({ transitions }) => transitions)).toHaveLength(12);
  });

  test("limits the bytes of a flush of starts", async () => {
    const { committer, batches } = createCommitter();
    const input = JSON.stringify("x".repeat(1_000_000));
    await Promise.all(Array.from({ length: 12 }, () => committer.start(newRun({ input }))));
    for (const { starts } of batches) expect(starts.length).toBeLessThanOrEqual(5);
    expect(batches.flatMap(({ starts }) => starts)).toHaveLength(12);
  });

  test("evicts a run that another process has written to, and writes the others", async () => {
    const { committer, batches } = createCommitter(() => ({ kind: "conflict", runId: "b" }));
    const receipts = await Promise.all(["a", "b", "c"].map((id) => committer.submit(createTransition(id, "x"))));
    expect(receipts.map(({ kind }) => kind)).toEqual(["committed", "evicted", "committed"]);
    expect(batches.map(runsOf)).toEqual([
      ["a", "b", "c"],
      ["a", "c"],
    ]);
  });

  test("finds the one run that cannot be written, and writes the others", async () => {
    const refuse = (batch: Batch) => {
      if (batch.transitions.some(({ runId }) => runId === "bad")) throw new Error("packet too large");
      return committed();
    };
    const { committer } = createCommitter(...Array(20).fill(refuse));
    const ids = ["a", "b", "bad", "c", "d"];
    const receipts = await Promise.all(ids.map((id) => committer.submit(createTransition(id, "x"))));
    expect(receipts.map(({ kind }) => kind)).toEqual(["committed", "committed", "evicted", "committed", "committed"]);
  });

  test("finds the one start that cannot be written, and creates the other runs", async () => {
    const refuse = (batch: Batch) => {
      if (batch.starts.some(({ workflow }) => workflow === "bad")) throw new Error("packet too large");
      return committed();
    };
    const { committer } = createCommitter(...Array(20).fill(refuse));
    const outcomes = await Promise.allSettled(
      [newRun(), newRun({ workflow: "bad" }), newRun()].map((run) => committer.start(run)),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  });

  test("retries a commit that fails with a transient error until it succeeds", async () => {
    const fail = () => {
      throw connectionLostError();
    };
    const { committer, batches, storeState } = createCommitter(fail, fail, fail);
    expect(await committer.submit(createTransition("a", "x"))).toMatchObject({ kind: "committed", at: 7 });
    expect(batches).toHaveLength(4);
    expect(storeState).toMatchObject({ transientErrors: 3, uncertain: 0 });
  });

  test("recognises a commit whose answer was lost, and does not repeat it", async () => {
    const { committer, batches, storeState, write } = createCommitter((batch) => {
      write(batch);
      throw connectionLostError();
    });
    const receipts = await Promise.all([
      committer.submit(createTransition("a", "x")),
      committer.submit(createTransition("b", "y")),
    ]);
    expect(receipts).toEqual([
      { kind: "committed", at: 5, isStillOwned: false, hasMessages: false },
      { kind: "committed", at: 5, isStillOwned: false, hasMessages: false },
    ]);
    expect(batches).toHaveLength(1);
    expect(storeState.uncertain).toBe(1);
  });

  test("repeats the starts whose answer was lost, without repeating the transitions", async () => {
    const { committer, batches, write } = createCommitter((batch) => {
      write(batch);
      throw connectionLostError();
    });
    const run = newRun();
    const [receipt, start] = await Promise.all([committer.submit(createTransition("a", "x")), committer.start(run)]);
    expect(receipt).toMatchObject({ kind: "committed" });
    expect(start.refusal).toBeNull();
    expect(batches.map((batch) => [batch.transitions.length, batch.starts.length])).toEqual([
      [1, 1],
      [0, 1],
    ]);
  });

  test("does not mistake another worker's events for its own after it has lost its fence", async () => {
    const { committer, batches, storeState, write } = createCommitter((batch) => {
      write(batch);
      storeState.isAlive = false;
      throw connectionLostError();
    });
    await expect(committer.submit(createTransition("a", "x"))).rejects.toMatchObject({ code: "FENCED" });
    expect(batches).toHaveLength(1);
    expect(storeState.fenced).toBe(1);
  });

  test("rejects queued and later writes once it has lost its fence, and reports the loss once", async () => {
    let release = () => {};
    const { committer, storeState, batches } = createCommitter(
      () =>
        new Promise((resolve) => {
          release = () => resolve({ kind: "fenced" });
        }),
    );
    const outcomes = Promise.allSettled([
      committer.submit(createTransition("a", "x")),
      new Promise((resolve) => setImmediate(resolve)).then(() => {
        const waiting = Promise.all([committer.submit(createTransition("b", "x")), committer.start(newRun())]);
        release();
        return waiting;
      }),
    ]);
    expect((await outcomes).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await expect(committer.submit(createTransition("c", "x"))).rejects.toMatchObject({ code: "FENCED" });
    await expect(committer.start(newRun())).rejects.toMatchObject({ code: "FENCED" });
    expect(storeState.fenced).toBe(1);
    expect(batches).toHaveLength(1);
  });

  test("reports which runs messages kept from being parked, and which starts were refused", async () => {
    const run = newRun();
    const refusal = { runId: run.id, reason: "heroKey", existing: {} as never } as const;
    const { committer } = createCommitter(() => committed({ notParked: ["b"], refused: [refusal] }));
    const [a, b, start] = await Promise.all([
      committer.submit(createTransition("a", "x")),
      committer.submit(createTransition("b", "x")),
      committer.start(run),
    ]);
    expect([a, b]).toMatchObject([{ isStillOwned: false }, { isStillOwned: true }]);
    expect(start.refusal).toBe(refusal);
  });
});
