/**
 * Performs operations on a store and on the simulation of limits, and expects of each what the simulation says. Two instances of
 * the store take turns, on one virtual clock, so no answer depends on what an instance remembers.
 */
import { runClassOf } from "../../core/limits/lane.js";
import type { FreedSlots, StepSlot, StepSlotRequest } from "../../store/contract/limits.js";
import type { Fence, NewRun, NextTaskState, Store } from "../../store/contract/store.js";
import { event, finish, newRun, park, transition, uniqueName, workerInfo } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { LimitModel, type ModelLimit, type ModelOverride, type ModelRun } from "./limit-model.js";

export interface SimulatedWorker {
  readonly name: string;
  readonly fence: Fence;
  readonly store: Store;
  /** What it has given back, and will name in its next admission. */
  freed: FreedSlots[];
}

/** How often a class may have to watch another one that needs the same lanes. */
interface FairnessBound {
  readonly admissionsOfOneOther: number;
  /** Whether, of the classes that need one lane, that whose turn was the longest ago is always the next. */
  readonly isInTurn: boolean;
}

/** What a worker does with slots that it has given back: `lose` stands for a connection that breaks before it has named them. */
export type GivingBack = "name in the next admission" | "wake" | "lose";

export class LimitSimulation {
  readonly model: LimitModel;
  readonly workers: SimulatedWorker[] = [];
  readonly #fixture: Fixture;
  readonly #bound: FairnessBound;
  readonly #stores: readonly Store[];
  readonly #time: { now: number };
  readonly #workflows = [uniqueName("simulated"), uniqueName("simulated")];
  readonly #limitNames = new Set<string>();
  readonly #logLengths = new Map<string, number>();
  #asked = 0;
  /** Something was freed that no worker names. */
  #mustSweep = false;

  private constructor(fixture: Fixture, bound: FairnessBound, stores: readonly Store[], time: { now: number }) {
    this.#fixture = fixture;
    this.#bound = bound;
    this.#stores = stores;
    this.#time = time;
    this.model = new LimitModel(time.now);
  }

  static async open(fixture: Fixture, bound: FairnessBound): Promise<LimitSimulation> {
    const time = { now: 1_000_000 };
    const open = () => fixture.open({ clock: () => time.now });
    const first = await open();
    const stores = fixture.harness.sharesAcrossInstances ? [first, await open()] : [first];
    return new LimitSimulation(fixture, bound, stores, time);
  }

  get now(): number {
    return this.#time.now;
  }

  /** Every operation has a time of its own, so that ages and turns are certain. */
  pass(ms: number): void {
    this.#time.now += ms;
    this.model.now = this.#time.now;
  }

  async addWorker(): Promise<void> {
    const store = this.#nextStore();
    const fence = await store.registerWorker(workerInfo({ leaseMs: 3_600_000 }));
    this.workers.push({ name: fence.workerId, fence, store, freed: [] });
  }

  async define(name: string, limit: ModelLimit): Promise<void> {
    this.#limitNames.add(name);
    await this.#limits.register([{ name, ...limit }]);
    this.model.define(name, limit);
    this.#mustSweep = true;
  }

  async override(name: string, override: ModelOverride | null): Promise<void> {
    const stored = override === null ? null : { ...override, reason: null, by: null, at: this.now };
    this.#expect(await this.#limits.override(name, stored)).toBe(true);
    this.model.override(name, override);
    this.#mustSweep = true;
  }

  /** @param routeNumber of which of the workflows that all workers execute */
  newRun(routeNumber: number, priority: number, dueAt: number): NewRun {
    const workflow = this.#workflows[routeNumber % this.#workflows.length] as string;
    return newRun({ workflow, priority, due: { kind: "at", ms: dueAt } });
  }

  start(runs: readonly NewRun[]): Promise<void> {
    return this.#fixture.startAll(runs, null, this.#nextStore());
  }

