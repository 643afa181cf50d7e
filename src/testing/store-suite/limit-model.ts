/**
 * A simulation of limits: without locks, without indexes, and small enough to be checked by reading it. It says who may be
 * admitted, and keeps what follows from it; the tests of `limit-model-histories.ts` hold stores to it.
 *
 * It has no opinion about when a class in which no run waits is forgotten: it is told. All instants are milliseconds.
 */
import { laneOf } from "../../core/limits/lane.js";
import type { Rate } from "../../core/limits/rate.js";

export interface ModelLimit {
  readonly concurrency: number | null;
  readonly rate: Rate | null;
  readonly isHeldOpen: boolean;
}

export interface ModelOverride {
  readonly concurrency?: number | null;
  readonly rate?: Rate | null;
  readonly until: number | null;
}

export interface ModelRun {
  readonly id: string;
  readonly workflow: string;
  readonly priority: number;
  /** In which lanes it needs a slot. */
  readonly lanes: readonly string[];
  readonly share: string;
  state: "asleep" | "due" | "waiting" | "executed" | "ended";
  /** When it is or was due; null: never by itself. */
  dueAt: number | null;
  hasBegun: boolean;
  /** The class in which it waits. */
  classId: string | null;
  worker: string | null;
}

export interface ModelSlot {
  readonly runId: string;
  readonly lane: string;
  /** "" if the run holds the slot. */
  readonly node: string;
  /** null: until the run ends. */
  readonly worker: string | null;
  readonly units: number;
  readonly priority: number;
  readonly askedAt: number;
  isWaiting: boolean;
}

interface ModelClass {
  readonly id: string;
  readonly lanes: readonly string[];
  /** How often each class that needs one of its lanes was admitted since the last turn of this one, although this one could have been. */
  othersSince: Map<string, number>;
}

export class LimitModel {
  now: number;
  readonly runs = new Map<string, ModelRun>();
  slots: ModelSlot[] = [];
  readonly #limits = new Map<string, ModelLimit>();
  readonly #overrides = new Map<string, ModelOverride>();
  /** The class whose last turn was the longest ago is the first. */
  #classes: ModelClass[] = [];
  /** When the even pace of each lane has come to the end of what was admitted. */
  readonly #pacedUntil = new Map<string, number>();
  /** What was admitted under a rate, for the bound of its windows. */
  readonly taken: { readonly lane: string; readonly at: number; readonly units: number }[] = [];

  constructor(now: number) {
    this.now = now;
  }

  define(name: string, limit: ModelLimit): void {
    this.#limits.set(name, limit);
  }

  override(name: string, override: ModelOverride | null): void {
    if (override === null) this.#overrides.delete(name);
    else this.#overrides.set(name, override);
  }

  add(run: Pick<ModelRun, "id" | "workflow" | "priority" | "lanes" | "share" | "dueAt">): void {
    this.runs.set(run.id, { ...run, state: "asleep", hasBegun: false, classId: null, worker: null });
  }

  inState(state: ModelRun["state"]): readonly ModelRun[] {
    this.#wakeSleepers();
    return [...this.runs.values()].filter((run) => run.state === state);
  }

  /** The lanes in which the run needs a slot when it is admitted: not those in which it has one until it ends. */
  neededLanes({ id, lanes }: ModelRun): readonly string[] {
    const held = this.slots.filter(({ runId, worker }) => runId === id && worker === null);
    return lanes.filter((lane) => !held.some((slot) => slot.lane === lane));
  }

