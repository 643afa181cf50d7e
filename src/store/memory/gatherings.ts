/** Gathered starts in the memory store: the executable specification of `Gatherings`. */
import { encodeList } from "../../core/gathering/list-input.js";
import {
  type GatheredItem,
  type GatheringRun,
  openGatheringOf,
  planGathering,
} from "../../core/gathering/plan-gathering.js";
import { readGathering, writeGathering } from "../../core/gathering/run-gathering.js";
import { dueAtOf } from "../../core/limits/order.js";
import { baseRouteOf } from "../../core/naming/route.js";
import type { GatherCall, Gatherings, GatherResult } from "../contract/gatherings.js";
import type { NewRun, RefusedStart, RunRecord } from "../contract/store.js";
import { type HintEmitter, hintsOfStarts } from "../shared/hint-emitter.js";
import { type MemoryRows, startKeyOf } from "./rows.js";
import type { MemoryRun } from "./task.js";

export interface MemoryGatheringsPort {
  readonly rows: MemoryRows;
  readonly hints: HintEmitter;
  now(): number;
  /** Creates these runs, or none of them if some are refused. */
  start(starts: readonly NewRun[], at: number): readonly RefusedStart[];
}

export class MemoryGatherings implements Gatherings {
  readonly #port: MemoryGatheringsPort;

  constructor(port: MemoryGatheringsPort) {
    this.#port = port;
  }

  async gather(calls: readonly GatherCall[]): Promise<GatherResult> {
    const { rows, hints } = this.#port;
    const at = this.#port.now();
    const taken = calls.flatMap(({ run, startKey }): RefusedStart[] => {
      const holder = startKey === null ? undefined : rows.startKeys.get(startKeyOf({ ...run, startKey }));
      return holder === undefined ? [] : [{ runId: run.id, reason: "startKey", existing: rows.toRecord(holder) }];
    });
    if (taken.length > 0) return { kind: "refused", refused: taken };
    const open = new Map(
      calls.flatMap(({ id }) => {
        const run = this.#openRun(rows.gatherings.get(id));
        return run === null ? [] : [[id, run] as const];
      }),
    );
    const plan = planGathering({ calls, at, open, known: this.#knownItems(calls) });
    const refused = this.#port.start(plan.starts, at);
    if (refused.length > 0) return { kind: "refused", refused };
    for (const { runId, gathering, input, dueAt, isMoved } of plan.updates) {
      const run = rows.runs.get(runId) as MemoryRun;
      rows.runs.set(runId, Object.assign(run, { schedule: writeGathering(gathering), input: input ?? run.input }));
      const task = rows.tasks.get(runId);
      if (!isMoved || task === undefined) continue;
      task.route = baseRouteOf(task.route);
      rows.taskQueues.enqueue(task, dueAt, at);
    }
    for (const item of plan.items) rows.gathered.set(item.callId, item);
    for (const [id, runId] of plan.leads) rows.gatherings.set(id, runId);
    hints.emit(hintsOfStarts(calls.map(({ run }) => run)));
    return { kind: "gathered", at, outcomes: plan.outcomes, createdIds: plan.starts.map(({ id }) => id) };
  }

  #openRun(runId: string | undefined): GatheringRun | null {
    const { runs, tasks } = this.#port.rows;
    const run = runId === undefined ? undefined : runs.get(runId);
    const task = runId === undefined ? undefined : tasks.get(runId);
    if (run === undefined || task === undefined) return null;
    const gathering = openGatheringOf(run.schedule);
    const hasBegun = task.state === "owned" || task.deliveries > 0 || run.startedAt !== null;
    if (gathering === null || hasBegun || run.status !== "pending" || task.pendingMessages > 0) return null;
    return task.dueAt === null ? null : { runId: run.id, gathering, dueAt: dueAtOf(task.dueAt) };
  }

  #knownItems(calls: readonly GatherCall[]): GatheredItem[] {
    const { gathered } = this.#port.rows;
    const keys = new Set(
      calls.flatMap(({ run, startKey }) => (startKey === null ? [] : `${run.workflow}\u0000${startKey}`)),
    );
    const ofCalls = calls.flatMap(({ run }) => gathered.get(run.id) ?? []);
    const ofKeys = keys.size === 0 ? [] : [...gathered.values()].filter((item) => keys.has(startKeyOf(item)));
    return [...ofCalls, ...ofKeys];
  }

  async begin(runIds: readonly string[]): Promise<ReadonlyMap<string, Pick<RunRecord, "input" | "schedule">>> {
    const { rows } = this.#port;
    for (const runId of runIds) {
      const run = rows.runs.get(runId);
      const gathering = openGatheringOf(run?.schedule);
      if (run === undefined || gathering === null) continue;
      const items = await this.items(runId);
      if (gathering.list !== undefined) Object.assign(run, { input: encodeList(items) });
      Object.assign(run, { schedule: writeGathering({ ...gathering, begun: true }) });
      for (const item of items) if (item.startKey === null) rows.gathered.set(item.callId, { ...item, input: null });
      if (rows.gatherings.get(gathering.id) === runId) rows.gatherings.delete(gathering.id);
    }
    return new Map(
      runIds.flatMap((runId) => {
        const run = rows.runs.get(runId);
        return run === undefined ? [] : [[runId, rows.toRecord(run)] as const];
      }),
    );
  }

  async items(runId: string): Promise<readonly GatheredItem[]> {
    return [...this.#port.rows.gathered.values()]
      .filter((item) => item.runId === runId)
      .sort((a, b) => a.position - b.position);
  }

  async itemOfKey(workflow: string, startKey: string): Promise<GatheredItem | null> {
    const items = this.#port.rows.gathered.values();
    return [...items].find((item) => item.workflow === workflow && item.startKey === startKey) ?? null;
  }

  /** Called when an ended run is deleted. */
  static forget(rows: MemoryRows, run: MemoryRun): void {
    const gathering = readGathering(run.schedule);
    if (gathering === null) return;
    if (rows.gatherings.get(gathering.id) === run.id) rows.gatherings.delete(gathering.id);
    for (const [callId, item] of rows.gathered) if (item.runId === run.id) rows.gathered.delete(callId);
  }
}
