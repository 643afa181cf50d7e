/** `Gatherings` of the SQL stores. */
import { encodeList } from "../../core/gathering/list-input.js";
import {
  type GatheredItem,
  type GatheringPlan,
  type GatheringRun,
  type GatheringUpdate,
  openGatheringOf,
  planGathering,
} from "../../core/gathering/plan-gathering.js";
import { type RunGathering, readGathering, writeGathering } from "../../core/gathering/run-gathering.js";
import { baseRouteOf } from "../../core/naming/route.js";
import type { GatherCall, Gatherings, GatherResult } from "../contract/gatherings.js";
import type { RefusedStart, RunRecord } from "../contract/store.js";
import { hintsOfStarts } from "../shared/hint-emitter.js";
import type { Bind, Dialect, Queryable, SqlRow } from "./dialect.js";
import { splitRows } from "./insert-rows.js";
import { buildStatement, type Column, type LimitsDialect, type SqlText } from "./limits/dialect.js";
import { decodeDueAt, decodeRun, runColumns, taskState } from "./records.js";
import type { SchedulePort, ScheduleTransaction } from "./schedule-port.js";

type Begun = Pick<RunRecord, "input" | "schedule">;

const itemColumns = ["call_id", "run_id", "position", "workflow", "start_key", "input"];

export class SqlGatherings implements Gatherings {
  readonly #port: SchedulePort;
  readonly #dialect: LimitsDialect;

  constructor(port: SchedulePort, dialect: LimitsDialect) {
    this.#port = port;
    this.#dialect = dialect;
  }

