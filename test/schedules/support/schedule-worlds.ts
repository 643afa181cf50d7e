/** Schedules in virtual time: one Pawl that a test drives, or several "processes" on one database and one clock. */
import { type AnyWorkflow, type Logger, Pawl, type ScheduleDefinition, type Worker, workflow } from "pawl";
import { type TestPawl, type TestPawlOptions, testPawl, VirtualClock } from "pawl/testing";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import type { Store } from "../../../src/store/contract/store.js";
import { type AnyStoreKind, openStore, type TestDatabase, testDatabase } from "../../support/databases.js";
import { rawSql } from "../../support/raw-sql.js";
import { silent } from "../../support/virtual-worlds.js";

/** A Sunday, at noon. */
export const sunday = new Date("2026-11-01T12:00:00Z");

/** A workflow that does nothing, for schedules of which only the ledger matters. */
export const report = workflow("report", async (_ctx, _input: unknown) => {});

/** A workflow whose runs stay open until the test sends the signal "go". */
export const waiting = workflow("waiting", async (ctx, _input: unknown) => {
  await ctx.waitForSignal("go");
});

export interface Code {
  readonly workflows?: readonly AnyWorkflow[];
  readonly schedules?: readonly ScheduleDefinition[];
  readonly app?: string;
  readonly logger?: Logger;
  /** What stands between this process and the database. */
  readonly wrap?: (store: Store) => Store;
}

export interface Process {
  readonly pawl: Pawl;
  readonly worker: Worker;
  /** Fires what is due and executes what it starts. */
  settle(): Promise<unknown>;
  stop(): Promise<void>;
}

export interface Cluster {
  readonly clock: VirtualClock;
  readonly store: Store;
  /** A client without a worker. */
  readonly pawl: Pawl;
  /** A process with a client and a worker, which works only when the test says so. */
  process(code: Code): Promise<Process>;
}

/** One database for all tests of a `describe`; each test finds it empty. In memory, each test has a store of its own. */
export function schedulesOn(kind: AnyStoreKind) {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database.drop());
  const emptyAfterTest = () => onTestFinished(() => (kind === "memory" ? undefined : empty(database.url)));

  return {
    async start(
      options: Partial<TestPawlOptions> & { readonly schedules?: readonly ScheduleDefinition[] } = {},
    ): Promise<TestPawl> {
      emptyAfterTest();
      const defaults = { workflows: [report, waiting], startAt: sunday, logger: silent };
      const t = await testPawl({ ...defaults, ...options, store: database.url });
      onTestFinished(() => t.close());
      return t;
    },
    async cluster(startAt: Date = sunday): Promise<Cluster> {
      emptyAfterTest();
      const clock = new VirtualClock(startAt);
      const store = await openStore(kind, database.url, { clock: clock.read });
      await store.migrate();
      const pawl = new Pawl(store, silent);
      const workers: Worker[] = [];
      onTestFinished(async () => {
        await Promise.all(workers.map((worker) => worker.stop()));
        await pawl.close();
      });
      const process = async ({ workflows = [report, waiting], schedules, app, logger = silent, wrap }: Code) => {
        const own = new Pawl(wrap?.(store) ?? store, logger, app === undefined ? {} : { app });
        const declared = schedules === undefined ? {} : { schedules };
        const worker = own.worker({
          workflows,
          ...declared,
          poll: Number.POSITIVE_INFINITY,
          replayGrace: 200,
          grace: 100,
        });
        // A process that a fault has stopped would not answer; the test stops the others of this kind.
        if (wrap === undefined) workers.push(worker);
        await worker.startDriven(clock.read);
        return { pawl: own, worker, settle: () => worker.runUntilIdle(), stop: () => worker.stop() };
      };
      return { clock, store, pawl, process };
    },
  };
}

const tables = ["schedules", "occurrences", "schedule_apps", "workers", "inbox", "cursors", "events", "tasks", "runs"];

async function empty(url: string): Promise<void> {
  const sql = await rawSql(url.replace(/^libsql:/, "sqlite:"));
  for (const table of tables) await sql.query(`DELETE FROM pawl_${table}`);
  await sql.close();
}

const minuteOf = (instant: Date) => instant.toISOString().slice(0, 16);

/** The ledger, the oldest first: "ran 2026-11-01T12:00", "skipped_late 2026-11-01T12:00 to 2026-11-01T13:00 (2)". */
export async function ledgerOf(pawl: Pawl, name: string): Promise<string[]> {
  const { occurrences } = await pawl.schedules.occurrences(name, { limit: 1_000 });
  return occurrences.toReversed().map(({ outcome, scheduledFor, scheduledUntil, count, missed, manual, backfill }) => {
    const range = count === 1 ? "" : ` to ${minuteOf(scheduledUntil)} (${count})`;
    const marks = [missed > 0 && `missed ${missed}`, manual && "manual", backfill && "backfill"].filter(Boolean);
    return [`${outcome} ${minuteOf(scheduledFor)}${range}`, ...marks].join(", ");
  });
}

/** The instants of all runs of a workflow, in the order in which they began. */
export async function runsOf(pawl: Pawl, workflowName: string) {
  const { runs } = await pawl.runs({ workflow: workflowName, limit: 1_000 });
  return runs.toReversed();
}
