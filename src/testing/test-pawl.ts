/** Pawl with a virtual clock: tests decide when time passes, and days pass in milliseconds. */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import type { ExecutionInfo } from "../client/inspect/executions.js";
import type { RunHandle } from "../client/run-handle.js";
import { Pawl } from "../connect.js";
import { decode } from "../core/encoding/decode.js";
import { InvalidStateError } from "../core/errors/errors.js";
import { checkOptions } from "../core/naming/check-options.js";
import { type Duration, parseDuration } from "../core/naming/duration.js";
import { scopeSeparator } from "../core/run/step-key.js";
import type { Workflow } from "../define/class/workflow.js";
import type { WorkflowClass } from "../define/class/workflow-instance.js";
import type { Logger } from "../define/context.js";
import type { WorkflowDefinition } from "../define/definition.js";
import type { JobDefinition } from "../define/dynamic/job.js";
import type { AnyWorkflow } from "../define/resolve.js";
import type { ScheduleDefinition } from "../define/schedule/schedule.js";
import type { Store } from "../store/contract/store.js";
import { jobMissingGraceMs } from "../worker/session/vanished-jobs.js";
import type { Worker } from "../worker/worker.js";
import { type CrashTestOptions, type CrashTestReport, crashTest, crashTestOptions } from "./crash-test.js";
import { openTestStore } from "./open-test-store.js";
import { VirtualClock } from "./virtual-clock.js";

/** Options of `testPawl`. */
export interface TestPawlOptions {
  /** The workflows that the test executes. */
  readonly workflows: readonly AnyWorkflow[];
  /** The jobs that the nodes of graphs run. Default: none. */
  readonly jobs?: readonly JobDefinition[];
  /** The schedules that the worker declares. Default: none. */
  readonly schedules?: readonly ScheduleDefinition[];
  /** The database, as a URL that `connect` takes; default "memory:". */
  readonly store?: string;
  /** PostgreSQL: the schema for Pawl's tables, as `connect` takes it. */
  readonly schema?: string;
  /** The time at which the virtual clock starts; default: the real time. */
  readonly startAt?: Date | number;
  /** Default: errors to the console, everything else is discarded. */
  readonly logger?: Logger;
  /** As `connect` takes it; default 1 hour, of virtual time. */
  readonly recheckPausedAfter?: Duration | null;
}

/** Options of `speedrun` and `speedrunCurrentStep`. */
export interface SpeedrunOptions {
  /** Throws after this many wake-ups instead of running forever; default 10,000, for a single step 100. */
  readonly maxExecutions?: number;
}

const testPawlOptions = new Set<string>([
  "workflows",
  "jobs",
  "schedules",
  "store",
  "schema",
  "startAt",
  "recheckPausedAfter",
  "logger",
] satisfies (keyof TestPawlOptions)[]);
const speedrunOptions = new Set<string>(["maxExecutions"] satisfies (keyof SpeedrunOptions)[]);

const errorOnlyLogger: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: (...args) => console.error(...args),
};

/**
 * Makes a Pawl for a test, with a virtual clock and a worker that executes runs only while the test asks for it.
 *
 * @example
 * ```ts
 * const t = await testPawl({ workflows: [order] });
 * const run = await t.pawl.start(order, { sku: "A-1" });
 * await t.speedrun(run); // to its end, through every wait
 * console.log(await run.result());
 * await t.close();
 * ```
 */
export async function testPawl(options: TestPawlOptions): Promise<TestPawl> {
  checkOptions("testPawl()", options, testPawlOptions);
  const clock = new VirtualClock(options.startAt);
  const store = await openTestStore(options, clock);
  await store.migrate();
  const pawl = new Pawl(store, options.logger ?? errorOnlyLogger, { recheckPausedAfter: options.recheckPausedAfter });
  const worker = await startTestWorker(pawl, clock, options);
  return new TestPawl(pawl, worker, store, clock, options);
}

/**
 * The worker's `replayGrace`, in real time. It is long enough for workflow code that awaits something other than a step
 * between two steps.
 */
const testReplayGraceMs = 200;

/** What a worker executes. */
type Code = Pick<TestPawlOptions, "workflows" | "jobs" | "schedules">;

/** Starts a worker that never polls: it claims runs only while the test drives it. */
function startTestWorker(pawl: Pawl, clock: VirtualClock, { workflows, jobs = [], schedules }: Code): Promise<Worker> {
  const options = { concurrency: 1_000, poll: Number.POSITIVE_INFINITY, replayGrace: testReplayGraceMs };
  const declared = schedules === undefined ? {} : { schedules };
  return pawl.worker({ workflows, jobs, ...declared, ...options }).startDriven(clock.read);
}

