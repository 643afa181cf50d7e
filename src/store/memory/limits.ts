/** Limits in the memory store: the executable specification of `Limits`. */
import { type ClassState, classesToRead, headsToLock, planAdmission } from "../../core/limits/admission.js";
import { laneOf, type RunClass } from "../../core/limits/lane.js";
import { type LaneState, opensAtOf, wakeableIn } from "../../core/limits/lane-state.js";
import { dueAtOf, resumedOffsetMs, type TurnCounter } from "../../core/limits/order.js";
import { correctedPace } from "../../core/limits/rate.js";
import { type LimitOverride, unknownValues, valuesInForce } from "../../core/limits/settings.js";
import type {
  AdmissionRequest,
  AdmissionResult,
  AdmittedTask,
  FreedSlots,
  LimitRefusal,
  LimitSettings,
  Limits,
  SortedTask,
  SortResult,
  StepSlotChanges,
  StepSlotResult,
  StoredLimit,
  UnsortedTask,
  UnsortedTasks,
} from "../contract/limits.js";
import type { Fence, Hint, Route } from "../contract/store.js";
import { byTurn, type MemoryClass, type MemoryClasses } from "./classes.js";
import { takeOwnership } from "./commit.js";
import { FullLanes, type FullLanesPort } from "./full-lanes.js";
import { MemoryLimitReads, type Pace } from "./limit-reads.js";
import type { MemoryRows } from "./rows.js";
import { MemoryStepSlots } from "./step-slots.js";
import type { MemoryTask } from "./task.js";

type MemoryLimitsPort = Pick<FullLanesPort, "rows" | "emit" | "deliver"> & { readonly clock: () => number };

export class MemoryLimits extends MemoryLimitReads implements Limits {
  readonly #rows: MemoryRows;
  readonly #clock: () => number;
  readonly #emit: (hints: readonly Hint[]) => void;
  readonly #fullLanes: FullLanes;
  readonly #stepSlots: MemoryStepSlots;
  readonly #limits = new Map<string, StoredLimit>();
  readonly #classes: MemoryClasses;
  readonly #paces: Map<string, Pace>;
  readonly #turns: TurnCounter;