  async gather(calls: readonly GatherCall[], { mayRepeat }: { readonly mayRepeat: boolean }): Promise<GatherResult> {
    const result = await this.#port.transaction(async (db) => {
      const written = await this.#gather(db, calls, mayRepeat);
      return { shouldCommit: written.kind === "gathered", result: written };
    });
    // A run that was created before may be due earlier now, so every start gives a hint.
    if (result.kind === "gathered") this.#port.emitHints(hintsOfStarts(calls.map(({ run }) => run)));
    return result;
  }

  /** The locks are taken in this order: rows of gatherings by id, tasks by id. No other transaction holds a task meanwhile. */
  async #gather(db: ScheduleTransaction, calls: readonly GatherCall[], mayRepeat: boolean): Promise<GatherResult> {
    const ids = [...new Set(calls.map(({ id }) => id))].sort();
    const { at, runIds } = await this.#lockGatherings(db, ids);
    const taken = await this.#keysOfRuns(db, calls);
    if (taken.length > 0) return { kind: "refused", refused: taken };
    const known = await this.#knownItems(db, calls, mayRepeat);
    const open = await this.#lockOpenRuns(db, runIds);
    const plan = planGathering({ calls, at, open, known });
    const refused = plan.starts.length === 0 ? [] : await db.start(plan.starts);
    if (refused.length > 0) return { kind: "refused", refused };
    await this.#write(db, plan, at);
    return { kind: "gathered", at, outcomes: plan.outcomes, createdIds: plan.starts.map(({ id }) => id) };
  }

  async #lockGatherings(db: Queryable, ids: readonly string[]) {
    const { base } = this.#dialect;
    const table = base.table("gatherings");
    await run(
      db,
      this.#dialect.insertOrLock(
        table,
        [["id", "id"]],
        ids.map((id) => [id]),
        "id",
      ),
    );
    const rows = await this.#query(
      db,
      (bind) =>
        `SELECT g.id, g.run_id, ${base.now(bind)} AS at FROM ${table} g WHERE ${base.oneOf("g.id", ids, bind)} ORDER BY g.id ${base.forUpdate}`,
    );
    const runIds = new Map(
      rows.flatMap((row) => (row.run_id === null ? [] : [[row.id, row.run_id] as [string, string]])),
    );
    return { at: Math.floor(Number(rows[0]?.at)), runIds };
  }

  /** A key may belong to a run that is no part of a batch: one that was started before the workflow had batches. */
  async #keysOfRuns(db: Queryable, calls: readonly GatherCall[]): Promise<readonly RefusedStart[]> {
    const keyed = calls.filter(({ startKey }) => startKey !== null);
    if (keyed.length === 0) return [];
    const { base } = this.#dialect;
    const rows = await this.#query(db, (bind) => {
      const runs = `${base.table("runs")} r ${base.forceRunIndex("start_key")}`;
      return `SELECT ${runColumns(base.table("tasks"))} FROM ${runs} WHERE ${isKeyOf("r", keyed, bind)}`;
    });
    return rows.map(decodeRun).flatMap((existing): RefusedStart[] => {
      const call = keyed.find(
        ({ run, startKey }) => run.workflow === existing.workflow && startKey === existing.startKey,
      );
      return call === undefined ? [] : [{ runId: call.run.id, reason: "startKey", existing }];
    });
  }

  /** Usually nothing has to be read: the calls were never made before, and have no keys. */
  async #knownItems(db: Queryable, calls: readonly GatherCall[], mayRepeat: boolean): Promise<readonly GatheredItem[]> {
    const keyed = calls.filter(({ startKey }) => startKey !== null);
    const ofKeys = keyed.length === 0 ? [] : await this.#readItems(db, (bind) => isKeyOf("i", keyed, bind));
    if (!mayRepeat) return ofKeys;
    const callIds = calls.map(({ run }) => run.id);
    return [...ofKeys, ...(await this.#readItems(db, (bind) => this.#dialect.base.oneOf("i.call_id", callIds, bind)))];
  }

  /** Finds out which of the runs still gather. Their tasks stay locked, so no worker can claim them until this ends. */
  async #lockOpenRuns(db: Queryable, runIds: ReadonlyMap<string, string>): Promise<ReadonlyMap<string, GatheringRun>> {
    const { base, tasksByKey } = this.#dialect;
    const ids = [...runIds.values()].sort();
    if (ids.length === 0) return new Map();
    const tasks = await this.#query(
      db,
      (bind) =>
        `SELECT t.run_id, t.state, t.due_at, t.deliveries, t.pending_messages FROM ${tasksByKey} WHERE ${base.oneOf("t.run_id", ids, bind)} ORDER BY t.run_id ${base.forUpdate}`,
    );
    const waiting = tasks.filter(
      (row) =>
        Number(row.state) !== taskState.owned &&
        Number(row.deliveries) === 0 &&
        Number(row.pending_messages) === 0 &&
        row.due_at !== null,
    );
    if (waiting.length === 0) return new Map();
    // A statement of its own: it must see what was committed while the one before waited for a lock.
    const rows = await this.#query(db, (bind) => {
      const isWaiting = base.oneOf(
        "r.id",
        waiting.map((row) => row.run_id as string),
        bind,
      );
      return `SELECT r.id, r.schedule FROM ${base.table("runs")} r WHERE ${isWaiting} AND r.status = 'pending' AND r.started_at IS NULL`;
    });
    const gatherings = new Map<unknown, RunGathering | null>(
      rows.map((row) => [row.id, openGatheringOf((row.schedule as string | null) ?? undefined)]),
    );
    const open = new Map<string, GatheringRun>();
    for (const [id, runId] of runIds) {
      const gathering = gatherings.get(runId);
      const dueAt = decodeDueAt(waiting.find((row) => row.run_id === runId)?.due_at);
      if (gathering && dueAt !== null) open.set(id, { runId, gathering, dueAt });
    }
    return open;
  }

  async #write(db: Queryable, { updates, items, leads }: GatheringPlan, at: number): Promise<void> {
    const inOrder = [...updates].sort((a, b) => (a.runId < b.runId ? -1 : 1));
    const moved = inOrder.filter(({ isMoved }) => isMoved);
    await this.#moveTasks(
      db,
      moved.filter(({ dueAt }) => dueAt <= at),
      taskState.ready,
      this.#dialect.whenReady,
    );
    await this.#moveTasks(
      db,
      moved.filter(({ dueAt }) => dueAt > at),
      taskState.parked,
      this.#dialect.whenParked,
    );
    await this.#updateRuns(
      db,
      inOrder.filter(({ input }) => input === null),
    );
    await this.#updateRuns(
      db,
      inOrder.filter(({ input }) => input !== null),
    );
    await this.#insertItems(db, items);
    if (leads.size === 0) return;
    const columns: readonly Column[] = [
      ["v_id", "id"],
      ["v_run", "id"],
    ];
    const rows = [...leads].sort(([a], [b]) => (a < b ? -1 : 1));
    await run(
      db,
      this.#dialect.updateEach("gatherings", "id", columns, rows, (v) => [`run_id = ${v("v_run")}`]),
    );
  }

  /** A task that waited in a class gets the route back that it had before. */
  async #moveTasks(db: Queryable, moved: readonly GatheringUpdate[], state: number, others: string): Promise<void> {
    if (moved.length === 0) return;
    const { base } = this.#dialect;
    const ids = moved.map(({ runId }) => runId);
    const tasks = await this.#query(
      db,
      (bind) =>
        `SELECT t.run_id, t.workflow FROM ${this.#dialect.tasksByKey} WHERE ${base.oneOf("t.run_id", ids, bind)}`,
    );
    const routes = new Map(tasks.map((row) => [row.run_id, baseRouteOf(row.workflow as string)]));
    const columns: readonly Column[] = [
      ["v_id", "id"],
      ["v_route", "text"],
      ["v_due", "number"],
    ];
    await run(
      db,
      this.#dialect.updateEach(
        "tasks",
        "run_id",
        columns,
        moved.map(({ runId, dueAt }) => [runId, routes.get(runId), dueAt]),
        (v) => [`workflow = ${v("v_route")}`, `due_at = ${v("v_due")}`, `state = ${state}${others}`],
      ),
    );
  }

  async #updateRuns(
    db: Queryable,
    updates: readonly Pick<GatheringUpdate, "runId" | "gathering" | "input">[],
  ): Promise<void> {
    if (updates.length === 0) return;
    const hasInputs = updates[0]?.input !== null;
    const columns: Column[] = [
      ["v_id", "id"],
      ["v_schedule", "text"],
    ];
    if (hasInputs) columns.push(["v_input", "text"]);
    await run(
      db,
      this.#dialect.updateEach(
        "runs",
        "id",
        columns,
        updates.map(({ runId, gathering, input }) => [runId, writeGathering(gathering), ...(hasInputs ? [input] : [])]),
        (v) => [`schedule = ${v("v_schedule")}`, ...(hasInputs ? [`input = ${v("v_input")}`] : [])],
      ),
    );
  }

  async #insertItems(db: Queryable, items: readonly GatheredItem[]): Promise<void> {
    const rows = items.map((item) => [
      item.callId,
      item.runId,
      item.position,
      item.workflow,
      item.startKey,
      item.input,
    ]);
    for (const part of splitRows(rows))
      await this.#query(db, (bind) => {
        const tuples = part.map((values) => `(${values.map(bind).join(", ")})`);
        return `INSERT INTO ${this.#dialect.base.table("gathered")} (${itemColumns.join(", ")}) VALUES ${tuples.join(", ")}`;
      });
  }

  async begin(runIds: readonly string[]): Promise<ReadonlyMap<string, Begun>> {
    const ids = [...runIds].sort();
    return this.#port.transaction(async (db) => ({ shouldCommit: true, result: await this.#begin(db, ids) }));
  }

  /** A worker owns the runs, so nothing is added to them any more, and a repetition writes the same. */
  async #begin(db: Queryable, ids: readonly string[]): Promise<ReadonlyMap<string, Begun>> {
    const { base } = this.#dialect;
    const rows = await this.#query(
      db,
      (bind) => `SELECT r.id, r.input, r.schedule FROM ${base.table("runs")} r WHERE ${base.oneOf("r.id", ids, bind)}`,
    );
    const runs = new Map<string, Begun>();
    const begun: Pick<GatheringUpdate, "runId" | "gathering" | "input">[] = [];
    const gatheringIds: string[] = [];
    for (const row of rows) {
      const runId = row.id as string;
      const schedule = (row.schedule as string | null) ?? undefined;
      const gathering = openGatheringOf(schedule);
      if (gathering === null) {
        runs.set(runId, { input: row.input as string, ...(schedule === undefined ? {} : { schedule }) });
        continue;
      }
      const hasBegun: RunGathering = { ...gathering, begun: true };
      const input = gathering.list === undefined ? null : encodeList(await this.#itemsOf(db, [runId]));
      gatheringIds.push(gathering.id);
      begun.push({ runId, gathering: hasBegun, input });
      runs.set(runId, { input: input ?? (row.input as string), schedule: writeGathering(hasBegun) });
    }
    if (begun.length === 0) return runs;
    await this.#query(db, (bind) => {
      const areTheirs = base.oneOf(
        "run_id",
        begun.map(({ runId }) => runId),
        bind,
      );
      return `DELETE FROM ${base.table("gatherings")} WHERE ${base.oneOf("id", gatheringIds.sort(), bind)} AND ${areTheirs} ${base.deleteOrder("id")}`;
    });
    const lists = begun.filter(({ input }) => input !== null);
    await this.#updateRuns(
      db,
      begun.filter(({ input }) => input === null),
    );
    await this.#updateRuns(db, lists);
    if (lists.length > 0)
      await this.#query(db, (bind) => {
        const areTheirs = base.oneOf(
          "run_id",
          lists.map(({ runId }) => runId),
          bind,
        );
        return `UPDATE ${base.table("gathered")} SET input = NULL WHERE ${areTheirs} AND start_key IS NULL`;
      });
    return runs;
  }

  items(runId: string): Promise<readonly GatheredItem[]> {
    return this.#dialect.base.isId(runId) ? this.#itemsOf(this.#port, [runId]) : Promise.resolve([]);
  }

  #itemsOf(db: Queryable, runIds: readonly string[]): Promise<readonly GatheredItem[]> {
    return this.#readItems(
      db,
      (bind) => `${this.#dialect.base.oneOf("i.run_id", runIds, bind)} ORDER BY i.run_id, i.position`,
    );
  }

  async itemOfKey(workflow: string, startKey: string): Promise<GatheredItem | null> {
    const [item = null] = await this.#readItems(
      this.#port,
      (bind) => `i.workflow = ${bind(workflow)} AND i.start_key = ${bind(startKey)}`,
    );
    return item;
  }

  async #readItems(db: Queryable, where: (bind: Bind) => string): Promise<readonly GatheredItem[]> {
    const rows = await this.#query(
      db,
      (bind) =>
        `SELECT ${itemColumns.map((column) => `i.${column}`).join(", ")} FROM ${this.#dialect.base.table("gathered")} i WHERE ${where(bind)}`,
    );
    return rows.map(decodeItem);
  }

  #query(db: Queryable, build: (bind: Bind) => string): Promise<readonly SqlRow[]> {
    return run(db, buildStatement(this.#dialect.base, build));
  }
}

