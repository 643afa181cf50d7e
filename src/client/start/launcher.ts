/** Makes runs durable: by a worker of this process that has room, or for any worker that claims them. */

import { FencedError } from "../../core/errors/errors.js";
import type { Logger } from "../../define/context.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { NewRun, RefusedStart, Store } from "../../store/contract/store.js";
import { publishStatus } from "../../telemetry/publish.js";
import { StartBatcher } from "./start-batcher.js";
import { WorkerAvailability } from "./worker-availability.js";

/** A way to start a run that begins in this very process, when a worker of it has room. */
export interface Adopter {
  canAdopt(workflow: string, version: string): boolean;
  adopt(run: NewRun): Promise<{ readonly at: number; readonly refusal: RefusedStart | null }>;
}

/** What became of a start: whether a key kept it out, and what its starter should know. */
export interface LaunchResult {
  readonly refusal: RefusedStart | null;
  readonly warning: string | null;
}

const warningTimeoutMs = 500;

export class Launcher {
  readonly adopters = new Set<Adopter>();
  readonly #runtime: Runtime;
  readonly #startBatcher: StartBatcher;
  readonly #workerAvailability: WorkerAvailability;

  constructor(store: Store, log: Logger, runtime: Runtime) {
    this.#runtime = runtime;
    this.#workerAvailability = new WorkerAvailability(store, log, runtime);
    this.#startBatcher = new StartBatcher(store, runtime, (run, at) => publishStatus(log, run, "pending", at));
  }

  /** Runs of one workflow. For each, in their order, what became of it. */
  async launch(runs: readonly NewRun[]): Promise<readonly LaunchResult[]> {
    const [first] = runs;
    if (first === undefined) return [];
    // The first ones are adopted for as long as there is room; the others wait behind them.
    const adopted: Promise<LaunchResult>[] = [];
    for (const run of runs) {
      const adopter = run.due.kind === "now" ? this.#adopterFor(run) : null;
      if (adopter === null) break;
      adopted.push(this.#adopt(adopter, run));
    }
    const remainingRuns = adopted.length === 0 ? runs : runs.slice(adopted.length);
    const queued = remainingRuns.length === 0 ? [] : this.#queue(remainingRuns);
    // Together: should one way fail, the other's failure must not be left without a listener.
    return (await Promise.all([Promise.all(adopted), queued])).flat();
  }

  #adopterFor({ route, workflow, version }: NewRun): Adopter | null {
    for (const adopter of this.adopters) if (adopter.canAdopt(route ?? workflow, version)) return adopter;
    return null;
  }

  async #adopt(adopter: Adopter, run: NewRun): Promise<LaunchResult> {
    try {
      return { refusal: (await adopter.adopt(run)).refusal, warning: null };
    } catch (error) {
      if (!(error instanceof FencedError)) throw error;
    }
    // The worker lost its lease: nothing was written, any worker may have the run.
    return (await this.#queue([run]))[0] as LaunchResult;
  }

  async #queue(runs: readonly NewRun[]): Promise<readonly LaunchResult[]> {
    const refusals = await this.#startBatcher.start(runs);
    const warning = await this.#warningFor(runs, refusals);
    return refusals.map((refusal) => ({ refusal, warning }));
  }

  /**
   * What the starter should know of runs that are in a transaction of the caller. The transaction may occupy the connection
   * that the answer needs, so the start does not wait for it for long.
   */
  async warningWithTimeout(
    runs: readonly NewRun[],
    refusals: readonly (RefusedStart | null)[],
  ): Promise<string | null> {
    if (runs[0] === undefined || this.#adopterFor(runs[0]) !== null) return null;
    let timer: Timer | undefined;
    const timeout = new Promise<null>((resolve) => {
      timer = this.#runtime.setTimeout(() => resolve(null), warningTimeoutMs);
    });
    try {
      return await Promise.race([this.#warningFor(runs, refusals), timeout]);
    } finally {
      this.#runtime.clearTimeout(timer);
    }
  }

  async #warningFor(runs: readonly NewRun[], refusals: readonly (RefusedStart | null)[]): Promise<string | null> {
    const [{ route, workflow, version, due }] = runs as [NewRun];
    const needsNoWarning = due.kind === "held" || refusals.every((refusal) => refusal !== null);
    return needsNoWarning ? null : this.#workerAvailability.warningFor(route ?? workflow, version);
  }
}