  constructor({ rows, clock, emit, deliver }: MemoryLimitsPort) {
    const paces = new Map<string, Pace>();
    super({ rows, clock, paces });
    this.#rows = rows;
    this.#classes = rows.classes;
    this.#turns = rows.classes.turns;
    this.#paces = paces;
    this.#clock = clock;
    this.#emit = emit;
    this.#stepSlots = new MemoryStepSlots({
      ...{ rows, clock, emit },
      laneStates: (ids) => this.#laneStates(ids, []),
      setPace: (lane) => this.#setPace(lane),
      looksAt: (lane) => this.#paces.get(lane)?.looksAt ?? null,
    });
    this.#fullLanes = new FullLanes({
      rows,
      emit,
      deliver,
      classes: this.#classes,
      takeTurn: (at) => this.#turns.take(at),
      policyOf: (limit) => this.#limits.get(limit)?.whenFull ?? null,
      laneStates: (ids) => [...this.#laneStates(ids, []).values()],
      enter: (task, runClass, at) => this.#enter(task, runClass, task.dueAt as number, at),
      hasWaiting: (runClass, at) => this.#hasWaiting(runClass, at),
    });
  }

  async register(limits: readonly LimitSettings[]): Promise<void> {
    for (const settings of limits) {
      const { createdAt = this.#clock(), override = null } = this.#limits.get(settings.name) ?? {};
      this.#limits.set(settings.name, { ...settings, override, createdAt });
    }
  }

  async override(name: string, override: LimitOverride | null): Promise<boolean> {
    const limit = this.#limits.get(name);
    if (limit === undefined) return false;
    this.#limits.set(name, { ...limit, override });
    return true;
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
      tasks.push(
        ...due.map((task) => ({ route: task.route, dueAt: task.dueAt as number, run: this.#rows.toRecord(task.run) })),
      );
      if (nextDueAt !== null) dueInstants.push(nextDueAt);
      if (due.length >= limit) isFull = true;
    }
    const openedLanes: string[] = [];
    for (const [id, { opensAt }] of this.#paces) {
      if (opensAt === null) continue;
      if (opensAt <= at) openedLanes.push(id);
      else dueInstants.push(opensAt);
    }
    const hasOpenClasses = [...this.#classes.values()].some(
      (runClass) => runClass.blockedOn === null && isOneOf(runClass, routes),
    );
    return {
      at,
      tasks,
      hasOpenClasses,
      openedLanes,
      nextDueAt: isFull || dueInstants.length === 0 ? null : Math.min(...dueInstants),
    };
  }

  async sort(tasks: readonly SortedTask[]): Promise<SortResult> {
    const at = this.#clock();
    const sortable = tasks.filter(({ runId, runClass, dueAt }) => {
      const task = this.#rows.tasks.get(runId);
      const isDue = task?.state === "ready" || (task?.state === "parked" && task.dueAt !== null && task.dueAt <= at);
      return isDue && task?.route === runClass.route && (dueAt === undefined || task.dueAt === dueAt);
    });
    const verdicts = this.#fullLanes.judge(sortable, at);
    const ended = new Set(verdicts.map(({ runId }) => runId));
    for (const { runId, runClass, hasBegun } of sortable.filter((task) => !ended.has(task.runId))) {
      const task = this.#rows.tasks.get(runId) as MemoryTask;
      this.#enter(task, runClass, (task.dueAt as number) - (hasBegun ? resumedOffsetMs : 0), at);
    }
    this.#fullLanes.carryOut(verdicts, at);
    return { verdicts, hasPostponed: false };
  }

  async refuse(refusals: readonly LimitRefusal[]): Promise<readonly string[]> {
    return this.#fullLanes.refuse(refusals, this.#clock());
  }

  #enter(task: MemoryTask, runClass: RunClass, dueAt: number, at: number): void {
    task.route = runClass.id;
    this.#rows.taskQueues.enqueue(task, dueAt, at);
    this.#classes.create(runClass, at);
  }

  async unsort(routes: readonly Route[]): Promise<number> {
    const at = this.#clock();
    const classes = [...this.#classes.values()].filter((runClass) => isOneOf(runClass, routes));
    let count = classes.length;
    for (const { id, route, version } of classes) {
      const waiting = this.#rows.taskQueues.dequeueDue({ workflow: id, version }, at, Number.POSITIVE_INFINITY);
      for (const task of waiting.due) {
        task.route = route;
        this.#rows.taskQueues.enqueue(task, dueAtOf(task.dueAt as number), at);
        count += 1;
      }
      this.#classes.delete(id);
    }
    if (count > 0) this.#emit([{ kind: "ready", workflows: [...new Set(classes.map(({ route }) => route))] }]);
    return count;
  }

  async admit({ fence, routes, limit, freed = [] }: AdmissionRequest): Promise<AdmissionResult> {
    if (!this.#rows.isFenceValid(fence)) return { kind: "fenced" };
    const at = this.#clock();
    const maxClasses = classesToRead(limit);
    const isMine = (runClass: RunClass) => isOneOf(runClass, routes);
    const open = [...this.#classes.values()].filter((runClass) => runClass.blockedOn === null && isMine(runClass));
    const blocked = freed.flatMap(({ lane, count }) => this.#blockedOn(lane).slice(0, count));
    const candidates = [...new Set([...open, ...blocked])].sort(byTurn);
    const classes = candidates.slice(0, maxClasses);
    const laneIds = new Set([...freed.map(({ lane }) => lane), ...classes.flatMap(({ lanes }) => lanes)]);
    const lanes = this.#laneStates([...laneIds], classes);
    const mine = classes.filter(isMine);
    const heads = new Map<string, MemoryTask[]>();
    for (const runClass of mine) {
      const count = headsToLock(runClass, lanes, { limit, now: at, classCount: mine.length });
      const { due } = this.#rows.taskQueues.dequeueDue({ workflow: runClass.id, version: runClass.version }, at, count);
      heads.set(runClass.id, [...due]);
    }
    const states = classes.map(
      (runClass): ClassState => ({ ...runClass, headCount: heads.get(runClass.id)?.length ?? null }),
    );
    const plan = planAdmission(states, [...lanes.values()], { limit, now: at, firstTurn: this.#turns.take(at) });
    const tasks = plan.turns.map((classId) =>
      this.#admit(
        classes.find(({ id }) => id === classId) as MemoryClass,
        heads.get(classId)?.shift() as MemoryTask,
        fence,
        at,
      ),
    );
    for (const left of heads.values()) for (const task of left) this.#rows.taskQueues.enqueue(task, task.dueAt, at);
    for (const lane of plan.lanes.values()) this.#setPace(lane);
    let hasMore = candidates.length > classes.length || plan.turns.length >= limit;
    const openedRoutes: string[] = [];
    for (const runClass of classes) {
      runClass.turn = plan.turnOf.get(runClass.id) ?? runClass.turn;
      this.#turns.skipTo(runClass.turn);
      runClass.blockedOn = plan.blockedOn.get(runClass.id) ?? null;
      if (!this.#hasWaiting(runClass, at)) this.#classes.delete(runClass.id);
      else if (runClass.blockedOn === null && isMine(runClass)) hasMore = true;
      else if (runClass.blockedOn === null) openedRoutes.push(runClass.route);
    }
    if (openedRoutes.length > 0) this.#emit([{ kind: "ready", workflows: openedRoutes }]);
    await this.#tellSteps(freed);
    return { kind: "admitted", at, tasks, hasMore, lanesToWake: lanesToWake(lanes, plan.roomOf) };
  }

  /** The classes that are blocked on the lane, by turn. */
  #blockedOn(lane: string): readonly MemoryClass[] {
    return [...this.#classes.values()].filter(({ blockedOn }) => blockedOn === lane).sort(byTurn);
  }

  /** @param readClasses whether others are blocked on a lane is part of its state */
  #laneStates(ids: readonly string[], readClasses: readonly RunClass[]): Map<string, LaneState> {
    const { slots } = this.#rows;
    return new Map(
      ids.map((id): readonly [string, LaneState] => {
        const limit = this.#limits.get(laneOf(id).limit);
        const state: LaneState = {
          id,
          values: limit === undefined ? unknownValues : valuesInForce(limit, limit.override, this.#clock()),
          inUse: slots.inUse(id),
          waitingSteps: slots.waiting(id).length,
          pacedUntilUs: this.#paces.get(id)?.pacedUntilUs ?? 0,
          opensAt: this.#paces.get(id)?.opensAt ?? null,
          ...this.#stepSlots.parkedIn(id),
          unreadTurn:
            this.#blockedOn(id).find(({ id: classId }) => !readClasses.some((read) => read.id === classId))?.turn ??
            null,
        };
        return [id, state];
      }),
    );
  }

  #setPace({ id, pacedUntilUs, opensAt, parked }: LaneState): void {
    const looksAt = parked?.looksAt ?? null;
    if (pacedUntilUs === 0 && opensAt === null && looksAt === null) this.#paces.delete(id);
    else this.#paces.set(id, { pacedUntilUs, opensAt, looksAt });
  }

  #hasWaiting({ id, version }: RunClass, at: number): boolean {
    const { due } = this.#rows.taskQueues.dequeueDue({ workflow: id, version }, at, 1);
    for (const task of due) this.#rows.taskQueues.enqueue(task, task.dueAt, at);
    return due.length > 0;
  }

  #admit(runClass: MemoryClass, task: MemoryTask, fence: Fence, at: number): AdmittedTask {
    const { isFresh } = task;
    const runId = task.run.id;
    if ((task.dueAt ?? 0) < 0) task.dueAt = (task.dueAt ?? 0) + resumedOffsetMs;
    task.route = runClass.route;
    takeOwnership(task, fence);
    for (const lane of runClass.lanes) {
      const isHeldOpen = this.#limits.get(laneOf(lane).limit)?.isHeldOpen ?? false;
      const holder = isHeldOpen ? { owner: null, epoch: null } : { owner: fence.workerId, epoch: fence.epoch };
      this.#rows.slots.put({ runId, node: "", lane, isWaiting: false, rank: 0, units: 1, ...holder, at });
    }
    const slots = this.#rows.slots
      .all()
      .filter((slot) => slot.runId === runId && slot.owner === null && slot.node === "");
    const openLanes = slots.map(({ lane }) => lane);
    return {
      run: this.#rows.toRecord(task.run),
      route: task.route,
      deliveries: task.deliveries,
      pendingMessages: task.pendingMessages,
      isFresh,
      lanes: [...new Set([...runClass.lanes, ...openLanes])],
      openLanes,
    };
  }

  async changeStepSlots(changes: StepSlotChanges): Promise<StepSlotResult> {
    return this.#rows.isFenceValid(changes.fence) ? this.#stepSlots.change(changes) : { kind: "fenced" };
  }

  async offerSlots(): Promise<{ readonly at: number; readonly nextAt: number | null }> {
    const at = this.#clock();
    const due = [...this.#paces].flatMap(([id, { looksAt }]) => (looksAt !== null && looksAt <= at ? [id] : []));
    await this.#look(due);
    return { at, nextAt: this.#nextLookAt };
  }

  /** For heartbeats. */
  nextOfferInMs(): number | null {
    return this.#nextLookAt === null ? null : this.#nextLookAt - this.#clock();
  }

  get #nextLookAt(): number | null {
    const instants = [...this.#paces.values()].flatMap(({ looksAt }) => looksAt ?? []);
    return instants.length === 0 ? null : Math.min(...instants);
  }

  async #look(lanes: readonly string[]): Promise<void> {
    if (lanes.length > 0) await this.wake(this.#stepSlots.look(lanes, this.#clock()));
  }

  /** Offers slots of these lanes that are free, if runs wait in them that no worker executes. */
  #offerIn(freed: readonly FreedSlots[]): Promise<void> {
    return this.#look(freed.flatMap(({ lane }) => (this.#paces.get(lane)?.looksAt == null ? [] : [lane])));
  }

  async addUnits(laneId: string, units: number): Promise<void> {
    const at = this.#clock();
    const lane = this.#laneStates([laneId], []).get(laneId) as LaneState;
    const { rate } = lane.values;
    if (rate === null) return;
    const paced = { ...lane, pacedUntilUs: correctedPace(rate, lane.pacedUntilUs, at * 1_000, units) };
    this.#setPace({ ...paced, opensAt: opensAtOf(paced, lane.unreadTurn !== null || lane.waitingSteps > 0, at) });
  }

  async wake(freed: readonly FreedSlots[]): Promise<number> {
    let wokenCount = 0;
    for (const { lane, count } of freed) {
      for (const runClass of this.#blockedOn(lane).slice(0, count)) {
        runClass.blockedOn = null;
        wokenCount += 1;
      }
    }
    if (wokenCount > 0) this.#emit([{ kind: "ready", workflows: [] }]);
    await this.#tellSteps(freed);
    return wokenCount;
  }

  async #tellSteps(freed: readonly FreedSlots[]): Promise<void> {
    if (!freed.some(({ lane }) => this.#rows.slots.waiting(lane).length > 0)) return;
    this.#emit([{ kind: "slots" }]);
    await this.#offerIn(freed);
  }

  sweep(): Promise<number> {
    const blockedOn = new Set([...this.#classes.values()].flatMap((runClass) => runClass.blockedOn ?? []));
    const lanes = this.#laneStates([...blockedOn], []);
    const wakeable = new Map([...lanes].map(([id, lane]) => [id, wakeableIn(lane, this.#clock())]));
    return this.wake(lanesToWake(lanes, wakeable));
  }

  async tidy(): Promise<void> {
    const left = this.#rows.slots.all().filter(({ owner, runId }) => owner === null && !this.#rows.tasks.has(runId));
    for (const slot of left) this.#rows.slots.release(slot.lane, slot);
    const nowUs = this.#clock() * 1_000;
    for (const [id, { pacedUntilUs, opensAt, looksAt }] of this.#paces)
      if (opensAt === null && looksAt === null && pacedUntilUs < nowUs) this.#paces.delete(id);
    await this.wake(left.map(({ lane }) => ({ lane, count: 1 })));
  }

  /** The numbers of rows that the tables would have. */
  get rowCounts(): Readonly<Record<"limits" | "lanes" | "classes" | "slots", number>> {
    const slots = this.#rows.slots.all();
    const lanes = new Set([...slots.map(({ lane }) => lane), ...this.#paces.keys()]).size;
    return { limits: this.#limits.size, lanes, classes: this.#classes.size, slots: slots.length };
  }

  async list(): Promise<readonly StoredLimit[]> {
    return [...this.#limits.values()].sort((a, b) => compare(a.name, b.name));
  }
}

function lanesToWake(lanes: ReadonlyMap<string, LaneState>, roomOf: ReadonlyMap<string, number>): FreedSlots[] {
  return [...lanes.values()].flatMap(({ id, unreadTurn }) => {
    const count = roomOf.get(id) ?? 0;
    return unreadTurn !== null && count > 0 ? [{ lane: id, count }] : [];
  });
}

const isOneOf = ({ route, version }: RunClass, routes: readonly Route[]) =>
  routes.some((candidate) => candidate.workflow === route && candidate.version === version);
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