  /** What a worker does: it sorts what is due, names what it has freed and what has opened, and admits until nothing is left. */
  async claim(worker: SimulatedWorker, places: number): Promise<void> {
    const { limits } = worker.store;
    if (this.#mustSweep) await limits.sweep();
    this.#mustSweep = false;
    const openedLanes = await this.#sortDue(worker);
    let freed = [...worker.freed, ...openedLanes.map((lane): FreedSlots => ({ lane, count: places }))];
    worker.freed = [];
    for (let free = places; free > 0; ) {
      const result = await limits.admit({ fence: worker.fence, routes: this.#routes, limit: free, freed });
      if (result.kind !== "admitted") throw new Error("The admission was fenced.");
      for (const { run, lanes } of result.tasks) this.#checkAdmission(run.id, lanes, worker);
      free -= result.tasks.length;
      await this.#learnForgottenClasses();
      const wokenCount = await limits.wake(result.lanesToWake);
      freed = [];
      if (result.tasks.length > 0 || wokenCount > 0) continue;
      this.#expect(this.model.admissible, "every run that may be admitted was admitted").toEqual([]);
      break;
    }
  }

  /** When the store tells a worker to look again. */
  async nextDueAt(worker: SimulatedWorker): Promise<number | null> {
    return (await worker.store.limits.unsorted({ routes: this.#routes, limit: 1_000 })).nextDueAt;
  }

  async finish(run: ModelRun, worker: SimulatedWorker, way: GivingBack): Promise<void> {
    const next = finish("completed", { releasesSlots: true, startedAt: "now" });
    await this.#fixture.commitTransition(worker.fence, this.#transitionOf(run, { next }), worker.store);
    const lanes = this.model.slots.filter(({ runId }) => runId === run.id).map(({ lane }) => lane);
    this.model.end(run.id);
    await this.#giveBack(worker, lanes, way);
  }

  async park(run: ModelRun, worker: SimulatedWorker, wakeAt: number | null, way: GivingBack): Promise<void> {
    const next = park("waiting", { releasesSlots: true, startedAt: "now", wakeAt });
    await this.#fixture.commitTransition(worker.fence, this.#transitionOf(run, { next }), worker.store);
    const slots = this.model.slots.filter((slot) => slot.runId === run.id && slot.worker !== null);
    this.model.park(run.id, wakeAt);
    await this.#giveBack(
      worker,
      slots.map(({ lane }) => lane),
      way,
    );
  }

  /** By a client, while no worker owns the run. */
  async cancel(run: ModelRun): Promise<void> {
    await this.#command(run, finish("canceled", { releasesSlots: true }));
    this.model.end(run.id);
    this.#mustSweep = true;
  }

  /** By a client, while no worker owns the run. */
  async pause(run: ModelRun): Promise<void> {
    await this.#command(run, park("paused"));
    const { hasBegun } = run;
    this.model.park(run.id, null);
    run.hasBegun = hasBegun;
  }

  /** By a client: all that would sleep for ever. */
  async resumeAll(): Promise<void> {
    for (const run of this.model.inState("asleep").filter(({ dueAt }) => dueAt === null)) {
      this.pass(1);
      await this.#command(run, park("waiting", { wakeAt: this.now }));
      run.dueAt = this.now;
    }
  }

  async kill(worker: SimulatedWorker): Promise<void> {
    this.workers.splice(this.workers.indexOf(worker), 1);
    await this.#nextStore().deregisterWorker(worker.fence);
    this.model.workerDies(worker.name);
    this.#mustSweep = true;
  }

  /** Steps wait for slots, and give slots back or wait no longer. */
  async changeSteps(
    { name, fence, store }: SimulatedWorker,
    asked: readonly StepSlotRequest[],
    released: readonly StepSlot[],
  ): Promise<void> {
    const { model } = this;
    for (const step of asked) model.ask({ ...step, worker: name });
    for (const { node } of released) model.release(node);
    const waiting = model.slots.filter(({ worker, isWaiting }) => worker === name && isWaiting);
    const lanes = [...new Set([...asked, ...released, ...waiting].map(({ lane }) => lane))].sort();
    if (lanes.length === 0) return;
    const result = await store.limits.changeStepSlots({ fence, asked, released, lanes });
    if (result.kind !== "granted") throw new Error("The change was fenced.");
    for (const lane of lanes) model.grant(lane);
    const held = model.slots.filter(
      (slot) => slot.worker === name && slot.node !== "" && !slot.isWaiting && lanes.includes(slot.lane),
    );
    const nodesOf = (slots: readonly { readonly node: string }[]) => slots.map(({ node }) => node).sort();
    this.#expect(nodesOf(result.held), "the steps that have a slot").toEqual(nodesOf(held));
    const instants = lanes.map((lane) => (model.hasWaitingSteps(lane) ? model.opensAt(lane) : null));
    const known = instants.filter((at) => at !== null);
    this.#expect(result.nextAt, "when the next step may begin").toBe(known.length === 0 ? null : Math.min(...known));
    await store.limits.wake(result.lanesToWake);
  }

  async correctUnits(lane: string, units: number): Promise<void> {
    await this.#limits.addUnits(lane, units);
    this.model.correct(lane, units);
    this.#mustSweep = true;
  }

  /** The store has the slots and the waiting runs of the simulation. */
  async compare(): Promise<void> {
    const { slots, busyClasses } = this.model;
    type Slot = Pick<(typeof slots)[number], "lane" | "runId" | "node" | "isWaiting">;
    const textOf = ({ lane, runId, node, isWaiting }: Slot) => `${lane} ${runId} ${node} ${isWaiting}`;
    const rows = await this.#limits.slots({ afterRunId: null }, 100_000);
    const isOfLimits = ({ lane }: Slot) => this.#limitNames.has(lane.split("\t")[0] as string);
    this.#expect(
      rows
        .filter(isOfLimits)
        .map((row) => `${textOf(row)} ${row.owner}`)
        .sort(),
      "the slots",
    ).toEqual(slots.map((slot) => `${textOf(slot)} ${slot.worker}`).sort());
    this.#expect([...(await this.#limits.waiting(busyClasses, 1_000))].sort(), "the waiting runs").toEqual(
      busyClasses.map((id) => [id, this.model.waitingCount(id)]).sort(),
    );
  }

  /** Nothing is held, and nothing counts as waiting. */
  async expectEmptyLanes(): Promise<void> {
    this.#expect(this.model.slots).toEqual([]);
    for (const name of this.#limitNames) {
      const lanes = await this.#limits.lanes(name, { after: null, limit: 100 });
      this.#expect(lanes.filter(({ inUse, waitingSteps }) => inUse + waitingSteps > 0)).toEqual([]);
    }
  }

  get #expect() {
    return this.#fixture.expect;
  }

  get #limits() {
    return this.#nextStore().limits;
  }

  get #routes() {
    return this.#workflows.map((workflow) => ({ workflow, version: "" }));
  }

