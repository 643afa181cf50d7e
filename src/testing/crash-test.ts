/**
 * Crashes a workflow's worker before and after every commit, lets another worker take over, and compares the results.
 *
 * The crash is simulated at the store: from the chosen commit on, the dying worker gets no answer to any call. "before":
 * the commit is not made. "after": the commit is made, but its result does not arrive. The worker's tasks are then freed
 * as the reaper would free them, and a second worker takes over.
 */
import { isDeepStrictEqual } from "node:util";
import type { RunHandle } from "../client/run-handle.js";
import { IdSource } from "../client/start/new-id.js";
import { newRunFactory, type StartOptions } from "../client/start/new-run.js";
import { Pawl } from "../connect.js";
import { InvalidInputError, InvalidStateError } from "../core/errors/errors.js";
import { checkOptions } from "../core/naming/check-options.js";
import { seededRandom } from "../core/naming/ids.js";
import type { RunSchedule } from "../core/schedule/schedule-data.js";
import type { Workflow } from "../define/class/workflow.js";
import type { WorkflowClass } from "../define/class/workflow-instance.js";
import type { Logger } from "../define/context.js";
import type { WorkflowDefinition } from "../define/definition.js";
import type { JobDefinition } from "../define/dynamic/job.js";
import type { HeroRef } from "../define/hero.js";
import { type AnyWorkflow, asDefinition, asDefinitions } from "../define/resolve.js";
import type { ScheduleDefinition } from "../define/schedule/schedule.js";
import { systemRuntime } from "../runtime/system.js";
import type { Batch, Fence, NewRun, Store, StoreTransaction } from "../store/contract/store.js";
import type { Worker } from "../worker/worker.js";
import { openTestStore } from "./open-test-store.js";
import { VirtualClock } from "./virtual-clock.js";

/** Options of `crashTest`. */
export interface CrashTestOptions<Input, Output> {
  /** All workflows that take part; default: the one under test. */
  readonly workflows?: readonly AnyWorkflow[];
  /** The jobs that its tasks name; default: those of `testPawl`, or none. */
  readonly jobs?: readonly JobDefinition[];
  /** The database, as a URL that `connect` takes; default "memory:". */
  readonly store?: string;
  /** PostgreSQL: the schema that Pawl's tables are in, as `connect` takes it. */
  readonly schema?: string;
  /** The hero that each run is about, for a workflow class. */
  readonly hero?: HeroRef;
  /** The schedule whose next occurrence the runs are, as `ctx.schedule` tells; its instant is the same for all of them. */
  readonly schedule?: ScheduleDefinition;
  /** Called before each run: reset the outside world to its initial state. */
  readonly setup?: () => unknown;
  /** Called whenever the run is idle: send the signals that it waits for. Must be safe to call again. */
  readonly drive?: (run: RunHandle<Input, Output>, pawl: Pawl) => unknown;
  /** Whether the output after a crash is as good as the undisturbed one; default: deeply equal. */
  readonly compare?: (undisturbed: Output, crashed: Output) => boolean | Promise<boolean>;
  /** How many crash points to try: "all" (default), or a number of them, chosen at random by `seed`. */
  readonly points?: "all" | number;
  /** Chooses the points: the same seed chooses the same points. Default "pawl". */
  readonly seed?: string;
}

export const crashTestOptions: ReadonlySet<string> = new Set([
  "workflows",
  "jobs",
  "store",
  "schema",
  "hero",
  "schedule",
  "setup",
  "drive",
  "compare",
  "points",
  "seed",
] satisfies (keyof CrashTestOptions<any, any>)[]);

/** The result of `crashTest`, which throws if a crash changes the outcome. */
export interface CrashTestReport<Output> {
  /** How the run ended, undisturbed and after each crash. */
  readonly status: "completed" | "failed" | "canceled";
  /** The output of the undisturbed run, if it completed. */
  readonly output: Output;
  /** How many commits the undisturbed run makes. There is a crash point before and after each of them. */
  readonly commits: number;
  /** How many crash points were tried. */
  readonly points: number;
}

