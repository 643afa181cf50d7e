/**
 * Steps that misuse their transaction: they write when it has ended, end it themselves, or catch the error that ended
 * it. Each step is recorded exactly once together with its writes, or fails with a typed error and writes nothing.
 */
import { type RunHandle, TransactionError, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { forEachStore, testDatabase } from "../support/databases.js";
import { type MortalWorker, type World, world } from "../support/virtual-worlds.js";
import { errorOf, gate } from "../support/waiting.js";
import { sqlOf } from "./transaction-attack-sql.js";

forEachStore(
  (kind) => {
    const sql = sqlOf(kind);

    async function openWorldWithTable() {
      const database = await testDatabase(kind);
      onTestFinished(() => database.drop());
      const table = sql.table(() => database.url);
      await table.create();
      return { table, url: database.url, w: await world(kind, database.url) };
    }

    async function settle(w: World, worker: MortalWorker): Promise<void> {
      for (let due = await worker.settle(); due !== null; due = await worker.settle()) w.clock.moveTo(due);
    }

    type Body = (tx: any, attempt: number) => unknown;

    /**
     * Runs one transactional step to its end and returns the rows of the table and the error codes of the failed
     * attempts.
     */
    async function outcomeOf(body: Body, options: { readonly timeout?: number } = {}) {
      const { table, w } = await openWorldWithTable();
      const wf = workflow("attack", (ctx) =>
        ctx.transaction("write", async (tx, { attempt }) => void (await body(tx, attempt)), options),
      );
      const worker = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      await settle(w, worker);
      expect(await run.status()).toBe("completed");
      const completed = (await run.history()).filter(({ type }) => type === "step.completed");
      expect(completed).toHaveLength(1);
      expect((await w.pawl.verify()).differences).toEqual([]);
      return { written: await table.committedValues(), failures: await failuresOf(run) };
    }

    async function failuresOf(run: RunHandle<any, any>): Promise<unknown[]> {
      const executions = await run.executions();
      return executions.flatMap(({ error }) => (error === null ? [] : [(error as { code?: unknown }).code]));
    }

    test("a write after the time limit is refused, and the next attempt writes once", async () => {
      const late = gate();
      const failed = gate<unknown>();
      const body: Body = async (tx, attempt) => {
        if (attempt === 1) {
          await late.opened;
          failed.open(await errorOf(sql.write(tx, "late")));
          return;
        }
        // The late write arrives while the next transaction is open, perhaps on the same connection.
        await sql.write(tx, `attempt ${attempt}`);
        late.open();
        await failed.opened;
      };
      const { written, failures } = await outcomeOf(body, { timeout: 100 });
      expect(written).toEqual(["attempt 2"]);
      expect(failures).toEqual(["TIMEOUT"]);
      expect(await failed.opened).toBeInstanceOf(TransactionError);
    });

    test("a transaction handle that is kept is unusable once its step is recorded, failed or rolled back", async () => {
      const { table, w } = await openWorldWithTable();
      const kept: any[] = [];
      const wf = workflow("keeper", (ctx) =>
        ctx.transaction("write", async (tx, { attempt }) => {
          await sql.write(tx, `attempt ${attempt}`);
          kept.push(tx, sql.prepared(tx, "INSERT INTO user_values VALUES ('kept')"));
          if (attempt === 1) throw new Error("again");
        }),
      );
      const worker = await w.worker([wf]);
      const run = await w.pawl.start(wf);
      await settle(w, worker);
      expect(await run.status()).toBe("completed");
      const [first, firstPrepared, second, secondPrepared] = kept;
      for (const tx of [first, second]) {
        const error = await errorOf(sql.write(tx, "kept"));
        expect(error).toBeInstanceOf(TransactionError);
        expect(error.message).toContain("This transaction has ended");
      }
      for (const execute of [firstPrepared, secondPrepared]) {
        expect(await errorOf(execute())).toBeInstanceOf(TransactionError);
      }
      const other = workflow("other", () => {});
      expect(await errorOf(w.pawl.start(other, undefined, { tx: second }))).toBeInstanceOf(TransactionError);
      expect(await table.committedValues()).toEqual(["attempt 2"]);
      expect((await w.pawl.runs({ workflow: other })).runs).toEqual([]);
    });

    const controls = ["COMMIT", "ROLLBACK", sql.begin, `INSERT INTO user_values VALUES ('hidden'); COMMIT`];
    test.each(controls)(
      "%j through the handle is refused, and a step that catches the refusal is not recorded",
      async (text) => {
        let refused: unknown;
        const { written, failures } = await outcomeOf(async (tx, attempt) => {
          await sql.write(tx, `attempt ${attempt}`);
          if (attempt > 1) return;
          refused = await errorOf(sql.execute(tx, text));
          await sql.write(tx, "afterwards").catch(() => {});
        });
        expect(refused).toBeInstanceOf(TransactionError);
        expect(written).toEqual(["attempt 2"]);
        expect(failures).toEqual(["TRANSACTION_ERROR"]);
      },
    );

    test("after a failed statement that is caught, either the other writes are committed or the step is not recorded", async () => {
      const { written, failures } = await outcomeOf(async (tx, attempt) => {
        await sql.write(tx, `attempt ${attempt}`);
        if (attempt > 1) return;
        await errorOf(sql.execute(tx, "INSERT INTO no_such_table VALUES (1)"));
      });
      // PostgreSQL has aborted the transaction; the other databases have undone only the statement.
      expect(written).toEqual([sql.errorsAbortTransaction ? "attempt 2" : "attempt 1"]);
      expect(failures).toEqual(sql.errorsAbortTransaction ? ["TRANSACTION_ERROR"] : []);
    });

    test("savepoints work, even two of one name, and undo only the writes after them", async () => {
      const { written, failures } = await outcomeOf(async (tx) => {
        await sql.write(tx, "before");
        for (const name of ["mine", "pawl", "mine"]) {
          await sql.execute(tx, `SAVEPOINT ${name}`);
          await sql.write(tx, `undone ${name}`);
          await errorOf(sql.execute(tx, "INSERT INTO no_such_table VALUES (1)"));
          await sql.execute(tx, `ROLLBACK TO SAVEPOINT ${name}`);
        }
        await sql.execute(tx, "RELEASE SAVEPOINT mine");
        await sql.write(tx, "after");
      });
      expect(written).toEqual(["before", "after"]);
      expect(failures).toEqual([]);
    });

    test("DDL is part of the transaction, or is refused where it would commit the transaction", async () => {
      const { written, failures } = await outcomeOf(async (tx, attempt) => {
        await sql.write(tx, `attempt ${attempt}`);
        if (attempt > 2) return;
        const made = await sql.execute(tx, "CREATE TABLE made (a INT)").then(
          () => true,
          () => false,
        );
        expect(made).toBe(!sql.ddlCommits);
        if (attempt === 1) throw new Error("again");
      });
      // If the table of the first attempt still existed, the second attempt could not create it.
      expect(written).toEqual([sql.ddlCommits ? "attempt 3" : "attempt 2"]);
      expect(failures).toEqual(sql.ddlCommits ? [undefined, "TRANSACTION_ERROR"] : [undefined]);
    });

    test("a body that does not await its writes is recorded together with them, or not at all", async () => {
      const { written } = await outcomeOf(async (tx, attempt) => {
        void sql.write(tx, `attempt ${attempt}`).catch(() => {});
      });
      expect(written).toEqual(["attempt 1"]);
    });

    // A statement to SQLite is a synchronous function call, so no statement can be in progress at the time limit.
    if (kind === "sqlite") return;

    test("a statement that is in progress at the time limit leaves nothing behind", async () => {
      const { written, failures } = await outcomeOf(
        async (tx, attempt) => {
          if (attempt === 1) await sql.execute(tx, sql.slowInsert("late"));
          else await sql.write(tx, `attempt ${attempt}`);
        },
        { timeout: 200 },
      );
      expect(written).toEqual(["attempt 2"]);
      expect(failures).toEqual(["TIMEOUT"]);
    });

    // sqld has one writer at a time, so a deadlock cannot occur.
    if (kind === "sqld") return;

    test("a transaction that was the victim of a deadlock is not recorded, even if the step catches the error", async () => {
      const { table, w } = await openWorldWithTable();
      await sql.executeInOwnTransaction(table, "INSERT INTO user_values VALUES ('a'), ('b')");
      await sql.executeInOwnTransaction(table, "CREATE INDEX by_value ON user_values (value)");
      const locked = { a: gate(), b: gate() };
      const lock = (tx: any, row: "a" | "b") =>
        sql.execute(tx, `SELECT value FROM user_values WHERE value = '${row}' FOR UPDATE`);
      const wf = workflow("victim", (ctx, [mine, other]: ["a" | "b", "a" | "b"]) =>
        ctx.transaction("write", async (tx, { attempt }) => {
          await sql.write(tx, `run ${mine}`);
          if (attempt > 1) return;
          await lock(tx, mine);
          locked[mine].open();
          await locked[other].opened;
          await lock(tx, other).catch(() => {});
        }),
      );
      const worker = await w.worker([wf]);
      const runs = [await w.pawl.start(wf, ["a", "b"]), await w.pawl.start(wf, ["b", "a"])];
      await settle(w, worker);
      expect(await Promise.all(runs.map((run) => run.status()))).toEqual(["completed", "completed"]);
      const failures = (await Promise.all(runs.map(failuresOf))).flat();
      expect(failures).toEqual(["TRANSACTION_ERROR"]);
      expect((await table.committedValues()).filter((value) => value.startsWith("run")).sort()).toEqual([
        "run a",
        "run b",
      ]);
    });
  },
  ["sqlite", "postgres", "mysql", "sqld"],
);
