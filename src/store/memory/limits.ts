/** Limits in the memory store: the executable specification of `Limits`. */
import {
  type ClassState,
  classesToRead,
  headsToLock,
  type LaneState,
  planAdmission,
} from "../../core/limits/admission.js";
import { laneOf, laneRangeOf, type RunClass } from "../../core/limits/lane.js";
import { resumedOffsetMs, TurnCounter } from "../../core/limits/order.js";
import type {
  AdmissionRequest,
  AdmissionResult,
  AdmittedTask,
  ClassRecord,
  FreedSlots,
  LaneRecord,
  LimitSettings,
  Limits,
  SlotRecord,
  SortedTask,
  StoredLimit,
  UnsortedTask,
  UnsortedTasks,
} from "../contract/limits.js";
import type { Fence, Hint, Route } from "../contract/store.js";
import { takeOwnership } from "./commit.js";
import type { MemoryRows } from "./rows.js";
import type { MemoryTask } from "./task.js";

interface MemoryClass extends RunClass {
  turn: number;
  blockedOn: string | null;
}

export class MemoryLimits implements Limits {
  readonly #rows: MemoryRows;
  readonly #clock: () => number;
  readonly #emit: (hints: readonly Hint[]) => void;
  readonly #limits = new Map<string, StoredLimit>();
  readonly #classes = new Map<string, MemoryClass>();
  readonly #turns = new TurnCounter();

  constructor(rows: MemoryRows, clock: () => number, emit: (hints: readonly Hint[]) => void) {
    this.#rows = rows;
    this.#clock = clock;
    this.#emit = emit;
  }

  async register(limits: readonly LimitSettings[]): Promise<void> {
    for (const { name, concurrency } of limits) {
      const createdAt = this.#limits.get(name)?.createdAt ?? this.#clock();
      this.#limits.set(name, { name, concurrency, createdAt });
    }
  }