interface CrashPoint {
  readonly commit: number;
  readonly when: "before" | "after";
}

const silentLogger: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const maxWakeUps = 10_000;
const replayGraceMs = 200;

/**
 * Runs the workflow once undisturbed and once for every point at which its worker could die, and throws if an outcome
 * differs.
 *
 * @example
 * ```ts
 * await crashTest(order, { sku: "A-1" }, {
 *   drive: (run) => run.signal("approved", true, { key: "once" }),
 * });
 * ```
 */
export async function crashTest<Input, Output>(
  workflow: WorkflowDefinition<Input, Output> | WorkflowClass<Workflow<any, Input, Output>>,
  input: Input,
  options: CrashTestOptions<Input, Output> = {},
): Promise<CrashTestReport<Output>> {
  checkOptions("crashTest()", options, crashTestOptions);
  const definition: WorkflowDefinition<Input, Output> = asDefinition(workflow);
  const clock = new VirtualClock();
  const store = await openTestStore(options, clock);
  try {
    await store.migrate();
    const trial = new CrashTrial(definition, input, options, store, clock);
    const undisturbed = await trial.run(null);
    const points = choosePoints(undisturbed.commits, options);
    for (const point of points) {
      const crashed = await trial.run(point);
      if (await isSameOutcome(undisturbed, crashed, options.compare ?? isDeepStrictEqual)) continue;
      const [before, after] = [formatOutcome(undisturbed), formatOutcome(crashed)];
      const difference =
        before === after
          ? `made compare() say no (it was ${after} both times)`
          : `changed its result: ${before} became ${after}`;
      throw new InvalidStateError(
        `A crash ${point.when} commit ${point.commit} of "${definition.name}" ${difference}.`,
      );
    }
    const { status, output, commits } = undisturbed;
    return { status, output, commits, points: points.length };
  } finally {
    await store.close();
  }
}

/** How a run ended; failures are compared by their messages. */
interface RunOutcome<Output> {
  readonly status: "completed" | "failed" | "canceled";
  readonly output: Output;
  readonly errorMessage: string | null;
}

async function isSameOutcome<Output>(
  a: RunOutcome<Output>,
  b: RunOutcome<Output>,
  compare: (a: Output, b: Output) => boolean | Promise<boolean>,
): Promise<boolean> {
  return a.status === b.status && a.errorMessage === b.errorMessage && (await compare(a.output, b.output));
}

const formatOutcome = ({ status, output, errorMessage }: RunOutcome<unknown>) =>
  status === "completed" ? JSON.stringify(output) : `${status} (${errorMessage})`;

function choosePoints(
  commits: number,
  { points = "all", seed = "pawl" }: Pick<CrashTestOptions<any, any>, "points" | "seed">,
): CrashPoint[] {
  const allPoints: CrashPoint[] = [];
  for (let commit = 1; commit <= commits; commit += 1)
    allPoints.push({ commit, when: "before" }, { commit, when: "after" });
  if (points === "all" || points >= allPoints.length) return allPoints;
  const random = seededRandom(seed);
  const chosenPoints: CrashPoint[] = [];
  while (chosenPoints.length < points)
    chosenPoints.push(...allPoints.splice(Math.floor(random() * allPoints.length), 1));
  return chosenPoints;
}

class CrashTrial<Input, Output> {
  readonly #definition: WorkflowDefinition<Input, Output>;
  readonly #input: Input;
  readonly #options: CrashTestOptions<Input, Output>;
  readonly #store: Store;
  readonly #clock: VirtualClock;
  /** What the runs are occurrences of; null if no schedule starts them. */
  readonly #occurrence: RunSchedule | null;