const run = (db: Queryable, { text, values }: SqlText) => db.query(text, values);

const isKeyOf = (alias: string, calls: readonly GatherCall[], bind: Bind) => {
  const pairs = calls.map((call) => `(${bind(call.run.workflow)}, ${bind(call.startKey)})`);
  return `(${alias}.workflow, ${alias}.start_key) IN (${pairs.join(", ")})`;
};

const decodeItem = (row: SqlRow): GatheredItem => ({
  callId: row.call_id as string,
  runId: row.run_id as string,
  position: Number(row.position),
  workflow: row.workflow as string,
  startKey: row.start_key as string | null,
  input: row.input as string | null,
});

/**
 * Deletes what runs have gathered together with their rows, in the order in which a gathering locks its rows.
 *
 * @param runs their columns `id` and `schedule`
 */
export function deletesOfGathered(runs: readonly SqlRow[], dialect: Dialect): readonly SqlText[] {
  const gatherings = runs.flatMap((row) => {
    const gathering = readGathering((row.schedule as string | null) ?? undefined);
    return gathering === null
      ? []
      : [{ runId: row.id as string, id: gathering.id, hasItems: gathering.list !== undefined }];
  });
  const ended = gatherings.map(({ runId }) => runId);
  const ids = gatherings.map(({ id }) => id).sort();
  const withItems = gatherings.flatMap(({ runId, hasItems }) => (hasItems ? [runId] : []));
  const deletes: SqlText[] = [];
  if (ids.length > 0)
    deletes.push(
      buildStatement(dialect, (bind) => {
        const areTheirs = dialect.oneOf("run_id", ended, bind);
        return `DELETE FROM ${dialect.table("gatherings")} WHERE ${dialect.oneOf("id", ids, bind)} AND ${areTheirs} ${dialect.deleteOrder("id")}`;
      }),
    );
  if (withItems.length > 0)
    deletes.push(
      buildStatement(dialect, (bind) => {
        const isOfRun = dialect.oneOf("run_id", withItems, bind);
        return `DELETE FROM ${dialect.table("gathered")} WHERE ${isOfRun} ${dialect.deleteOrder("run_id, position")}`;
      }),
    );
  return deletes;
}