  async unsorted({
    routes,
    limit,
  }: {
    readonly routes: readonly Route[];
    readonly limit: number;
  }): Promise<UnsortedTasks> {
    const at = this.#clock();
    const tasks: UnsortedTask[] = [];
    const dueInstants: number[] = [];
    let isFull = false;
    for (const route of routes) {
      const { due, nextDueAt } = this.#rows.taskQueues.dequeueDue(route, at, limit);
      for (const task of due) this.#rows.taskQueues.enqueue(task, task.dueAt, at);
      tasks.push(...due.map((task) => ({ route: task.route, run: this.#rows.toRecord(task.run) })));
      if (nextDueAt !== null) dueInstants.push(nextDueAt);
      if (due.length >= limit) isFull = true;
    }
    const hasOpenClasses = [...this.#classes.values()].some(
      (runClass) => runClass.blockedOn === null && isOneOf(runClass, routes),
    );
    return {
      at,
      tasks,
      hasOpenClasses,
      nextDueAt: isFull || dueInstants.length === 0 ? null : Math.min(...dueInstants),
    };
  }

  async sort(tasks: readonly SortedTask[]): Promise<void> {
    const at = this.#clock();
    for (const { runId, runClass, hasBegun } of tasks) {
      const task = this.#rows.tasks.get(runId);
      const isDue = task?.state === "ready" || (task?.state === "parked" && task.dueAt !== null && task.dueAt <= at);
      if (task === undefined || !isDue || task.route !== runClass.route) continue;
      task.route = runClass.id;
      this.#rows.taskQueues.enqueue(task, (task.dueAt as number) - (hasBegun ? resumedOffsetMs : 0), at);
      if (!this.#classes.has(runClass.id))
        this.#classes.set(runClass.id, { ...runClass, turn: this.#turns.take(at), blockedOn: null });
    }
  }

  async admit({ fence, routes, limit }: AdmissionRequest): Promise<AdmissionResult> {
    if (!this.#rows.isFenceValid(fence)) return { kind: "fenced" };
    const at = this.#clock();
    const maxClasses = classesToRead(limit);
    const open = [...this.#classes.values()]
      .filter((runClass) => runClass.blockedOn === null && isOneOf(runClass, routes))
      .sort((a, b) => a.turn - b.turn);
    const classes = open.slice(0, maxClasses);
    const lanes = this.#laneStates(classes);
    const heads = new Map<string, MemoryTask[]>();
    let hasMore = open.length > classes.length;
    for (const runClass of classes) {
      const count = headsToLock(runClass, lanes, { limit, classCount: classes.length });
      const { due } = this.#rows.taskQueues.dequeueDue({ workflow: runClass.id, version: runClass.version }, at, count);
      heads.set(runClass.id, [...due]);
    }
    const states = classes.map(
      (runClass): ClassState => ({ ...runClass, headCount: heads.get(runClass.id)?.length ?? 0 }),
    );
    const plan = planAdmission(states, [...lanes.values()], { limit, firstTurn: this.#turns.take(at) });
    const tasks = plan.turns.map((classId) =>
      this.#admit(
        classes.find(({ id }) => id === classId) as MemoryClass,
        heads.get(classId)?.shift() as MemoryTask,
        fence,
        at,
      ),
    );
    for (const left of heads.values()) for (const task of left) this.#rows.taskQueues.enqueue(task, task.dueAt, at);
    for (const runClass of classes) {
      runClass.turn = plan.turnOf.get(runClass.id) ?? runClass.turn;
      this.#turns.skipTo(runClass.turn);
      runClass.blockedOn = plan.blockedOn.get(runClass.id) ?? null;
      if (!this.#hasWaiting(runClass, at)) this.#classes.delete(runClass.id);
      else if (runClass.blockedOn === null) hasMore = true;
    }
    return { kind: "admitted", at, tasks, hasMore, lanesToWake: this.#lanesToWake(plan.roomOf) };
  }

  #laneStates(classes: readonly RunClass[]): Map<string, LaneState> {
    const ids = new Set(classes.flatMap(({ lanes }) => lanes));
    return new Map(
      [...ids].map((id) => [id, { id, concurrency: this.#concurrencyOf(id), inUse: this.#rows.slots.inUse(id) }]),
    );
  }

  /** A limit that was never registered has no slots, because nothing says how many it has. */
  #concurrencyOf(lane: string): number {
    const limit = this.#limits.get(laneOf(lane).limit);
    return limit === undefined ? 0 : (limit.concurrency ?? Number.POSITIVE_INFINITY);
  }

  #hasWaiting({ id, version }: RunClass, at: number): boolean {
    const { due } = this.#rows.taskQueues.dequeueDue({ workflow: id, version }, at, 1);
    for (const task of due) this.#rows.taskQueues.enqueue(task, task.dueAt, at);
    return due.length > 0;
  }

  #waitingIn(classId: string): number {
    let count = 0;
    for (const { route, state } of this.#rows.tasks.values()) if (route === classId && state !== "owned") count += 1;
    return count;
  }

  #admit(runClass: MemoryClass, task: MemoryTask, fence: Fence, at: number): AdmittedTask {
    const { isFresh } = task;
    if ((task.dueAt ?? 0) < 0) task.dueAt = (task.dueAt ?? 0) + resumedOffsetMs;
    task.route = runClass.route;
    takeOwnership(task, fence);
    const { workerId: owner, epoch } = fence;
    for (const lane of runClass.lanes) this.#rows.slots.take({ runId: task.run.id, lane, owner, epoch, at });
    return {
      run: this.#rows.toRecord(task.run),
      route: task.route,
      deliveries: task.deliveries,
      pendingMessages: task.pendingMessages,
      isFresh,
      lanes: runClass.lanes,
    };
  }

  #lanesToWake(roomOf: ReadonlyMap<string, number>): FreedSlots[] {
    const blockedOn = new Set([...this.#classes.values()].map((runClass) => runClass.blockedOn));
    return [...roomOf].flatMap(([lane, count]) => (count > 0 && blockedOn.has(lane) ? [{ lane, count }] : []));
  }

  async wake(freed: readonly FreedSlots[]): Promise<number> {
    let wokenCount = 0;
    for (const { lane, count } of freed) {
      const blocked = [...this.#classes.values()].filter(({ blockedOn }) => blockedOn === lane);
      for (const runClass of blocked.sort((a, b) => a.turn - b.turn).slice(0, count)) {
        runClass.blockedOn = null;
        wokenCount += 1;
      }
    }
    if (wokenCount > 0) this.#emit([{ kind: "ready", workflows: [] }]);
    return wokenCount;
  }

  sweep(): Promise<number> {
    const blockedOn = new Set([...this.#classes.values()].flatMap((runClass) => runClass.blockedOn ?? []));
    return this.wake(
      [...blockedOn].flatMap((lane) => {
        const count = this.#concurrencyOf(lane) - this.#rows.slots.inUse(lane);
        return count > 0 ? [{ lane, count }] : [];
      }),
    );
  }

  /** The numbers of rows that the tables of a database would have. */
  get rowCounts(): Readonly<Record<"limits" | "lanes" | "classes" | "slots", number>> {
    const slots = this.#rows.slots.all();
    const lanes = new Set(slots.map(({ lane }) => lane)).size;
    return { limits: this.#limits.size, lanes, classes: this.#classes.size, slots: slots.length };
  }

  async list(): Promise<readonly StoredLimit[]> {
    return [...this.#limits.values()].sort((a, b) => compare(a.name, b.name));
  }

  async lanes(
    limit: string,
    page: { readonly after: string | null; readonly limit: number },
  ): Promise<readonly LaneRecord[]> {
    const [from, to] = laneRangeOf(limit);
    const ids = new Set(this.#rows.slots.all().map(({ lane }) => lane));
    return [...ids]
      .filter((id) => id >= from && id < to && (page.after === null || id > page.after))
      .sort(compare)
      .slice(0, page.limit)
      .map((id) => ({ id, inUse: this.#rows.slots.inUse(id) }));
  }

  async slots(of: Parameters<Limits["slots"]>[0], limit: number): Promise<readonly SlotRecord[]> {
    const isAskedFor = ({ runId, lane }: SlotRecord) =>
      "lane" in of
        ? lane === of.lane
        : "runIds" in of
          ? of.runIds.includes(runId)
          : of.afterRunId === null || runId > of.afterRunId;
    return this.#rows.slots.all().filter(isAskedFor).slice(0, limit);
  }

  async classes(of: Parameters<Limits["classes"]>[0], limit: number): Promise<readonly ClassRecord[]> {
    const isAskedFor = ({ id }: RunClass) =>
      "ids" in of ? of.ids.includes(id) : of.afterId === null || id > of.afterId;
    return [...this.#classes.values()]
      .filter(isAskedFor)
      .sort((a, b) => compare(a.id, b.id))
      .slice(0, limit)
      .map((runClass) => ({ ...runClass }));
  }

  async waiting(classIds: readonly string[], cap: number): Promise<ReadonlyMap<string, number>> {
    return new Map(classIds.map((id) => [id, Math.min(cap, this.#waitingIn(id))]));
  }
}

const isOneOf = ({ route, version }: RunClass, routes: readonly Route[]) =>
  routes.some((candidate) => candidate.workflow === route && candidate.version === version);
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