  constructor(
    definition: WorkflowDefinition<Input, Output>,
    input: Input,
    options: CrashTestOptions<Input, Output>,
    store: Store,
    clock: VirtualClock,
  ) {
    this.#definition = definition;
    this.#input = input;
    this.#options = options;
    this.#store = store;
    this.#clock = clock;
    this.#occurrence = options.schedule === undefined ? null : nextOccurrence(options.schedule, clock.read());
  }

  async run(point: CrashPoint | null): Promise<RunOutcome<Output> & { readonly commits: number }> {
    await this.#options.setup?.();
    const crashingStore = new CrashingStore(this.#store, point);
    let pawl = createPawlWithoutRecheck(crashingStore.store);
    let worker = await this.#startWorker(pawl);
    // Another Pawl starts the run, so that the start is not lost in the crash.
    const starter = new Pawl(this.#store, silentLogger);
    const { hero } = this.#options;
    const startOptions = hero === undefined ? {} : { hero };
    const run: RunHandle<Input, Output> =
      this.#occurrence === null
        ? await starter.start(this.#definition as WorkflowDefinition<any, Output>, this.#input, startOptions)
        : await this.#startScheduled(starter, this.#occurrence, startOptions);
    let wasIdle = false;
    let crash: Promise<"dead"> | null = crashingStore.crashed;
    for (let wakeUps = 0; wakeUps < maxWakeUps; wakeUps += 1) {
      const nextDueAt = await (crash === null ? worker.runUntilIdle() : Promise.race([worker.runUntilIdle(), crash]));
      if (nextDueAt === "dead") {
        crash = null;
        await crashingStore.releaseAfterCrash(this.#store);
        pawl = createPawlWithoutRecheck(this.#store);
        worker = await this.#startWorker(pawl);
        continue;
      }
      const { finishedAt, status, output, error } = await run.get();
      if (finishedAt !== null) {
        await worker.stop();
        const outcome = { status: status as RunOutcome<Output>["status"], output: output as Output };
        return { ...outcome, errorMessage: error?.message ?? null, commits: crashingStore.commits };
      }
      if (nextDueAt === null && wasIdle) break;
      wasIdle = nextDueAt === null;
      await this.#options.drive?.(run, starter);
      if (nextDueAt !== null) this.#clock.moveTo(nextDueAt);
    }
    const where = point === null ? "without any crash" : `after a crash ${point.when} commit ${point.commit}`;
    const { status, pauseReason, waitingFor } = await run.get();
    const why =
      status === "paused"
        ? `it is paused: ${pauseReason}`
        : `it waits for ${JSON.stringify(waitingFor)}. \`drive\` sends the signals it needs.`;
    throw new InvalidStateError(`"${this.#definition.name}" does not end ${where}: ${why}`);
  }

  /** Starts a run as a schedule does, which has registered its workflow. */
  async #startScheduled(
    starter: Pawl,
    occurrence: RunSchedule,
    options: StartOptions,
  ): Promise<RunHandle<Input, Output>> {
    const createRun = newRunFactory(this.#definition, options, new IdSource(systemRuntime));
    const run: NewRun = { ...createRun(this.#input), schedule: JSON.stringify(occurrence) };
    await this.#store.commit({ fence: null, transitions: [], starts: [run] });
    return starter.run(run.id);
  }

  async #startWorker(pawl: Pawl): Promise<Worker> {
    const workflows = new Set([...asDefinitions(this.#options.workflows ?? []), this.#definition]);
    const jobs = this.#options.jobs ?? [];
    const options = { concurrency: 1_000, poll: Number.POSITIVE_INFINITY, replayGrace: replayGraceMs };
    const worker = pawl.worker({ workflows: [...workflows], jobs, ...options });
    return worker.startDriven(this.#clock.read);
  }
}

function nextOccurrence({ name, next }: ScheduleDefinition, now: number): RunSchedule {
  const [instant] = next(1, now);
  if (instant === undefined)
    throw new InvalidInputError(`crashTest() cannot start a run of schedule "${name}": it has no further instant.`);
  return { name, scheduledFor: Number(instant), firedAt: Number(instant), missed: 0 };
}

/**
 * Rechecks are turned off, because `drive` ends the pauses of a run, and a run that is rechecked every hour would never
 * be idle.
 */
const createPawlWithoutRecheck = (store: Store) => new Pawl(store, silentLogger, { recheckPausedAfter: null });

/** Compares with the name of a method of the store, so that the compiler notices when the method is renamed. */
const isMethod = (name: string | symbol, method: keyof Store) => name === method;

/** A store that stops answering its worker at a chosen commit. */
class CrashingStore {
  readonly store: Store;
  readonly crashed: Promise<"dead">;
  commits = 0;
  readonly #point: CrashPoint | null;
  #resolveCrash: () => void = () => {};
  #hasCrashed = false;
  #fence: Fence | null = null;
  readonly #openTransactions = new Set<StoreTransaction>();

  constructor(inner: Store, point: CrashPoint | null) {
    this.#point = point;
    this.crashed = new Promise((resolve) => {
      this.#resolveCrash = () => resolve("dead");
    });
    this.store = new Proxy(inner, { get: (target, name) => this.#method(target, name) });
  }

  #method(inner: Store, name: string | symbol): unknown {
    const value = Reflect.get(inner, name) as unknown;
    if (isMethod(name, "limits") || isMethod(name, "gatherings")) return this.#mortal(value as object);
    if (typeof value !== "function") return value;
    return (...args: unknown[]) => {
      if (this.#hasCrashed) return isMethod(name, "watch") ? () => {} : new Promise(() => {});
      if (isMethod(name, "commit")) return this.#commit(args[0] as Batch, () => inner.commit(args[0] as Batch));
      if (isMethod(name, "beginTransaction")) return this.#beginTransaction(inner);
      const result = Reflect.apply(value, inner, args) as unknown;
      if (isMethod(name, "watch")) return result;
      return (result as Promise<unknown>).then((answer) => {
        if (isMethod(name, "registerWorker")) this.#fence = answer as Fence;
        // An answer that arrives after the crash is lost.
        return this.#hasCrashed ? new Promise(() => {}) : answer;
      });
    };
  }

  /** A part of the store. */
  #mortal(part: object): object {
    return new Proxy(part, {
      get: (target, name) => {
        const method = Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>;
        return async (...args: unknown[]) => {
          if (this.#hasCrashed) return new Promise(() => {});
          const answer = await Reflect.apply(method, target, args);
          return this.#hasCrashed ? new Promise(() => {}) : answer;
        };
      },
    });
  }

  async #commit<T>(batch: Batch, commit: () => Promise<T>, undo: () => Promise<void> = async () => {}): Promise<T> {
    if (batch.fence !== null) this.commits += 1;
    const crashesNow = batch.fence !== null && this.#point?.commit === this.commits;
    if (!crashesNow) return commit();
    this.#hasCrashed = true;
    if (this.#point?.when === "after") await commit();
    else await undo();
    this.#resolveCrash();
    return new Promise(() => {});
  }

  async #beginTransaction(inner: Store): Promise<StoreTransaction> {
    const transaction = await inner.beginTransaction();
    if (this.#hasCrashed) {
      await transaction.rollback();
      return new Promise(() => {});
    }
    this.#openTransactions.add(transaction);
    const end = () => this.#openTransactions.delete(transaction);
    return {
      handle: transaction.handle,
      rollback: (options) => transaction.rollback(options).finally(end),
      commit: (batch) =>
        this.#commit(
          batch,
          () => transaction.commit(batch).finally(end),
          () => transaction.rollback().finally(end),
        ),
    };
  }

  /**
   * Rolls back the open transactions, as the database does when a process dies, and frees the worker's tasks, as the
   * reaper does when the lease has expired.
   */
  async releaseAfterCrash(inner: Store): Promise<void> {
    for (const transaction of this.#openTransactions) await transaction.rollback();
    if (this.#fence !== null) await inner.deregisterWorker(this.#fence);
  }
}
