/** Makes new runs durable. A worker of this process executes a run at once if it has room; other runs wait for any worker. */

import { FencedError } from "../../core/errors/errors.js";
import type { Logger } from "../../define/context.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { NewRun, RefusedStart, Store } from "../../store/contract/store.js";
import { publishStatus } from "../../telemetry/publish.js";
import { StartBatcher } from "./start-batcher.js";
import { WorkerAvailability } from "./worker-availability.js";

/** A worker of this process that can write a new run and own it from the start, so that no worker has to claim it. */
export interface Adopter {
  canAdopt(workflow: string, version: string): boolean;
  adopt(run: NewRun): Promise<{ readonly at: number; readonly refusal: RefusedStart | null }>;
}

/** The result of a start: whether it was rejected as a duplicate, and a warning for its caller. */
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

  /**
   * @param runs new runs, all of one workflow
   * @returns the results in the order of the runs
   */
  async launch(runs: readonly NewRun[]): Promise<readonly LaunchResult[]> {
    if (runs.length === 0) return [];
    // A worker adopts the first runs. From the first run that no worker can adopt, all are queued, so that no run overtakes
    // an earlier one.
    const adoptions: Promise<LaunchResult>[] = [];
    for (const run of runs) {
      // A run that must begin by an instant is left to the claim: whether it begins or expires is decided under its lock.
      const adopter = run.due.kind === "now" && run.startBy === undefined ? this.#adopterFor(run) : null;
      if (adopter === null) break;
      adoptions.push(this.#adopt(adopter, run));
    }
    const remainingRuns = adoptions.length === 0 ? runs : runs.slice(adoptions.length);
    const queuedResults = remainingRuns.length === 0 ? [] : this.#queue(remainingRuns);
    // All promises are awaited together: if one is rejected before the others, their rejections are not unhandled.
    return (await Promise.all([Promise.all(adoptions), queuedResults])).flat();
  }

  /**
   * Launches a run that an earlier commit of unknown outcome may have written, or may still write, so that it waits for another run. No
   * worker adopts it: a worker that adopts a run begins it.
   */
  async relaunch(run: NewRun): Promise<LaunchResult> {
    return (await this.#queue([run]))[0] as LaunchResult;
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
    // The worker lost its lease and nothing was written, so the run is queued for any worker.
    return (await this.#queue([run]))[0] as LaunchResult;
  }

  async #queue(runs: readonly NewRun[]): Promise<readonly LaunchResult[]> {
    const refusals = await this.#startBatcher.start(runs);
    const warning = await this.#warningFor(runs, refusals);
    return refusals.map((refusal) => ({ refusal, warning }));
  }

  /**
   * Returns the warning for runs that are started in the caller's transaction. That transaction may occupy the connection
   * that reading the workers needs, so the start waits for the warning only briefly.
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

  /** Returns the warning for runs that other code has written. */
  warningFor(runs: readonly NewRun[]): Promise<string | null> {
    return this.#warningFor(
      runs,
      runs.map(() => null),
    );
  }

  async #warningFor(runs: readonly NewRun[], refusals: readonly (RefusedStart | null)[]): Promise<string | null> {
    const [{ route, workflow, version, due }] = runs as [NewRun];
    const needsNoWarning = due.kind === "held" || refusals.every((refusal) => refusal !== null);
    return needsNoWarning ? null : this.#workerAvailability.warningFor(route ?? workflow, version);
  }
}
