/**
 * A log that cannot be decoded or replayed pauses its run with a readable reason, and the run can still be canceled.
 */
import { type RunHandle, workflow } from "pawl";
import { describe, expect, onTestFinished, test } from "vitest";
import { type StoreKind, testDatabase } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { rawSql } from "../support/raw-sql.js";
import { type MortalWorker, type World, world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

const child = workflow("child", (ctx) => ctx.waitForSignal("never"));
const busy = workflow("busy", async (ctx) => {
  await ctx.step("book", () => "booked", { compensate: () => void undone.push("book") });
  await ctx.start(child);
  await ctx.waitForSignal("go");
  return "done";
});
let undone: string[] = [];

interface WaitingRun {
  readonly w: World;
  readonly worker: MortalWorker;
  readonly url: string;
  readonly run: RunHandle<any, any>;
}

async function waitingRun(kind: StoreKind): Promise<WaitingRun> {
  undone = [];
  const database = await testDatabase(kind);
  onTestFinished(() => database.drop());
  const w = await world(kind, database.url);
  const worker = await w.worker([busy, child]);
  const run = await w.pawl.start(busy);
  await worker.settle();
  expect(await run.status()).toBe("waiting");
  return { w, worker, url: database.url, run };
}

const none: readonly never[] = [];

/** Appends an event that contradicts the log, and makes the run due so that a worker reads it. */
async function contradict({ w, run }: WaitingRun): Promise<void> {
  const consumed = { type: "wait.completed", node: "go", attempt: null, outcome: null, data: '{"signals":[99]}' };
  const next = { kind: "park", status: "waiting", waiting: null, startedAt: null, wakeAt: null, wakeInMs: 0 } as const;
  const after = (await run.history()).length;
  const rest = { drainedInboxIds: none, newChildren: none, messages: none, releasedChildIds: none, cursors: none };
  const transition = { runId: run.id, afterSeq: after, events: [consumed], next, ...rest };
  expect(await w.store.commit({ fence: null, starts: none, transitions: [transition] })).toMatchObject({
    kind: "committed",
  });
}

const damages: Record<string, (lived: WaitingRun) => Promise<void>> = { "contradicts itself": contradict };
const bySql: Record<string, string> = {
  "has a row that is no JSON": "UPDATE pawl_events SET data = '{not json' WHERE run_id = ? AND seq = 1",
  "ends in a row that cannot be unpacked":
    "UPDATE pawl_events SET type = 'batch', data = '[[1]]', span = 3 WHERE run_id = ? AND seq = (SELECT last FROM (SELECT max(seq) AS last FROM pawl_events WHERE run_id = ?) x)",
  "lacks a row": "DELETE FROM pawl_events WHERE run_id = ? AND seq = 1",
};
for (const [name, statement] of Object.entries(bySql)) {
  damages[name] = async ({ url, run, w }) => {
    const sql = await rawSql(url);
    await sql.query(statement.replaceAll("?", `'${run.id}'`));
    await sql.query(`UPDATE pawl_tasks SET state = 1, due_at = ${w.clock.read()} WHERE run_id = '${run.id}'`);
    await sql.close();
  };
}

forMemoryAnd("mysql", (kind) => {
  const kinds = Object.entries(damages).filter(([name]) => kind !== "memory" || !(name in bySql));

  describe.each(kinds)("a log that %s", (_name, damage) => {
    async function pausedBy(before: (lived: WaitingRun) => Promise<unknown> = async () => {}) {
      const all = await waitingRun(kind);
      await damage(all);
      await before(all);
      await all.worker.settle();
      return all;
    }

    test("pauses its run with a reason, which get(), explain() and runs() report", async () => {
      const { w, run } = await pausedBy();
      const reason = expect.stringMatching(
        new RegExp(`^Run ${run.id} cannot be read: event \\d+ of its log is damaged \\(.*\\)\\.$`),
      );
      expect(await run.get()).toMatchObject({ status: "paused", pauseReason: reason, pausedAt: expect.any(Date) });
      const { because, text } = await run.explain();
      expect(because).toBe("paused");
      expect(text).toMatch(
        /^It has been paused since .* until its log is repaired and an operator resumes it: Run .*\.$/,
      );
      const listed = (await w.pawl.runs({ workflow: busy, status: "paused" })).runs;
      expect(listed).toMatchObject([{ id: run.id, pauseReason: reason }]);
    });

    test("makes resume(), skip() and signal() fail with an error that says what to do", async () => {
      const { run } = await pausedBy();
      for (const command of [() => run.resume(), () => run.skip(), () => run.signal("go")]) {
        const error = await errorOf(command());
        expect(error).toMatchObject({ code: "DAMAGED_DATA", runId: run.id });
        expect(error.message).toMatch(
          /^Run .* cannot be read: event \d+ of its log is damaged \(.*\)\. Restore what is missing and resume\(\), or end the run with cancel\(\)\.$/,
        );
      }
      expect(await run.status()).toBe("paused");
    });

    test.each([{}, { force: true }] as const)("does not prevent cancel() with %o", async (options) => {
      const { w, worker, run } = await pausedBy();
      await run.cancel("give it up", options);
      await worker.settle();
      expect(await run.get()).toMatchObject({ status: "canceled", error: { message: "give it up" } });
      expect(undone).toEqual([]);
      const open = (await w.pawl.runs({ active: true })).runs;
      expect(open.filter(({ workflow: name }) => name === "busy")).toEqual([]);
    });

    test("does not prevent the processing of messages that arrived before, including a cancel", async () => {
      const { run } = await pausedBy(async ({ w, run: { id } }) => {
        await w.store.send([{ to: id, kind: "signal", data: '{"name":"go","payload":"1","key":null}' }]);
      });
      expect(await run.get()).toMatchObject({ status: "paused" });
      const other = await pausedBy(async ({ w, run: { id } }) => {
        await w.store.send([{ to: id, kind: "cancel", data: '{"reason":"enough"}' }]);
      });
      expect(await other.run.get()).toMatchObject({ status: "canceled", error: { message: "enough" } });
    });
  });

  test("the children that a damaged log still names are canceled with their parent", async () => {
    const all = await waitingRun(kind);
    await contradict(all);
    await all.worker.settle();
    await all.run.cancel();
    await all.worker.settle();
    expect((await all.w.pawl.runs({ active: true })).runs).toEqual([]);
    expect((await all.w.pawl.runs({ workflow: child })).runs).toMatchObject([{ status: "canceled" }]);
  });
});
