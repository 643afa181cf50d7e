/**
 * Two workers fire schedules while a client puts, pauses, resumes, triggers, backfills and deletes the same schedules at
 * random. Afterwards nothing is open or waits, no run is doubled or missing, and what was asked for is in the ledger.
 */
import { connect, type Pawl, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { type AnyStoreKind, forEachStore, testDatabase } from "../support/databases.js";
import { type RawSql, rawSql } from "../support/raw-sql.js";
import { seeded } from "../support/seeded-random.js";
import { silent } from "../support/virtual-worlds.js";
import { until } from "../support/waiting.js";

const names = ["a", "b", "c"];
const operationCount = 150;
const overlaps = ["skip", "bufferOne", "bufferAll", "cancelOther", "allowAll"] as const;
const expectedErrors = new Set(["SCHEDULE_NOT_FOUND", "INVALID_STATE"]);

const brief = workflow("brief", async (ctx, _input: unknown) => {
  await ctx.step("work", () => new Promise((resolve) => setTimeout(resolve, 20)));
});

class Attack {
  readonly #client: Pawl;
  readonly #random: () => number;
  /** The ids of manual occurrences that the client was told of. */
  readonly triggered: string[] = [];
  readonly unexpected: unknown[] = [];

  constructor(client: Pawl, random: () => number) {
    this.#client = client;
    this.#random = random;
  }

  #oneOf<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }

  async act(): Promise<void> {
    const name = this.#oneOf(names);
    const { schedules } = this.#client;
    const actions = [
      () => this.#put(name),
      () => this.#put(name),
      () => schedules.pause(name, this.#random() < 0.5 ? {} : { until: "100ms" }),
      () => schedules.resume(name),
      () => schedules.resume(name),
      async () => void this.triggered.push((await schedules.trigger(name, { force: this.#random() < 0.5 })).id),
      async () => void this.triggered.push((await schedules.trigger(name)).id),
      () => schedules.backfill(name, { from: Date.now() - 1_000 }),
      () => (this.#random() < 0.3 ? schedules.delete(name) : undefined),
    ];
    try {
      await this.#oneOf(actions)();
    } catch (error) {
      if (!expectedErrors.has((error as { readonly code?: string }).code ?? "")) this.unexpected.push(error);
    }
  }

  async #put(name: string): Promise<void> {
    const overlap = this.#oneOf(overlaps);
    const now = Date.now();
    const instants = Array.from({ length: 50 }, (_, n) => new Date(now + 100 * n));
    const timing = this.#random() < 0.3 ? ({ every: "1s" } as const) : { at: instants };
    const bounds = this.#random() < 0.3 ? { maxRuns: 1 + Math.floor(this.#random() * 3) } : {};
    await this.#client.schedules.put(name, { workflow: "brief", input: {}, ...timing, overlap, ...bounds });
  }
}

const stores: readonly AnyStoreKind[] = ["sqlite", "postgres", "mysql"];
forEachStore((kind) => {
  test("whatever people do to schedules while they fire, nothing is lost, doubled or left waiting", async () => {
    const { url, drop } = await testDatabase(kind);
    onTestFinished(drop);
    const open = async () => {
      const pawl = await connect(url, { logger: silent });
      onTestFinished(() => pawl.close());
      return pawl;
    };
    const [one, other, client] = [await open(), await open(), await open()];
    for (const pawl of [one, other]) await pawl.worker({ workflows: [brief], lease: 6_000, poll: 200 }).start();
    const attack = new Attack(client, seeded(kind.length * 7));
    for (const name of names) await client.schedules.put(name, { workflow: "brief", input: {}, every: "1s" });
    const lanes = [0, 1, 2].map(async () => {
      for (let done = 0; done < operationCount / 3; done += 1) await attack.act();
    });
    await Promise.all(lanes);
    expect(attack.unexpected).toEqual([]);

    // No further instants: what has begun or waits must end by itself.
    for (const name of names) {
      await client.schedules.put(name, { workflow: "brief", input: {}, every: "1s", endAt: new Date(0) });
      if ((await client.schedules.get(name)).status === "paused") await resumeUnlessEnded(client, name);
    }
    const sql = await rawSql(url);
    onTestFinished(() => sql.close());
    await until(async () => (await countUnfinished(sql)) === 0);
    // One that was resumed ends when a worker looks at it.
    const statuses = async () =>
      (await client.schedules.list()).schedules.map(({ name, status }) => `${name} ${status}`);
    await until(async () => !(await statuses()).some((one) => one.endsWith(" active")));
    expect(await statuses()).toEqual(names.map((name) => `${name} ended`));
    expect((await client.verify()).differences).toEqual([]);
    await expectConsistentLedger(sql, attack.triggered);
  });
}, stores);

/** A pause with an end may end, and the schedule with it, after its status was read. */
async function resumeUnlessEnded(client: Pawl, name: string): Promise<void> {
  try {
    await client.schedules.resume(name);
  } catch (error) {
    if ((await client.schedules.get(name)).status === "paused") throw error;
  }
}

async function countUnfinished(sql: RawSql): Promise<number> {
  const [row] = await sql.query(`SELECT (SELECT count(*) FROM pawl_tasks) AS tasks,
    (SELECT count(*) FROM pawl_occurrences WHERE pending IS NOT NULL) AS pending`);
  return Number(row?.tasks) + Number(row?.pending);
}

async function expectConsistentLedger(sql: RawSql, triggered: readonly string[]): Promise<void> {
  const occurrences = await sql.query(
    "SELECT id, schedule, incarnation, scheduled_for, outcome, detail FROM pawl_occurrences",
  );
  const runs = await sql.query("SELECT id, schedule FROM pawl_runs");
  const ran = occurrences.filter(({ outcome }) => outcome === "ran");
  expect(runs.map(({ id }) => String(id)).sort()).toEqual(ran.map(({ id }) => String(id)).sort());
  const identities = ran
    .filter(({ detail }) => !String(detail).includes('"manual"'))
    .map(({ schedule, incarnation, scheduled_for: instant }) => `${schedule} ${incarnation} ${instant}`);
  expect(new Set(identities).size).toBe(identities.length);
  const outcomes = new Set(occurrences.map(({ outcome }) => outcome));
  for (const outcome of ["buffered", "requested", "failed_to_start"]) expect(outcomes).not.toContain(outcome);
  const ids = new Set(occurrences.map(({ id }) => String(id)));
  expect(triggered.filter((id) => !ids.has(id))).toEqual([]);
}
