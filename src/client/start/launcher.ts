/** Makes runs durable: by a worker of this process that has room, or for any worker that claims them. */

import { FencedError } from "../../core/errors/errors.js";
import type { Logger } from "../../define/context.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { NewRun, Refusal, Store } from "../../store/contract/store.js";
import { tellOfRun } from "../../telemetry/tell.js";
import { StartBatcher } from "./start-batcher.js";
import { WorkerAvailability } from "./worker-availability.js";

/** A way to start a run that begins in this very process, when a worker of it has room. */
export interface Adopter {
  canAdopt(workflow: string, version: string): boolean;
  adopt(run: NewRun): Promise<{ readonly at: number; readonly refusal: Refusal | null }>;
}

/** What became of a start: whether a key kept it out, and what its starter should know. */
export interface Launched {
  readonly refusal: Refusal | null;
  readonly warning: string | null;
}

const patienceMs = 500;

export class Launcher {
  readonly adopters = new Set<Adopter>();
  readonly #runtime: Runtime;
  readonly #starter: StartBatcher;
  readonly #served: WorkerAvailability;

  constructor(store: Store, log: Logger, runtime: Runtime) {
    this.#runtime = runtime;
    this.#served = new WorkerAvailability(store, log, runtime);
    this.#starter = new StartBatcher(store, runtime, (run, at) => tellOfRun(log, run, "pending", at));
  }

  /** Runs of one workflow. For each, in their order, what became of it. */
  async launch(runs: readonly NewRun[]): Promise<readonly Launched[]> {
    const [first] = runs;
    if (first === undefined) return [];
    // The first ones are adopted for as long as there is room; the others wait behind them.
    const adopted: Promise<Launched>[] = [];
    for (const run of runs) {
      const adopter = run.due.kind === "now" ? this.#adopterFor(run) : null;
      if (adopter === null) break;
      adopted.push(this.#adopt(adopter, run));
    }
    const rest = adopted.length === 0 ? runs : runs.slice(adopted.length);
    const queued = rest.length === 0 ? [] : this.#queue(rest);
    // Together: should one way fail, the other's failure must not be left without a listener.
    return (await Promise.all([Promise.all(adopted), queued])).flat();
  }

  #adopterFor({ route, workflow, version }: NewRun): Adopter | null {
    for (const adopter of this.adopters) if (adopter.canAdopt(route ?? workflow, version)) return adopter;
    return null;
  }

  async #adopt(adopter: Adopter, run: NewRun): Promise<Launched> {
    try {
      return { refusal: (await adopter.adopt(run)).refusal, warning: null };
    } catch (error) {
      if (!(error instanceof FencedError)) throw error;
    }
    // The worker lost its lease: nothing was written, any worker may have the run.
    return (await this.#queue([run]))[0] as Launched;
  }

  async #queue(runs: readonly NewRun[]): Promise<readonly Launched[]> {
    const refusals = await this.#starter.start(runs);
    const warning = await this.#warningFor(runs, refusals);
    return refusals.map((refusal) => ({ refusal, warning }));
  }

  /**
   * What the starter should know of runs that are in a transaction of the caller. The transaction may occupy the connection
   * that the answer needs, so the start does not wait for it for long.
   */
  async warningWithin(runs: readonly NewRun[], refusals: readonly (Refusal | null)[]): Promise<string | null> {
    if (runs[0] === undefined || this.#adopterFor(runs[0]) !== null) return null;
    let timer: Timer | undefined;
    const tooLate = new Promise<null>((resolve) => {
      timer = this.#runtime.setTimeout(() => resolve(null), patienceMs);
    });
    try {
      return await Promise.race([this.#warningFor(runs, refusals), tooLate]);
    } finally {
      this.#runtime.clearTimeout(timer);
    }
  }

  async #warningFor(runs: readonly NewRun[], refusals: readonly (Refusal | null)[]): Promise<string | null> {
    const [{ route, workflow, version, due }] = runs as [NewRun];
    const isNobodysBusiness = due.kind === "held" || refusals.every((refusal) => refusal !== null);
    return isNobodysBusiness ? null : this.#served.warningFor(route ?? workflow, version);
  }
}
