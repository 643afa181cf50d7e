/** Makes runs durable: by a worker of this process that has room, or by whoever claims them. */
import { FencedError } from "../core/errors.js";
import { graphRoute } from "../core/route.js";
import type { Logger } from "../define/context.js";
import { heardOf } from "../store/serving.js";
import type { NewRun, Refusal, Store } from "../store/store.js";
import { tellOfRun } from "../telemetry/tell.js";
import { Starter } from "./starter.js";

/** A way to start a run that begins in this very process, when a worker of it has room. */
export interface Adopter {
  canAdopt(workflow: string, version: string): boolean;
  adopt(run: NewRun): Promise<{ readonly at: number; readonly refusal: Refusal | null }>;
}

const servedForMs = 10_000;

export class Launcher {
  readonly adopters = new Set<Adopter>();
  readonly #store: Store;
  readonly #log: Logger;
  readonly #starter: Starter;
  /** Routes that have a live worker, as of a moment ago (or were warned about). */
  #served = new Set<string>();
  #servedUntil = 0;
  #asked: Promise<void> | null = null;

  constructor(store: Store, log: Logger) {
    this.#store = store;
    this.#log = log;
    this.#starter = new Starter(store, (run, at) => tellOfRun(log, run, "pending", at));
  }

  /** Runs of one workflow. For each, in their order, whether a key kept it out. */
  async launch(runs: readonly NewRun[]): Promise<readonly (Refusal | null)[]> {
    const [first] = runs;
    if (first === undefined) return [];
    // The first ones are adopted for as long as there is room; the others wait behind them.
    const adopted: Promise<Refusal | null>[] = [];
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

  async #adopt(adopter: Adopter, run: NewRun): Promise<Refusal | null> {
    try {
      return (await adopter.adopt(run)).refusal;
    } catch (error) {
      if (!(error instanceof FencedError)) throw error;
    }
    // The worker lost its lease: nothing was written, anybody may have the run.
    return (await this.#queue([run]))[0] ?? null;
  }

  async #queue(runs: readonly NewRun[]): Promise<readonly (Refusal | null)[]> {
    const refusals = await this.#starter.start(runs);
    const [{ route, workflow, version, due }] = runs as [NewRun];
    if (due.kind !== "held") await this.#warnIfUnserved(route ?? workflow, version);
    return refusals;
  }

  /** A start without a worker is accepted and waits; whoever started it should know. Asked at most every few seconds. */
  async #warnIfUnserved(workflow: string, version: string): Promise<void> {
    const route = `${workflow}@${version}`;
    if (this.#served.has(route) && Date.now() < this.#servedUntil) return;
    // Its worker may be new: asked again, but once for all who start it now.
    this.#asked ??= this.#readServed().finally(() => {
      this.#asked = null;
    });
    await this.#asked;
    if (this.#served.has(route)) return;
    this.#log.warn(
      workflow === graphRoute
        ? "A graph was built, but no live worker has `jobs`; the run waits for one."
        : `Workflow "${workflow}" was started, but no live worker has it; the run waits for one.`,
    );
    this.#served.add(route);
  }

  /** When the database does not say, that is no reason to let a start fail that has been made. */
  async #readServed(): Promise<void> {
    try {
      const live = await heardOf(this.#store);
      this.#served = new Set(live.flatMap(({ routes }) => routes.map((route) => `${route.workflow}@${route.version}`)));
      this.#servedUntil = Date.now() + servedForMs;
    } catch {
      this.#servedUntil = 0;
    }
  }
}