/** A Pawl on virtual time, made by `testPawl`: the test decides when time passes and when runs are executed. */
export class TestPawl {
  /** The Pawl under test: starts, signals and inspects runs as in production. */
  readonly pawl: Pawl;
  /** The virtual clock. `advance` moves it, and executes what becomes due. */
  readonly clock: VirtualClock;
  #worker: Worker;
  readonly #store: Store;
  readonly #options: TestPawlOptions;
  #code: Code;

  constructor(pawl: Pawl, worker: Worker, store: Store, clock: VirtualClock, options: TestPawlOptions) {
    this.pawl = pawl;
    this.clock = clock;
    this.#worker = worker;
    this.#store = store;
    this.#options = options;
    this.#code = options;
  }

  /** Takes the run to its end, through every wait. Throws if the run waits for a signal that has not been sent. */
  async speedrun(run: RunHandle<any, any>, options: SpeedrunOptions = {}): Promise<void> {
    checkOptions("speedrun()", options, speedrunOptions);
    const limit = options.maxExecutions ?? 10_000;
    let pauses = 0;
    for (let executions = 0; executions < limit; executions += 1) {
      const nextDueAt = await this.#worker.runUntilIdle();
      const { finishedAt, status, waitingFor } = await run.get();
      if (finishedAt !== null) return;
      pauses = status === "paused" ? pauses + 1 : 0;
      if (status === "paused" && (nextDueAt === null || pauses > maxPausesInARow))
        throw new InvalidStateError(`Run ${run.id} is paused: ${await this.#pauseReason(run)}`, {
          runId: run.id,
          status,
        });
      if (nextDueAt === null)
        throw new InvalidStateError(`Run ${run.id} waits for ${describeWaits(waitingFor)}, which has not been sent.`, {
          runId: run.id,
          status,
        });
      this.clock.moveTo(earlier(nextDueAt, await this.#worker.nextScheduleAt()));
    }
    throw new InvalidStateError(`Run ${run.id} did not end within ${limit} executions.`, { runId: run.id });
  }

  /**
   * Takes the run through its current step, including the wait before it, and no further. A resumable step is not
   * interrupted. Returns how the step ended, or null if the run had no step left. If the run is paused meanwhile, it stays
   * paused.
   */
  async speedrunCurrentStep(run: RunHandle<any, any>, options: SpeedrunOptions = {}): Promise<ExecutionInfo | null> {
    checkOptions("speedrunCurrentStep()", options, speedrunOptions);
    const limit = options.maxExecutions ?? 100;
    const endedBefore = (await this.#endedExecutions(run)).length;
    for (let executions = 0; executions < limit; executions += 1) {
      const { ended, nextDueAt } = await this.#worker.runOneStep(run.id);
      const { finishedAt, status, waitingFor } = await run.get();
      if (ended || finishedAt !== null || (status === "paused" && nextDueAt === null)) {
        const executions = await this.#endedExecutions(run);
        return executions.length > endedBefore ? (executions.at(-1) as ExecutionInfo) : null;
      }
      if (nextDueAt === null)
        throw new InvalidStateError(`Run ${run.id} waits for ${describeWaits(waitingFor)}, which has not been sent.`, {
          runId: run.id,
          status,
        });
      this.clock.moveTo(nextDueAt);
    }
    throw new InvalidStateError(`The current step of run ${run.id} did not end within ${limit} executions.`, {
      runId: run.id,
    });
  }

  async #endedExecutions(run: RunHandle<any, any>): Promise<ExecutionInfo[]> {
    const executions = await run.executions();
    return executions.filter(({ finishedAt, step }) => finishedAt !== null && !step.includes(scopeSeparator));
  }

  /** Throws unless the resumable step that the run is at has this cursor; `null` means no cursor. */
  async assertCursor(run: RunHandle<any, any>, expected: unknown): Promise<void> {
    const rows = await this.#store.cursors(run.id);
    const { currentStep } = await run.get();
    const row = rows.find(({ node }) => node === currentStep) ?? rows.find(({ cursor }) => cursor !== null);
    const actual = row?.cursor == null ? null : decode(row.cursor);
    deepStrictEqual(actual, expected ?? null, `Run ${run.id} has another cursor${atStep(currentStep)} than expected.`);
  }

  /** Throws unless an execution of this step was interrupted and another execution is scheduled to continue it. */
  async assertStepHasSuccessor(run: RunHandle<any, any>, step: string): Promise<void> {
    const executions = (await run.executions()).filter((execution) => execution.step === step);
    const last = executions.at(-1);
    const before = executions.at(-2);
    ok(before?.finishedAt, `Run ${run.id} has no execution of step "${step}" that has ended and has a successor.`);
    strictEqual(before.successor, last?.id);
    strictEqual(last?.state, "scheduled", `The successor of step "${step}" is ${last?.state}, not scheduled.`);
  }

  async #pauseReason(run: RunHandle<any, any>): Promise<string> {
    const log = (await this.#store.logs([run.id])).get(run.id) ?? [];
    const pauseEvent = log.findLast((event) => event.type === "run.paused");
    return pauseEvent?.data == null
      ? "no reason is known."
      : (JSON.parse(pauseEvent.data) as { reason: string }).reason;
  }

  /**
   * Moves the clock and executes what becomes due on the way, in order: runs, and the schedules of the worker.
   *
   * @example
   * ```ts
   * await t.advance("3 days");
   * ```
   */
  async advance(duration: Duration): Promise<void> {
    const startedAt = this.clock.read();
    const target = startedAt + parseDuration(duration, "duration");
    for (;;) {
      const nextDueAt = await this.#worker.runUntilIdle();
      const nextAt = earlier(nextDueAt ?? Number.POSITIVE_INFINITY, await this.#worker.nextScheduleAt());
      if (nextAt > target) break;
      this.clock.moveTo(nextAt);
    }
    this.clock.moveTo(target);
    await this.#worker.runUntilIdle();
    if (target - startedAt < jobMissingGraceMs) return;
    await this.#worker.checkVanishedJobs();
    await this.#worker.runUntilIdle();
  }

  /** Executes everything that is due now, without moving the clock. */
  async settle(): Promise<void> {
    await this.#worker.runUntilIdle();
  }

  /**
   * Replaces the workflows, jobs and schedules, as a deploy would: open runs continue with the new code. Without `schedules`,
   * the new worker declares none, which leaves the stored ones as they are.
   */
  async deploy(
    workflows: readonly AnyWorkflow[],
    jobs: readonly JobDefinition[] = [],
    schedules?: readonly ScheduleDefinition[],
  ): Promise<void> {
    await this.#worker.stop();
    this.#code = { workflows, jobs, ...(schedules === undefined ? {} : { schedules }) };
    this.#worker = await startTestWorker(this.pawl, this.clock, this.#code);
  }

  /**
   * Runs the workflow once for every point at which its worker could die, and throws if a result differs from that of the
   * undisturbed run. The defaults of `workflows`, `jobs`, `store` and `schema` are those of `testPawl`.
   *
   * @example
   * ```ts
   * const report = await t.crashTest(order, { sku: "A-1" });
   * console.log(report.points); // how many crashes were tried
   * ```
   */
  async crashTest<I, O>(
    workflow: WorkflowDefinition<I, O> | WorkflowClass<Workflow<any, I, O>>,
    input: I,
    options: CrashTestOptions<I, O> = {},
  ): Promise<CrashTestReport<O>> {
    checkOptions("crashTest()", options, crashTestOptions);
    const { store, schema } = this.#options;
    const { workflows, jobs = [] } = this.#code;
    // On a shared database this worker would claim the runs whose workers are to crash.
    await this.#worker.stop();
    try {
      return await crashTest(workflow, input, {
        workflows,
        jobs,
        ...(store === undefined ? {} : { store }),
        // The schema of `testPawl` does not apply to another database that the options name.
        ...(schema === undefined || options.store !== undefined ? {} : { schema }),
        ...options,
      });
    } finally {
      this.#worker = await startTestWorker(this.pawl, this.clock, this.#code);
    }
  }

  /** Stops the worker and closes the database. */
  close(): Promise<void> {
    return this.pawl.close();
  }
}

/** A run that was rechecked this often, and paused itself each time, waits for something that time alone does not bring. */
const maxPausesInARow = 100;

const earlier = (instant: number, other: number | null) => (other === null ? instant : Math.min(instant, other));

const atStep = (step: string | null) => (step === null ? "" : ` at step "${step}"`);

function describeWaits(waiting: readonly { readonly kind: string }[]): string {
  if (waiting.length === 0) return "nothing that is known";
  return waiting
    .map((wait) =>
      "names" in wait
        ? `signal ${(wait.names as string[]).map((name) => `"${name}"`).join(" or ")}`
        : JSON.stringify(wait),
    )
    .join(", ");
}
