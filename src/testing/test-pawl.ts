/** Pawl with a virtual clock: days pass in milliseconds, and tests say when. */
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
import type { Store } from "../store/contract/store.js";
import { jobMissingGraceMs } from "../worker/session/vanished-jobs.js";
import type { Worker } from "../worker/worker.js";
import { type CrashTestOptions, type CrashTestReport, crashTest, crashTestOptions } from "./crash-test.js";
import { openTestStore } from "./open-test-store.js";
import { VirtualClock } from "./virtual-clock.js";

export interface TestPawlOptions {
  readonly workflows: readonly AnyWorkflow[];
  /** What the nodes of graphs run. */
  readonly jobs?: readonly JobDefinition[];
  /** Any URL; default "memory:". */
  readonly store?: string;
  /** On PostgreSQL: the schema for Pawl's tables, as `connect` takes it. */
  readonly schema?: string;
  readonly startAt?: Date | number;
  readonly logger?: Logger;
  /** As `connect` takes it; default 1 hour, of virtual time. */
  readonly recheckPausedAfter?: Duration | null;
}

export interface SpeedrunOptions {
  /** Fails after this many wake-ups instead of going on forever; default 10,000. */
  readonly maxExecutions?: number;
}

const testPawlOptions = new Set<string>([
  "workflows",
  "jobs",
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

export async function testPawl(options: TestPawlOptions): Promise<TestPawl> {
  checkOptions("testPawl()", options, testPawlOptions);
  const clock = new VirtualClock(options.startAt);
  const store = await openTestStore(options, clock);
  await store.migrate();
  const pawl = new Pawl(store, options.logger ?? errorOnlyLogger, { recheckPausedAfter: options.recheckPausedAfter });
  const worker = await testWorker(pawl, clock, options.workflows, options.jobs);
  return new TestPawl(pawl, worker, store, clock, options);
}

/** Real time, also in tests: long enough for code that awaits something of its own between two steps. */
const testReplayGraceMs = 200;

/** It looks for work only when the test says so. */
function testWorker(
  pawl: Pawl,
  clock: VirtualClock,
  workflows: readonly AnyWorkflow[],
  jobs: readonly JobDefinition[] = [],
): Promise<Worker> {
  const options = { concurrency: 1_000, poll: Number.POSITIVE_INFINITY, replayGrace: testReplayGraceMs };
  return pawl.worker({ workflows, jobs, ...options }).startDriven(clock.read);
}

export class TestPawl {
  readonly pawl: Pawl;
  readonly clock: VirtualClock;
  #worker: Worker;
  readonly #store: Store;
  readonly #options: TestPawlOptions;
  #workflows: readonly AnyWorkflow[];
  #jobs: readonly JobDefinition[];

  constructor(pawl: Pawl, worker: Worker, store: Store, clock: VirtualClock, options: TestPawlOptions) {
    this.pawl = pawl;
    this.clock = clock;
    this.#worker = worker;
    this.#store = store;
    this.#options = options;
    this.#workflows = options.workflows;
    this.#jobs = options.jobs ?? [];
  }

  /** Takes the run to its end, through every wait. Throws when it waits for something that nobody sends. */
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
        throw new InvalidStateError(`Run ${run.id} waits for ${describe(waitingFor)}, which nobody sends.`, {
          runId: run.id,
          status,
        });
      this.clock.moveTo(nextDueAt);
    }
    throw new InvalidStateError(`Run ${run.id} did not end within ${limit} executions.`, { runId: run.id });
  }

  /**
   * Takes the run through the step that it is at, its wait included, and no further. A resumable step is not interrupted
   * on the way. Returns how the step ended; null when the run had no step left. A run that is paused meanwhile is left at
   * that.
   */
  async speedrunCurrentStep(run: RunHandle<any, any>, options: SpeedrunOptions = {}): Promise<ExecutionInfo | null> {
    checkOptions("speedrunCurrentStep()", options, speedrunOptions);
    const limit = options.maxExecutions ?? 100;
    const endedBefore = (await this.#endedExecutions(run)).length;
    for (let executions = 0; executions < limit; executions += 1) {
      const { ended, nextDueAt } = await this.#worker.runOneStep(run.id);
      const { finishedAt, status, waitingFor } = await run.get();
      if (ended || finishedAt !== null || (status === "paused" && nextDueAt === null)) {
        const all = await this.#endedExecutions(run);
        return all.length > endedBefore ? (all.at(-1) as ExecutionInfo) : null;
      }
      if (nextDueAt === null)
        throw new InvalidStateError(`Run ${run.id} waits for ${describe(waitingFor)}, which nobody sends.`, {
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
    return (await run.executions()).filter((one) => one.finishedAt !== null && !one.step.includes(scopeSeparator));
  }

  /** Throws unless the resumable step that the run is at has this cursor. */
  async assertCursor(run: RunHandle<any, any>, expected: unknown): Promise<void> {
    const rows = await this.#store.cursors(run.id);
    const { currentStep } = await run.get();
    const row = rows.find((one) => one.node === currentStep) ?? rows.find((one) => one.cursor !== null);
    const actual = row?.cursor == null ? null : decode(row.cursor);
    deepStrictEqual(actual, expected ?? null, `Run ${run.id} has another cursor${atStep(currentStep)} than expected.`);
  }

  /** Throws unless an execution of this step was interrupted and another one is to continue it. */
  async assertStepHasSuccessor(run: RunHandle<any, any>, step: string): Promise<void> {
    const executions = (await run.executions()).filter((one) => one.step === step);
    const last = executions.at(-1);
    const before = executions.at(-2);
    ok(before?.finishedAt, `Run ${run.id} has no execution of step "${step}" that has ended and has a successor.`);
    strictEqual(before.successor, last?.id);
    strictEqual(last?.state, "scheduled", `The successor of step "${step}" is ${last?.state}, not scheduled.`);
  }

  async #pauseReason(run: RunHandle<any, any>): Promise<string> {
    const log = (await this.#store.logs([run.id])).get(run.id) ?? [];
    const paused = log.findLast((event) => event.type === "run.paused");
    return paused?.data == null ? "no reason is known." : (JSON.parse(paused.data) as { reason: string }).reason;
  }

  /** Lets time pass and runs what becomes due on the way, in order. */
  async advance(duration: Duration): Promise<void> {
    const startedAt = this.clock.read();
    const target = startedAt + parseDuration(duration, "duration");
    for (;;) {
      const nextDueAt = await this.#worker.runUntilIdle();
      if (nextDueAt === null || nextDueAt > target) break;
      this.clock.moveTo(nextDueAt);
    }
    this.clock.moveTo(target);
    await this.#worker.runUntilIdle();
    if (target - startedAt < jobMissingGraceMs) return;
    await this.#worker.checkVanishedJobs();
    await this.#worker.runUntilIdle();
  }

  /** Runs everything that is due now, and comes back when nothing is. */
  async settle(): Promise<void> {
    await this.#worker.runUntilIdle();
  }

  /** From now on this is the code, and no other: what runs under way make of that is what a test may want to see. */
  async deploy(workflows: readonly AnyWorkflow[], jobs: readonly JobDefinition[] = []): Promise<void> {
    await this.#worker.stop();
    this.#workflows = workflows;
    this.#jobs = jobs;
    this.#worker = await testWorker(this.pawl, this.clock, workflows, jobs);
  }

  /** Runs the workflow once for every point at which its worker could die, and compares the results. */
  async crashTest<I, O>(
    workflow: WorkflowDefinition<I, O> | WorkflowClass<Workflow<any, I, O>>,
    input: I,
    options: CrashTestOptions<I, O> = {},
  ): Promise<CrashTestReport<O>> {
    checkOptions("crashTest()", options, crashTestOptions);
    const { store, schema } = this.#options;
    const workflows = this.#workflows;
    // On a shared database our own worker would take the runs that are to be crashed.
    await this.#worker.stop();
    try {
      return await crashTest(workflow, input, {
        workflows,
        jobs: this.#jobs,
        ...(store === undefined ? {} : { store }),
        // Of another database that the options name, only they know the schema.
        ...(schema === undefined || options.store !== undefined ? {} : { schema }),
        ...options,
      });
    } finally {
      this.#worker = await testWorker(this.pawl, this.clock, workflows, this.#jobs);
    }
  }

  close(): Promise<void> {
    return this.pawl.close();
  }
}

/** A run that was looked at again so often, and paused itself each time, waits for something that time does not bring. */
const maxPausesInARow = 100;

const atStep = (step: string | null) => (step === null ? "" : ` at step "${step}"`);

function describe(waiting: readonly { readonly kind: string }[]): string {
  if (waiting.length === 0) return "nothing that is known";
  return waiting
    .map((one) =>
      "names" in one
        ? `signal ${(one.names as string[]).map((name) => `"${name}"`).join(" or ")}`
        : JSON.stringify(one),
    )
    .join(", ");
}