  #nextStore(): Store {
    this.#asked += 1;
    return this.#stores[this.#asked % this.#stores.length] as Store;
  }

  async #sortDue({ store }: SimulatedWorker): Promise<readonly string[]> {
    const { tasks, openedLanes } = await store.limits.unsorted({ routes: this.#routes, limit: 1_000 });
    const due = this.model.inState("due");
    this.#expect(tasks.map(({ run }) => run.id).sort(), "what is due").toEqual(due.map(({ id }) => id).sort());
    const sorted = tasks.map(({ run: { id, startedAt } }) => {
      const run = this.model.runs.get(id) as ModelRun;
      this.#expect(startedAt !== null).toBe(run.hasBegun);
      const runClass = runClassOf(run.workflow, "", this.model.neededLanes(run), run.share);
      return { runId: id, runClass, hasBegun: run.hasBegun };
    });
    if (sorted.length > 0) await store.limits.sort(sorted);
    for (const { runId, runClass } of sorted) this.model.sort(runId, runClass.id);
    return openedLanes;
  }

  /** The run is the first of its class, each of its lanes had room, and no class had to watch others for too long. */
  #checkAdmission(id: string, lanes: readonly string[], worker: SimulatedWorker): void {
    const { model } = this;
    const run = model.runs.get(id) as ModelRun;
    this.#expect(run.state, "it has waited").toBe("waiting");
    const classId = run.classId as string;
    this.#expect(model.admissible, "its lanes have room").toContain(classId);
    if (this.#bound.isInTurn) this.#expect(classId, "it is its turn").toBe(model.nextBeside(classId));
    const first = model.firstOf(classId).map((candidate) => candidate.id);
    this.#expect(first, "it is the first of its class").toContain(id);
    this.#expect([...lanes].sort(), "all of its lanes").toEqual([...run.lanes].sort());
    this.#expect(model.admit(id, worker.name), "no class waits longer for another").toBeLessThanOrEqual(
      this.#bound.admissionsOfOneOther,
    );
  }

  /** A class with waiting runs exists. Of the others, the store may forget any. */
  async #learnForgottenClasses(): Promise<void> {
    const { busyClasses, idleClasses } = this.model;
    const ids = [...busyClasses, ...idleClasses];
    const known = new Set((await this.#limits.classes({ ids }, ids.length + 1)).map(({ id }) => id));
    this.#expect(busyClasses.filter((id) => !known.has(id))).toEqual([]);
    for (const id of idleClasses) if (!known.has(id)) this.model.forget(id);
  }

  async #giveBack(worker: SimulatedWorker, lanes: readonly string[], way: GivingBack): Promise<void> {
    const freed = lanes.map((lane) => ({ lane, count: 1 }));
    if (way === "wake") await worker.store.limits.wake(freed);
    if (way === "name in the next admission") worker.freed.push(...freed);
    // Whichever worker claims next must find what this one names later or never.
    if (way !== "wake") this.#mustSweep = true;
  }

  async #command(run: ModelRun, next: NextTaskState): Promise<void> {
    const change = this.#transitionOf(run, { events: [event("commanded")], next });
    await this.#fixture.commitTransition(null, change, this.#nextStore());
    this.#logLengths.set(run.id, (this.#logLengths.get(run.id) ?? 0) + 1);
  }

  #transitionOf(run: ModelRun, rest: Parameters<typeof transition>[1]) {
    return transition(run.id, { afterSeq: this.#logLengths.get(run.id) ?? 0, ...rest });
  }
}
