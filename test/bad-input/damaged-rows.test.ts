/** A row that cannot be read affects only its own run: lists still work, and reading that run says what is damaged. */
import { DamagedDataError, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import type { NewRun } from "../../src/store/contract/store.js";
import { newId } from "../../src/testing/store-suite/builders.js";
import { forEachStore, type StoreKind, testDatabase } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

const echo = workflow("echo", async (ctx, value: unknown) => ctx.step("keep", () => value));
const waiter = workflow("waiter", (ctx, _value: unknown) => ctx.waitForSignal("go"));
const failing = workflow("failing", async (_ctx, _value: unknown) => {
  throw new Error("no");
});
const steps = workflow("steps", async (ctx, _value: unknown) => {
  await Promise.all([ctx.step("a", () => 1), ctx.step("b", () => 2)]);
  return "done";
});

async function worldWithRuns(kind: StoreKind) {
  const database = await testDatabase(kind);
  onTestFinished(() => database.drop());
  const w = await world(kind, database.url);
  const worker = await w.worker([echo, waiter, failing, steps]);
  const tagged = { tags: ["red"] };
  const sound = await w.pawl.start(echo, "sound", tagged);
  const runs = {
    completed: await w.pawl.start(echo, "bad", tagged),
    failed: await w.pawl.start(failing, "bad", tagged),
    waiting: await w.pawl.start(waiter, "bad", tagged),
    batch: await w.pawl.start(steps, "bad", tagged),
  };
  await worker.settle();
  return { w, worker, url: database.url, sound, runs };
}

/**
 * Each case: the damaged column, the run, the SQL value that is written, and the field that runs() reports as damaged.
 */
const damages = [
  ["input", "completed", "'{not json'", "input"],
  ["output", "completed", '\'{"$pawl":"Nothing"}\'', "output"],
  ["error", "failed", "'['", "error"],
  ["waiting", "waiting", "'{not json'", "waitingFor"],
  ["waiting", "waiting", "'{\"waitingFor\":5}'", "waitingFor"],
  ["tags", "completed", "'{not json'", "tags"],
  ["tags", "waiting", "'[1]'", "tags"],
  ["status", "completed", "'sleeping'", "status"],
] as const;

forEachStore(
  (kind) => {
    test.each(damages)(
      "a damaged %s of a %s run is marked in lists, and get() of that run throws",
      async (...given) => {
        const [column, which, value, field] = given;
        const { w, url, sound, runs } = await worldWithRuns(kind);
        const { id } = runs[which];
        const sql = await rawSql(url);
        await sql.query(`UPDATE pawl_runs SET ${column} = ${value} WHERE id = '${id}'`);
        await sql.close();
        const page = await w.pawl.runs();
        expect(page.runs).toHaveLength(5);
        const damaged = page.runs.filter((run) => run.damaged.length > 0);
        expect(damaged).toMatchObject([{ id, damaged: [{ field }] }]);
        expect(page.runs.find((run) => run.id === sound.id)).toMatchObject({ input: "sound", output: "sound" });
        const error = await errorOf(w.pawl.run(id).get());
        expect(error).toBeInstanceOf(DamagedDataError);
        expect(error).toMatchObject({ code: "DAMAGED_DATA", runId: id, column });
        expect(error.message).toContain(`Run ${id} cannot be read: its ${column} is damaged (`);
        expect(damaged[0]?.damaged[0]?.error).toMatchObject({ runId: id, column });
        expect((await w.pawl.metrics(echo)).runs.total).toBe(2);
        expect((await w.pawl.metrics(echo)).runs).not.toHaveProperty("sleeping");
        expect((await w.pawl.queues()).map(({ name }) => name)).toContain("echo");
      },
    );

    test("result() throws an error that names the column when the output or the error of the run cannot be read", async () => {
      const { w, url, runs } = await worldWithRuns(kind);
      const sql = await rawSql(url);
      await sql.query(`UPDATE pawl_runs SET output = '{' WHERE id = '${runs.completed.id}'`);
      await sql.query(`UPDATE pawl_runs SET error = '{' WHERE id = '${runs.failed.id}'`);
      await sql.close();
      expect(await errorOf(runs.completed.result())).toMatchObject({ code: "DAMAGED_DATA", column: "output" });
      expect(await errorOf(runs.failed.result())).toMatchObject({ code: "DAMAGED_DATA", column: "error" });
      expect(await errorOf(w.pawl.run(runs.failed.id).explain())).toMatchObject({ code: "DAMAGED_DATA" });
    });

    test.each(["data = '{not json'", "span = 7", "data = '[[1]]'", "seq = seq + 5"])(
      "every method that reads a log damaged by %s throws a DamagedDataError",
      async (change) => {
        const { w, url, runs, sound } = await worldWithRuns(kind);
        for (const run of [runs.waiting, runs.batch]) {
          const sql = await rawSql(url);
          await sql.query(`UPDATE pawl_events SET ${change} WHERE run_id = '${run.id}'`);
          await sql.close();
          const handle = w.pawl.run(run.id);
          const reads = {
            executions: () => handle.executions(),
            stateAt: () => handle.stateAt(99),
            exportDag: () => handle.exportDag(),
            ...(run === runs.waiting && {
              signal: () => handle.signal("go", 1),
              explain: () => handle.explain(),
              pause: () => handle.pause(),
            }),
            ...(change.startsWith("seq") ? {} : { history: () => handle.history() }),
          };
          for (const [name, read] of Object.entries(reads)) {
            const error = await read().then(
              () => null,
              (thrown: unknown) => thrown,
            );
            // executions() does not need consecutive sequence numbers.
            if (change.startsWith("seq") && name === "executions") continue;
            expect(error, name).toMatchObject({ code: "DAMAGED_DATA", runId: run.id });
            expect((error as Error).message, name).toContain(`Run ${run.id} cannot be read`);
          }
        }
        expect((await w.pawl.runs()).runs).toHaveLength(5);
        expect(await sound.result()).toBe("sound");
        expect(await sound.history()).toHaveLength(3);
      },
    );

    test("damaged rows of workers and workflows do not break lists, and a new worker repairs the registration of its workflow", async () => {
      const { w, worker, url } = await worldWithRuns(kind);
      const sql = await rawSql(url);
      await sql.query("UPDATE pawl_workers SET routes = '{not json'");
      await sql.query("UPDATE pawl_workflows SET graph = '{not json' WHERE name = 'echo'");
      await sql.close();
      expect(await w.pawl.workers()).toMatchObject([{ workflows: [], jobs: [] }]);
      expect((await w.pawl.queues()).map(({ name }) => name)).toEqual(["echo", "failing", "steps", "waiter"]);
      expect((await w.pawl.metrics(echo)).runs.total).toBe(2);
      const error = await errorOf(w.pawl.workflow("echo").trigger("x"));
      expect(error).toMatchObject({ code: "DAMAGED_DATA", column: "graph" });
      expect(error.message).toContain('The registration of workflow "echo" cannot be read');
      await worker.worker.stop();
      await w.worker([echo]);
      expect(await w.pawl.workflow("echo").trigger("x")).toMatchObject({ id: expect.any(String) });
    });

    test("a task without a run does not keep workers from executing other runs", async () => {
      const { w, worker, url, sound } = await worldWithRuns(kind);
      const sql = await rawSql(url);
      const lost = await w.pawl.start(echo, "lost");
      await sql.query(`DELETE FROM pawl_runs WHERE id = '${lost.id}'`);
      await sql.close();
      const other = await w.pawl.start(echo, "other");
      await worker.settle();
      expect(await other.result({ timeout: "100s" })).toBe("other");
      expect(await sound.result()).toBe("sound");
    });

    test("a run with unreadable tags is still executed", async () => {
      const { w, worker, url } = await worldWithRuns(kind);
      const run = await w.pawl.start(echo, "tagged", { tags: ["blue"] });
      const sql = await rawSql(url);
      await sql.query(`UPDATE pawl_runs SET tags = '{not json' WHERE id = '${run.id}'`);
      await sql.close();
      await worker.settle();
      expect(await run.result({ timeout: "100s" })).toBe("tagged");
    });
  },
  ["sqlite", "postgres", "mysql"],
);

/** This case needs no SQL, so it also runs in memory: a store accepts any text as an input. */
forEachStore((kind) => {
  test("an input that cannot be read is marked in lists, and get() of that run throws", async () => {
    const { w, sound } = await worldWithRuns(kind);
    const newRun: NewRun = {
      id: newId(),
      workflow: "echo",
      version: "",
      queue: "echo",
      priority: 0,
      input: "{not json",
      heroType: null,
      heroId: null,
      heroKey: null,
      tags: [],
      startKey: null,
      parentId: null,
      parentNode: null,
      parentIndex: null,
      parentAttempt: null,
      due: { kind: "at", ms: w.clock.read() + 1_000_000 },
    };
    await w.store.commit({ fence: null, transitions: [], starts: [newRun] });
    const { runs } = await w.pawl.runs();
    expect(runs).toHaveLength(6);
    expect(runs.filter(({ damaged }) => damaged.length > 0)).toMatchObject([
      { id: newRun.id, input: null, damaged: [{ field: "input" }] },
    ]);
    expect(await errorOf(w.pawl.run(newRun.id).get())).toMatchObject({ code: "DAMAGED_DATA", column: "input" });
    expect(await w.pawl.run(newRun.id).status()).toBe("pending");
    expect((await sound.get()).damaged).toEqual([]);
  });
});
