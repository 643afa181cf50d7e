/** Judges runs that come into lanes whose limits have a policy for the case that they are full (`onFull`). */
import { type FullLaneVerdict, type FullPolicy, type GuardedLane, judgeStarts } from "../../core/limits/full-lane.js";
import { laneOf, type RunClass, runClassOf } from "../../core/limits/lane.js";
import { type LaneState, roomIn } from "../../core/limits/lane-state.js";
import { baseRouteOf } from "../../core/naming/route.js";
import { limitCycleMessage, limitFullMessage } from "../../core/run/full-limit.js";
import type { LimitRefusal, SortedTask } from "../contract/limits.js";
import type { Hint, Message } from "../contract/store.js";
import type { MemoryRows } from "./rows.js";
import type { MemoryTask } from "./task.js";

export interface FullLanesPort {
  readonly rows: MemoryRows;
  /** By id. */
  readonly classes: Map<string, RunClass>;
  takeTurn(at: number): number;
  /** null: runs wait when the lane is full. */
  policyOf(limit: string): FullPolicy | null;
  laneStates(ids: readonly string[]): readonly LaneState[];
  /** Gives the task the route of the class. */
  enter(task: MemoryTask, runClass: RunClass, at: number): void;
  hasWaiting(runClass: RunClass, at: number): boolean;
  emit(hints: readonly Hint[]): void;
  deliver(messages: readonly Message[], at: number): void;
}

/** The rank of a slot whose run is being canceled for another one. */
const evictingRank = 1;

export class FullLanes {
  readonly #port: FullLanesPort;

  constructor(port: FullLanesPort) {
    this.#port = port;
  }

  judge(tasks: readonly SortedTask[], at: number): readonly FullLaneVerdict[] {
    const laneIds = [...new Set(tasks.flatMap(({ guardedLanes }) => guardedLanes ?? []))];
    if (laneIds.length === 0) return [];
    const lanes = this.#port.laneStates(laneIds).flatMap((state): readonly GuardedLane[] => {
      const policy = this.#port.policyOf(laneOf(state.id).limit);
      return policy === null ? [] : [this.#guarded(state, policy, at)];
    });
    const hasBegun = ({ deliveries, run }: MemoryTask) => deliveries > 0 || run.startedAt !== null;
    return judgeStarts(
      lanes,
      tasks.map(({ runId, guardedLanes = [] }) => ({
        runId,
        lanes: guardedLanes,
        hasBegun: hasBegun(this.#taskOf(runId)),
      })),
    );
  }

  #taskOf(runId: string): MemoryTask {
    return this.#port.rows.tasks.get(runId) as MemoryTask;
  }

  #guarded(state: LaneState, policy: FullPolicy, at: number): GuardedLane {
    const { rows, classes } = this.#port;
    const { id, values, inUse } = state;
    const isInLane = ({ route, state: taskState }: MemoryTask) =>
      taskState === "ready" && classes.get(route)?.lanes.includes(id) === true;
    const waiting = [...rows.tasks.values()].filter(isInLane);
    const slots = rows.slots.all().filter(({ lane, node, isWaiting }) => lane === id && node === "" && !isWaiting);
    const held = slots.filter(({ rank }) => rank !== evictingRank);
    const freeSlots = (values.concurrency ?? Number.POSITIVE_INFINITY) - inUse;
    return {
      id,
      policy,
      room: policy.onFull === "cancelOldest" ? freeSlots + slots.length - held.length : roomIn(state, at),
      waiting: waiting.length,
      holders: held.sort((a, b) => a.at - b.at || compare(a.runId, b.runId)).map(({ runId }) => runId),
      waitingRuns: waiting
        .filter(({ dueAt, deliveries }) => (dueAt ?? 0) >= 0 && deliveries === 0)
        .sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0) || compare(a.run.id, b.run.id))
        .map(({ run }) => run.id),
    };
  }

  /** Runs that are to end get a class without lanes, so a worker takes them at once. */
  carryOut(verdicts: readonly FullLaneVerdict[], at: number): void {
    if (verdicts.length === 0) return;
    const { emit, deliver, takeTurn } = this.#port;
    const turn = takeTurn(at);
    const holders: MemoryTask[] = [];
    for (const { runId, lane, isHolder } of verdicts) {
      if (!isHolder) {
        this.#leave(this.#taskOf(runId), turn, at);
        continue;
      }
      holders.push(this.#taskOf(runId));
      this.#markEvicted(runId, lane);
    }
    const owned = holders.filter(({ state }) => state === "owned").map(({ run }) => run.id);
    const woken = holders.filter(({ state }) => state === "parked").map(({ route }) => route);
    deliver(verdicts.map(limitFullMessage), at);
    if (owned.length > 0) emit([{ kind: "messages", runIds: owned }]);
    if (woken.length > 0) emit([{ kind: "ready", workflows: woken }]);
  }

  /** Returns the ids of those that waited. */
  refuse(refusals: readonly LimitRefusal[], at: number): readonly string[] {
    const { rows, emit, deliver, takeTurn } = this.#port;
    const turn = takeTurn(at);
    const waiting = refusals.filter(({ runId }) => {
      const task = rows.tasks.get(runId);
      return task?.state === "ready" && baseRouteOf(task.route) !== task.route;
    });
    for (const { runId } of waiting) this.#leave(this.#taskOf(runId), turn, at);
    deliver(waiting.map(limitCycleMessage), at);
    const workflows = waiting.map(({ runId }) => baseRouteOf(this.#taskOf(runId).route));
    if (workflows.length > 0) emit([{ kind: "ready", workflows }]);
    return waiting.map(({ runId }) => runId);
  }

  #leave(task: MemoryTask, turn: number, at: number): void {
    const { classes, enter, hasWaiting } = this.#port;
    const left = classes.get(task.route);
    enter(task, runClassOf(baseRouteOf(task.route), task.run.version, [], `full\t${turn}`), at);
    if (left !== undefined && !hasWaiting(left, at)) classes.delete(left.id);
  }

  #markEvicted(runId: string, lane: string): void {
    const { slots } = this.#port.rows;
    for (const slot of slots.all())
      if (slot.runId === runId && slot.lane === lane && slot.node === "") slots.put({ ...slot, rank: evictingRank });
  }
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
