/** What the user code of a simulated process works with: bodies that take simulated time and are written into the ledger. */
import { PermanentError, TransientError } from "../../../src/index.js";
import type { Fence } from "../../../src/store/contract/store.js";
import type { Journal } from "../kernel/journal.js";
import type { Random } from "../kernel/random.js";
import type { Scheduler } from "../kernel/scheduler.js";
import type { SimProcess } from "../kernel/sim-process.js";
import type { BodyEntry, Ledger } from "../ledger.js";

export interface BodyPlan {
  readonly ms: number;
  /** How many executions throw before one returns. */
  readonly fails?: number;
  /** `permanent` errors end the run, but only while faults happen: a retry of the run must be able to complete. */
  readonly error?: "error" | "transient" | "permanent" | "no error";
  /** How many executions never end. */
  readonly hangs?: number;
  /** How many executions kill their process. */
  readonly kills?: number;
}

export interface BenchOptions {
  readonly process: SimProcess;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly journal: Journal;
  readonly ledger: Ledger;
  /** The release of the code that this process has. */
  readonly release: number;
  fence(): Fence | null;
  now(): number;
  /** Whether poison still kills; not at the end, when everything must finish. */
  isPoisonOn(): boolean;
  crash(): void;
}

export class Bench {
  readonly options: BenchOptions;

  constructor(options: BenchOptions) {
    this.options = options;
  }

  get release(): number {
    return this.options.release;
  }

  sleep(ms: number): Promise<void> {
    return this.options.scheduler.sleep(this.options.process, ms, "body");
  }

  /** Executes a body as planned, and returns a value that no other execution returns. */
  async body(
    run: string,
    step: string,
    plan: BodyPlan,
    attempt: number | null = null,
    /** Where its step must hold a slot. */
    lane: string | null = null,
  ): Promise<string> {
    const { process, ledger, journal, random, scheduler } = this.options;
    const nth = ledger.countBody(run, step);
    const isPoison = (plan.kills ?? 0) >= nth && this.options.isPoisonOn();
    const entry: BodyEntry = {
      ...{ run, step, nth, isPoison, attempt, process: process.name, fence: this.options.fence() },
      ...{ begunAfter: journal.seq, begunAt: this.options.now(), end: null, token: null, lane },
    };
    ledger.bodies.push(entry);
    scheduler.trace.add(scheduler.now, process.name, `begins ${run.slice(-6)} ${step} (${nth})`);
    await this.sleep(plan.ms * random.between(0.5, 1.5));
    if (isPoison) {
      this.options.crash();
      return new Promise(() => {});
    }
    if (nth <= (plan.hangs ?? 0)) return new Promise(() => {});
    if (nth <= (plan.fails ?? 0) && (plan.error !== "permanent" || this.options.isPoisonOn())) {
      entry.end = "error";
      this.#fail(plan);
    }
    entry.end = "value";
    entry.token = `${step}#${nth}`;
    return entry.token;
  }

  #fail({ error }: BodyPlan): never {
    switch (error) {
      case "transient":
        throw new TransientError("a planned failure", { retryAfter: 200 });
      case "permanent":
        throw new PermanentError("a planned failure");
      case "no error":
        throw this.options.random.pick([undefined, null, "a planned failure", 42, { reason: "a planned failure" }]);
      default:
        throw new Error("a planned failure");
    }
  }

  /** One item of a resumable step. */
  async item(run: string, step: string, item: number): Promise<void> {
    const { process, ledger, journal, random } = this.options;
    ledger.items.push({
      ...{ run, step, item, process: process.name, fence: this.options.fence() },
      begunAfter: journal.seq,
    });
    await this.sleep(random.between(1, 12));
  }
}