  /** A class that is not known gets its first turn after all others. */
  sort(id: string, classId: string): void {
    const run = this.runs.get(id) as ModelRun;
    Object.assign(run, { state: "waiting", classId });
    if (!this.#classes.some((known) => known.id === classId))
      this.#classes.push({ id: classId, lanes: this.neededLanes(run), othersSince: new Map() });
  }

  /** The runs of a class that may come next: more than one only if they became due in the same millisecond. */
  firstOf(classId: string): readonly ModelRun[] {
    const waiting = this.#waitingIn(classId);
    const first = [...waiting].sort(inOrder)[0];
    return first === undefined ? [] : waiting.filter((run) => inOrder(run, first) === 0);
  }

  /** The classes of which a run may be admitted, in the order of their turns. */
  get admissible(): readonly string[] {
    return this.#classes
      .filter(({ id, lanes }) => this.#waitingIn(id).length > 0 && lanes.every((lane) => this.hasRoom(lane)))
      .map(({ id }) => id);
  }

  /** Of the classes that need one of the same lanes and may be admitted, the one whose last turn was the longest ago. */
  nextBeside(classId: string): string | undefined {
    const lanes = this.#classes.find(({ id }) => id === classId)?.lanes ?? [];
    const rivals = this.#classes.filter((other) => other.id === classId || sharesLane(other.lanes, lanes));
    const admissible = new Set(this.admissible);
    return rivals.find(({ id }) => admissible.has(id))?.id;
  }

  get busyClasses(): readonly string[] {
    return this.#classes.filter(({ id }) => this.#waitingIn(id).length > 0).map(({ id }) => id);
  }

  get idleClasses(): readonly string[] {
    return this.#classes.filter(({ id }) => this.#waitingIn(id).length === 0).map(({ id }) => id);
  }

  waitingCount(classId: string): number {
    return this.#waitingIn(classId).length;
  }

  forget(classId: string): void {
    this.#classes = this.#classes.filter(({ id }) => id !== classId);
  }

  /**
   * The run gets its slots, and its class comes last. Returns how many runs of one class were admitted, at most, while another
   * waited for its next turn and nothing else kept it.
   */
  admit(id: string, worker: string): number {
    const run = this.runs.get(id) as ModelRun;
    const runClass = this.#classes.find((known) => known.id === run.classId) as ModelClass;
    const admissible = new Set(this.admissible);
    for (const other of this.#classes)
      if (other !== runClass && admissible.has(other.id) && sharesLane(other.lanes, runClass.lanes))
        other.othersSince.set(runClass.id, (other.othersSince.get(runClass.id) ?? 0) + 1);
    runClass.othersSince = new Map();
    this.#classes = [...this.#classes.filter((other) => other !== runClass), runClass];
    for (const lane of this.neededLanes(run)) {
      const holder = this.#limits.get(laneOf(lane).limit)?.isHeldOpen ? null : worker;
      const slot = { runId: id, lane, node: "", worker: holder, units: 1, priority: 0, askedAt: this.now };
      this.slots.push({ ...slot, isWaiting: false });
      this.#takeUnits(lane, 1);
    }
    Object.assign(run, { state: "executed", classId: null, worker });
    return Math.max(0, ...this.#classes.flatMap(({ othersSince }) => [...othersSince.values()]));
  }

  park(id: string, dueAt: number | null): void {
    this.slots = this.slots.filter(({ runId, worker }) => runId !== id || worker === null);
    Object.assign(this.runs.get(id) as ModelRun, {
      state: "asleep",
      dueAt,
      hasBegun: true,
      classId: null,
      worker: null,
    });
  }

  end(id: string): void {
    this.slots = this.slots.filter(({ runId }) => runId !== id);
    Object.assign(this.runs.get(id) as ModelRun, { state: "ended", classId: null, worker: null });
  }

  workerDies(name: string): void {
    this.slots = this.slots.filter(({ worker }) => worker !== name);
    for (const run of this.runs.values())
      if (run.worker === name) Object.assign(run, { state: "due", dueAt: this.now, worker: null });
  }

  ask(slot: Pick<ModelSlot, "runId" | "lane" | "node" | "worker" | "units" | "priority">): void {
    this.slots.push({ ...slot, askedAt: this.now, isWaiting: true });
  }

  release(node: string): void {
    this.slots = this.slots.filter((slot) => slot.node !== node);
  }

  /** The steps that wait in the lane get what is free, in their order. */
  grant(lane: string): void {
    for (;;) {
      const [first] = this.#waitingSteps(lane);
      if (first === undefined || !this.#hasSlot(lane) || !this.#isInPace(lane, this.now)) return;
      first.isWaiting = false;
      this.#takeUnits(lane, first.units);
    }
  }

  /** A step has used more units than it was admitted with, or fewer. */
  correct(lane: string, units: number): void {
    const { rate } = this.#valuesOf(lane, this.now);
    if (rate === null) return;
    const pacedUntil = (this.#pacedUntil.get(lane) ?? 0) + (units * rate.perMs) / rate.limit;
    this.#pacedUntil.set(lane, Math.max(this.now, pacedUntil));
  }

  holders(lane: string): number {
    return this.slots.filter((slot) => slot.lane === lane && !slot.isWaiting).length;
  }

  concurrencyOf(lane: string): number | null {
    return this.#valuesOf(lane, this.now).concurrency;
  }

  hasRoom(lane: string): boolean {
    return this.#waitingSteps(lane).length === 0 && this.#hasSlot(lane) && this.#isInPace(lane, this.now);
  }

  /** When the steps that wait in the lane must look again although nothing was given back; null if that helps nothing. */
  opensAt(lane: string): number | null {
    const { rate, endsAt } = this.#valuesOf(lane, this.now);
    const byRate = rate === null || this.#isInPace(lane, this.now) ? null : this.#paceOpensAt(lane, rate);
    const instants = [byRate, endsAt].filter((at) => at !== null);
    return instants.length === 0 ? null : Math.min(...instants);
  }

  hasWaitingSteps(lane: string): boolean {
    return this.#waitingSteps(lane).length > 0;
  }

  /** When the next waiting run may be admitted if nothing happens until then; null if time alone does not help. */
  nextAdmissionAt(): number | null {
    const { now } = this;
    const instants = [...new Set(this.#classes.flatMap(({ lanes }) => lanes.map((lane) => this.opensAt(lane))))];
    try {
      for (const at of instants.filter((at) => at !== null).sort((a, b) => a - b)) {
        this.now = at;
        if (this.admissible.length > 0) return at;
      }
      return null;
    } finally {
      this.now = now;
    }
  }

  #wakeSleepers(): void {
    for (const run of this.runs.values())
      if (run.state === "asleep" && run.dueAt !== null && run.dueAt <= this.now) run.state = "due";
  }

  #waitingIn(classId: string): readonly ModelRun[] {
    return [...this.runs.values()].filter((run) => run.state === "waiting" && run.classId === classId);
  }

  #waitingSteps(lane: string): readonly ModelSlot[] {
    return this.slots
      .filter((slot) => slot.lane === lane && slot.isWaiting)
      .sort((a, b) => b.priority - a.priority || a.askedAt - b.askedAt || (a.node < b.node ? -1 : 1));
  }

  #valuesOf(lane: string, at: number) {
    const { limit: name } = laneOf(lane);
    const { concurrency, rate } = this.#limits.get(name) as ModelLimit;
    const override = this.#overrides.get(name);
    if (override === undefined || (override.until !== null && override.until <= at))
      return { concurrency, rate, endsAt: null };
    return {
      concurrency: override.concurrency === undefined ? concurrency : override.concurrency,
      rate: override.rate === undefined ? rate : override.rate,
      endsAt: override.until,
    };
  }

  #hasSlot(lane: string): boolean {
    const { concurrency } = this.#valuesOf(lane, this.now);
    return concurrency === null || this.holders(lane) < concurrency;
  }

  #isInPace(lane: string, at: number): boolean {
    const { rate } = this.#valuesOf(lane, at);
    return rate === null || at >= this.#paceOpensAt(lane, rate);
  }

  #paceOpensAt(lane: string, { limit, perMs, burst }: Rate): number {
    return (this.#pacedUntil.get(lane) ?? 0) - (burst * perMs) / limit;
  }

  #takeUnits(lane: string, units: number): void {
    const { rate } = this.#valuesOf(lane, this.now);
    if (rate === null) return;
    const from = Math.max(this.#pacedUntil.get(lane) ?? 0, this.now);
    this.#pacedUntil.set(lane, from + (units * rate.perMs) / rate.limit);
    this.taken.push({ lane, at: this.now, units });
  }
}

const sharesLane = (some: readonly string[], others: readonly string[]) => some.some((lane) => others.includes(lane));

/** Priority, then runs that resume before runs that begin, then age. */
const inOrder = (a: ModelRun, b: ModelRun) =>
  b.priority - a.priority || Number(b.hasBegun) - Number(a.hasBegun) || (a.dueAt as number) - (b.dueAt as number);
