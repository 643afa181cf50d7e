/**
 * Random histories of limits: whom the store admits, in which order, and what is in use are what a small simulation says, after each
 * operation. The histories are drawn from fixed seeds, and the name of a failed test contains its seed.
 */
import { laneIdOf } from "../../core/limits/lane.js";
import type { Rate } from "../../core/limits/rate.js";
import { uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";
import type { ModelLimit, ModelRun } from "./limit-model.js";
import { type GivingBack, LimitSimulation, type SimulatedWorker } from "./limit-simulation.js";
import { SeededRandom } from "./seeded-random.js";

const seeds = 10;
const operationsPerHistory = 70;
const minuteMs = 60_000;

/**
 * Where limits cross, a class may need a lane that another one, which cannot go on, is the next to get. It then waits for another
 * round, and meanwhile a class that shares its other lanes may get a second turn.
 */
const bounds = {
  "one lane for each run": { admissionsOfOneOther: 1, isInTurn: true },
  "limits that cross": { admissionsOfOneOther: 2, isInTurn: false },
} as const;
type Shape = keyof typeof bounds;

export function limitModelTests(fixture: Fixture): void {
  for (const shape of Object.keys(bounds) as Shape[]) {
    for (let seed = 1; seed <= fixture.rounds(seeds); seed += 1) {
      fixture.test(`random operations admit whom a simulation admits: ${shape} (seed ${seed})`, async () => {
        const simulation = await LimitSimulation.open(fixture, bounds[shape]);
        const history = new History(fixture, simulation, shape, seed);
        await history.begin();
        for (let count = 0; count < operationsPerHistory; count += 1) await history.performOne();
        await history.endAll();
      });
    }
  }
}

const rates = [
  { limit: 10, perMs: 10_000, burst: 2 },
  { limit: 4, perMs: minuteMs, burst: 0 },
  { limit: 100, perMs: 1_000, burst: 30 },
] as const satisfies readonly Rate[];

/** The limits of a history, and the values that each may get. */
const limitKinds = {
  slots: [1, 2, 4].map((concurrency): ModelLimit => ({ concurrency, rate: null, isHeldOpen: false })),
  keyed: [1, 2].map((concurrency): ModelLimit => ({ concurrency, rate: null, isHeldOpen: false })),
  paced: rates.map((rate): ModelLimit => ({ concurrency: null, rate, isHeldOpen: false })),
  both: rates.map((rate, n): ModelLimit => ({ concurrency: 2 + n, rate, isHeldOpen: false })),
  open: [1, 2].map((concurrency): ModelLimit => ({ concurrency, rate: null, isHeldOpen: true })),
} as const;
type LimitKind = keyof typeof limitKinds;
const kinds = Object.keys(limitKinds) as readonly LimitKind[];
const keysOf = (kind: LimitKind) => (kind === "keyed" || kind === "open" ? ["a", "b"] : [""]);
const ratedKinds = ["paced", "both"] as const;

class History {
  readonly #fixture: Fixture;
  readonly #simulation: LimitSimulation;
  readonly #shape: Shape;
  readonly #random: SeededRandom;
  readonly #names: Readonly<Record<LimitKind, string>>;
  /** Few, so that many runs wait in each. */
  readonly #commonLanes: readonly string[];
  /** The limits whose values or pace were changed. */
  readonly #changed = new Set<LimitKind>();
  #stepCount = 0;

  constructor(fixture: Fixture, simulation: LimitSimulation, shape: Shape, seed: number) {
    this.#fixture = fixture;
    this.#simulation = simulation;
    this.#shape = shape;
    this.#random = new SeededRandom(seed);
    this.#names = Object.fromEntries(kinds.map((kind) => [kind, uniqueName(kind)])) as Record<LimitKind, string>;
    const lanes = kinds.flatMap((kind) => keysOf(kind).map((key) => laneIdOf(this.#names[kind], key)));
    this.#commonLanes = Array.from({ length: 3 }, () => this.#pick(lanes));
  }

  async begin(): Promise<void> {
    for (const kind of kinds) await this.#simulation.define(this.#names[kind], limitKinds[kind][0] as ModelLimit);
    for (let n = 0; n < 3; n += 1) await this.#simulation.addWorker();
  }

  async performOne(): Promise<void> {
    const simulation = this.#simulation;
    simulation.pass(1 + this.#random.integerBelow(500));
    await this.#random.pickWeighted<() => Promise<void>>([
      [5, () => this.#startSome()],
      [8, () => simulation.claim(this.#pick(simulation.workers), 1 + this.#random.integerBelow(8))],
      [4, () => this.#withExecuted((run, worker) => simulation.finish(run, worker, this.#givingBack()))],
      [3, () => this.#withExecuted((run, worker) => simulation.park(run, worker, this.#wakeAt(), this.#givingBack()))],
      [2, () => this.#pauseOrCancel()],
      [2, () => simulation.resumeAll()],
      [1, () => simulation.kill(this.#pick(simulation.workers)).then(() => simulation.addWorker())],
      [1, () => this.#changeLimit()],
      [1, () => this.#override()],
      [4, () => this.#withExecuted((run, worker) => this.#askForSteps(run, worker))],
      [3, () => this.#endSteps()],
      [1, () => this.#correctUnits()],
      [2, () => this.#waitForTheNextInstant()],
    ])();
    await simulation.compare();
  }

  /** Lets everything end: no slot is left, and no run was lost. */
  async endAll(): Promise<void> {
    const simulation = this.#simulation;
    const { model } = simulation;
    for (const kind of kinds) {
      await simulation.define(this.#names[kind], limitKinds[kind][0] as ModelLimit);
      await simulation.override(this.#names[kind], null);
    }
    const openCount = () => [...model.runs.values()].filter(({ state }) => state !== "ended").length;
    for (let round = 0; openCount() > 0; round += 1) {
      if (round > 2_000) throw new Error(`${openCount()} runs do not end.`);
      simulation.pass(round % 2 === 0 ? 10 : minuteMs);
      await simulation.resumeAll();
      for (const worker of simulation.workers) {
        // Turns of one millisecond have no order between instances.
        simulation.pass(1);
        await simulation.claim(worker, 20);
        for (const run of model.inState("executed").filter(({ worker: owner }) => owner === worker.name))
          await simulation.finish(run, worker, this.#givingBack());
      }
    }
    await simulation.compare();
    await simulation.expectEmptyLanes();
    for (const kind of ratedKinds) if (!this.#changed.has(kind)) this.#checkWindows(kind);
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#random.integerBelow(items.length)] as T;
  }

  #givingBack(): GivingBack {
    return this.#pick(["name in the next admission", "name in the next admission", "wake", "lose"] as const);
  }

  #wakeAt(): number | null {
    return this.#random.chance(0.7) ? this.#simulation.now + this.#random.integerBelow(5_000) : null;
  }

  #withExecuted(act: (run: ModelRun, worker: SimulatedWorker) => Promise<void>): Promise<void> {
    const run = this.#random.pick(this.#simulation.model.inState("executed"));
    const worker = this.#simulation.workers.find(({ name }) => name === run?.worker);
    return run === undefined || worker === undefined ? Promise.resolve() : act(run, worker);
  }

  async #startSome(): Promise<void> {
    const simulation = this.#simulation;
    const runs = Array.from({ length: 1 + this.#random.integerBelow(6) }, () => {
      simulation.pass(1);
      const dueAt = simulation.now + (this.#random.chance(0.8) ? 0 : this.#random.integerBelow(20_000));
      const run = simulation.newRun(this.#random.chance(0.2) ? 1 : 0, this.#random.chance(0.2) ? 1 : 0, dueAt);
      const { id, workflow, priority } = run;
      const share = this.#random.chance(0.2) ? "another" : "";
      simulation.model.add({ id, workflow, priority, dueAt, lanes: this.#randomLanes(), share });
      return run;
    });
    await simulation.start(runs);
  }

  #randomLanes(): readonly string[] {
    if (this.#shape === "one lane for each run") return [this.#pick(this.#commonLanes)];
    const chosen = kinds.filter(() => this.#random.chance(0.4));
    return chosen.map((kind) => laneIdOf(this.#names[kind], this.#pick(keysOf(kind)))).sort();
  }

  async #pauseOrCancel(): Promise<void> {
    const { model } = this.#simulation;
    const run = this.#random.pick([...model.inState("waiting"), ...model.inState("asleep")]);
    if (run === undefined) return;
    await (this.#random.chance(0.5) ? this.#simulation.cancel(run) : this.#simulation.pause(run));
  }

  /** A release with other values: a lowered limit takes no slot away. */
  async #changeLimit(): Promise<void> {
    const kind = this.#pick(kinds);
    this.#changed.add(kind);
    await this.#simulation.define(this.#names[kind], this.#pick(limitKinds[kind]));
  }

  async #override(): Promise<void> {
    const kind = this.#pick(kinds);
    this.#changed.add(kind);
    const until = this.#random.chance(0.5) ? this.#simulation.now + 1 + this.#random.integerBelow(20_000) : null;
    const { concurrency, rate } = this.#pick(limitKinds[kind]);
    const override = this.#random.chance(0.3) ? null : { concurrency, rate, until };
    await this.#simulation.override(this.#names[kind], override);
  }

  async #askForSteps(run: ModelRun, worker: SimulatedWorker): Promise<void> {
    const asked = Array.from({ length: 1 + this.#random.integerBelow(3) }, () => {
      this.#stepCount += 1;
      const node = `${String(this.#stepCount).padStart(4, "0")} step`;
      const lane = laneIdOf(this.#names[this.#pick(ratedKinds)], "");
      return { runId: run.id, node, lane, priority: run.priority, units: 1 + this.#random.integerBelow(3) };
    });
    await this.#simulation.changeSteps(worker, asked, []);
  }

  /** Some steps of a worker end, or none: then it only looks whether others have got their slots. */
  async #endSteps(): Promise<void> {
    const worker = this.#pick(this.#simulation.workers);
    const steps = this.#simulation.model.slots.filter((slot) => slot.worker === worker.name && slot.node !== "");
    const released = this.#random.sample(steps, 3).map(({ runId, node, lane }) => ({ runId, node, lane }));
    await this.#simulation.changeSteps(worker, [], released);
  }

  async #correctUnits(): Promise<void> {
    const kind = this.#pick(ratedKinds);
    this.#changed.add(kind);
    await this.#simulation.correctUnits(laneIdOf(this.#names[kind], ""), this.#pick([-3, -1, 2, 5]));
  }

  /** Workers know when to look. A millisecond before the instant nothing more begins, and at the instant a run does. */
  async #waitForTheNextInstant(): Promise<void> {
    const { expect } = this.#fixture;
    const simulation = this.#simulation;
    const { model } = simulation;
    const worker = this.#pick(simulation.workers);
    await simulation.claim(worker, 1_000);
    const at = model.nextAdmissionAt();
    if (at === null) return;
    const nextDueAt = await simulation.nextDueAt(worker);
    expect(nextDueAt, "the store knows of an instant").not.toBe(null);
    expect(nextDueAt as number, "it is early enough").toBeLessThanOrEqual(at);
    const executedBefore = model.inState("executed").length;
    if (at - 1 > simulation.now) {
      simulation.pass(at - 1 - simulation.now);
      await simulation.claim(worker, 1_000);
    }
    if (model.nextAdmissionAt() !== at) return;
    simulation.pass(at - simulation.now);
    await simulation.claim(worker, 1_000);
    expect(model.inState("executed").length).toBeGreaterThan(executedBefore);
  }

  /** In any window of the rate, at most its limit, its burst and the largest units were taken. */
  #checkWindows(kind: (typeof ratedKinds)[number]): void {
    const { limit, perMs, burst } = rates[0];
    const lane = laneIdOf(this.#names[kind], "");
    const taken = this.#simulation.model.taken.filter((one) => one.lane === lane);
    const largest = Math.max(0, ...taken.map(({ units }) => units));
    for (const { at: from } of taken) {
      const inWindow = taken.filter(({ at }) => at >= from && at < from + perMs);
      const units = inWindow.reduce((sum, one) => sum + one.units, 0);
      this.#fixture.expect(units).toBeLessThanOrEqual(limit + burst + largest);
    }
  }
}
