/** One simulated process as an application: a Pawl on a store connection of its own, and perhaps a worker. */
import { Pawl } from "../../src/connect.js";
import type { Logger, Worker } from "../../src/index.js";
import type { Store } from "../../src/store/contract/store.js";
import type { Faults } from "./kernel/faults.js";
import { FaultyStore } from "./kernel/faulty-store.js";
import type { Journal } from "./kernel/journal.js";
import { Random } from "./kernel/random.js";
import type { Scheduler } from "./kernel/scheduler.js";
import { epochMs, SimProcess } from "./kernel/sim-process.js";
import type { UserTable } from "./kernel/user-table.js";
import type { Ledger } from "./ledger.js";
import type { NodePlan } from "./plan.js";
import { Bench } from "./workload/bench.js";
import { type Definitions, definitionsFor } from "./workload/definitions.js";

export interface Surroundings {
  readonly seed: number;
  readonly inner: Store;
  readonly scheduler: Scheduler;
  readonly faults: Faults;
  readonly journal: Journal;
  readonly ledger: Ledger;
  readonly userTable: UserTable;
  readonly hasCrossProcessHints: boolean;
  readonly logger: Logger;
  isPoisonOn(): boolean;
  onPoison(node: SimNode): void;
}

const leaseMs = 3_000;
export const maxDeliveries = 5;

export class SimNode {
  readonly process: SimProcess;
  readonly #scheduler: Scheduler;
  readonly faultyStore: FaultyStore;
  readonly pawl: Pawl;
  readonly definitions: Definitions;
  readonly worker: Worker | null;
  readonly release: number;

  constructor(plan: NodePlan, release: 1 | 2, incarnation: number, around: Surroundings) {
    const { seed, scheduler, journal, ledger } = around;
    this.#scheduler = scheduler;
    const name = `${plan.name}.${incarnation}`;
    const random = (stream: string) => new Random(seed, `${name} ${stream}`);
    this.release = release;
    this.process = new SimProcess(name, scheduler, random("runtime"));
    this.faultyStore = new FaultyStore({ ...around, process: this.process, random: random("network") });
    this.pawl = new Pawl(this.faultyStore.store, around.logger, { runtime: this.process.runtime });
    const bench = new Bench({
      ...{ process: this.process, scheduler, random: random("bodies"), journal, ledger, release },
      fence: () => this.faultyStore.fence,
      now: () => epochMs + Math.floor(scheduler.now),
      isPoisonOn: around.isPoisonOn,
      crash: () => around.onPoison(this),
    });
    this.definitions = definitionsFor(bench);
    this.worker = plan.hasWorker ? this.#createWorker(plan) : null;
  }

  #createWorker({ name, concurrency }: NodePlan): Worker {
    const { workflows, jobs } = this.definitions;
    return this.pawl.worker({
      ...{ workflows, jobs, concurrency, name, maxDeliveries, lease: leaseMs },
      ...{ poll: 1_000, grace: 1_500, replayGrace: 1_000, housekeeping: Number.POSITIVE_INFINITY },
    });
  }

  /** Starts the worker, again and again until the database answers, as a process manager does. */
  async start(): Promise<void> {
    for (;;) {
      try {
        await this.worker?.start();
        return;
      } catch {
        // It was stopped meanwhile, and another process takes its place.
        if (this.worker?.phase === "stopping" || this.worker?.phase === "stopped") return;
        await this.sleep(300);
      }
    }
  }

  /** Of the application: no timer of the library. */
  sleep(ms: number): Promise<void> {
    return this.#scheduler.sleep(this.process, ms, "timer");
  }
}
