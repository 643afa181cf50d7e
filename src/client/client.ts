/** The client: starts runs, finds them and operates them. It needs no worker, and it can start a workflow by name only. */

import { RunNotFoundError } from "../core/errors/errors.js";
import type { FrozenDag } from "../core/graph/frozen-dag.js";
import { checkOptions } from "../core/naming/check-options.js";
import { parseRunId } from "../core/naming/element-id.js";
import { isUuid } from "../core/naming/ids.js";
import { checkName } from "../core/naming/names.js";
import type { InputOf, OutputOf } from "../define/class/class-types.js";
import type { WorkflowClass } from "../define/class/workflow-instance.js";
import type { Logger, SignalArgs, SignalName } from "../define/context.js";
import type { WorkflowDefinition } from "../define/definition.js";
import type { GraphBuilder } from "../define/dynamic/builder.js";
import { type AnyWorkflow, asDefinition, nameOf } from "../define/resolve.js";
import type { ScheduleDefinition } from "../define/schedule/schedule.js";
import type { Runtime } from "../runtime/runtime.js";
import type { Store } from "../store/contract/store.js";
import { RunTally } from "../telemetry/run-tally.js";
import { cancelIfOpen } from "./command/cancel-if-open.js";
import { RunCommands } from "./command/run-commands.js";
import { type FindBy, findRunId, findSingleRun } from "./inspect/find-runs.js";
import { listRuns, type RunsFilter, type RunsPage } from "./inspect/list-runs.js";
import { ResultWaiter } from "./inspect/result-waiter.js";
import { Limits } from "./limits/limits.js";
import { type RunCounts, readCounts } from "./operate/counts.js";
import { type ErrorReport, readErrors } from "./operate/errors.js";
import { type Figures, type FiguresOptions, readFigures } from "./operate/figures.js";
import { type MetricsOptions, readMetrics, type WorkflowMetrics } from "./operate/metrics.js";
import { type PruneOptions, type PruneResult, prune } from "./operate/prune.js";
import { listQueues, pauseQueue, type QueueInfo, resumeQueue } from "./operate/queues.js";
import { type Verification, verify } from "./operate/verify.js";
import { healthOf, type WorkerHealth } from "./operate/workers.js";
import { listWorkflows, type WorkflowInfo } from "./operate/workflows.js";
import { type HandleServices, RunHandle } from "./run-handle.js";
import { ScheduleFiring } from "./schedules/firing.js";
import { ScheduleSet } from "./schedules/schedule-set.js";
import { Schedules } from "./schedules/schedules.js";
import { WorkerSchedules } from "./schedules/worker-schedules.js";
import { type BuildOptions, createGraphRun } from "./start/build.js";
import { type Adopter, Launcher } from "./start/launcher.js";
import { NamedWorkflow } from "./start/named-workflow.js";
import { IdSource } from "./start/new-id.js";
import { type StartOptions, startManyOptions, startOptions } from "./start/new-run.js";
import { Registrar } from "./start/registrar.js";
import type { Registration } from "./start/registration.js";
import { RunStarter } from "./start/run-starter.js";
import {
  type HandleOf,
  type InputTo,
  inputAndOptions,
  type StartArgsOf,
  type Startable,
  type StartableWithoutHero,
} from "./start/start-args.js";

const workflowOptions = new Set(["queue"]);

/** Starts, finds and operates runs. `Pawl` extends it with workers. */
export class Client {
  /** @internal */
  protected readonly store: Store;
  /** @internal */
  protected readonly log: Logger;
  /** @internal */
  protected readonly runtime: Runtime;
  /** @internal */
  protected readonly ids: IdSource;
  /** @internal */
  protected readonly tally: RunTally;
  readonly #launcher: Launcher;
  readonly #starter: RunStarter;
  readonly #results: ResultWaiter;
  readonly #handles: HandleServices;
  readonly #registrar: Registrar;
  readonly #closed = new AbortController();
  /** Schedules: `put`, `list`, `get`, `next`, `pause`, `resume`, `trigger`, `backfill`, `occurrences`, `delete`. */
  readonly schedules: Schedules;
  /** Limits: `list`, `get`. */
  readonly limits: Limits;
  readonly #scheduleFiring: ScheduleFiring;
  /** The schedules that workers of this process declare. */
  readonly #scheduleDefinitions = new Map<string, ScheduleDefinition>();

  /** @internal */
  constructor(store: Store, log: Logger, runtime: Runtime) {
    this.store = store;
    this.log = log;
    this.runtime = runtime;
    this.ids = new IdSource(runtime);
    this.#registrar = new Registrar(store, log);
    this.#launcher = new Launcher(store, log, runtime);
    this.#results = new ResultWaiter(store, runtime);
    this.tally = new RunTally(store, log, runtime);
    const commands = new RunCommands({ store, log, runtime, tally: this.tally });
    this.#handles = {
      ...{ runtime, store, log, commands },
      results: this.#results,
      retry: (id, options) => this.#starter.retry(id, options),
    };
    this.#starter = new RunStarter(this.#handles, this.ids, this.#registrar, this.#launcher);
    const firing = new ScheduleFiring({
      store,
      runtime,
      log,
      ids: this.ids,
      readWorkflows: (names) => this.#registrar.records(names),
      cancel: (runId, reason) => cancelIfOpen(commands, runId, reason),
    });
    this.#scheduleFiring = firing;
    this.limits = new Limits(store);
    this.schedules = new Schedules({ store, runtime, firing, definitions: () => this.#scheduleDefinitions });
  }

  /**
   * Starts a run; when it returns, the run is durable. Throws InvalidInputError for an invalid input or option and
   * AlreadyActiveError if the hero has an active run. The input may be left out if the workflow takes none.
   *
   * @example
   * ```ts
   * const run = await pawl.start(order, { sku: "A-1" }, { idempotencyKey: "order-42" });
   * console.log(await run.result({ timeout: "5 minutes" }));
   * ```
   */
  start<Started extends AnyWorkflow>(
    workflow: Started & Startable<Started>,
    ...inputAndOptions: StartArgsOf<Started>
  ): Promise<HandleOf<Started>>;
  async start(workflow: AnyWorkflow, ...startArgs: unknown[]): Promise<RunHandle<any, any>> {
    const definition = asDefinition(workflow);
    const [input, options] = inputAndOptions(definition, startArgs);
    if (options !== undefined) checkOptions(`start("${definition.name}")`, options, startOptions);
    await this.#registrar.registerFor(definition, options?.tx);
    const [handle] = await this.#starter.startRuns(definition, [input], options);
    return handle as RunHandle<any, any>;
  }

  /** Starts many runs of one workflow in few commits. All inputs are checked before the first run is written. */
  startMany<Started extends AnyWorkflow>(
    workflow: Started & StartableWithoutHero<Started>,
    inputs: readonly InputTo<Started>[],
    options?: Omit<StartOptions, "idempotencyKey" | "hero">,
  ): Promise<HandleOf<Started>[]>;
  async startMany(
    workflow: AnyWorkflow,
    inputs: readonly unknown[],
    options?: StartOptions,
  ): Promise<RunHandle<any, any>[]> {
    const definition = asDefinition(workflow);
    if (options !== undefined) checkOptions(`startMany("${definition.name}")`, options, startManyOptions);
    await this.#registrar.registerFor(definition, options?.tx);
    return this.#starter.startRuns(definition, inputs, options);
  }

  /**
   * Returns an object for a workflow that is known by its name, for processes that do not have its code.
   *
   * @example
   * ```ts
   * const run = await pawl.workflow<{ sku: string }, string>("order").trigger({ sku: "A-1" });
   * ```
   */
  workflow<Input = unknown, Output = unknown>(name: string): NamedWorkflow<Input, Output> {
    return new NamedWorkflow(checkName("workflow", name), {
      start: (inputs, options) => this.#starter.startByName(name, inputs, options),
      run: (id) => this.#createHandle(id),
    });
  }

  /** Registers a workflow by name, so that it can be triggered before any worker has it. Calling it again changes nothing. */
  async createWorkflow(
    name: string,
    options: {
      /** The queue of its runs. Default: a queue of its own, named like the workflow. */
      readonly queue?: string;
    } = {},
  ): Promise<void> {
    checkName("workflow", name);
    checkOptions(`createWorkflow("${name}")`, options, workflowOptions);
    const queue = options.queue === undefined ? null : checkName("queue", options.queue);
    await this.store.registerWorkflows([{ name, queue, version: null, signature: null, graph: null }]);
  }

  /**
   * Builds a graph of jobs and starts it. The function runs once, in this process, and the graph is stored as data. Throws a
   * GraphError if the graph is empty, has a cycle or depends on an unknown node.
   *
   * @example
   * ```ts
   * const run = await pawl.build("import", (g) => {
   *   const parts = g.fanOut(ids, { name: (id) => `part_${id}`, job: importPart, args: (id) => ({ id }) });
   *   g.node("aggregate", { job: aggregate, dependsOn: parts });
   * });
   * ```
   */
  async build(
    name: string,
    build: (g: GraphBuilder) => unknown,
    options: BuildOptions = {},
  ): Promise<RunHandle<FrozenDag, void>> {
    const run = await createGraphRun(name, build, options, await this.store.now(), {
      runtime: this.runtime,
      ids: this.ids,
    });
    await this.#registrar.reserveForBuiltGraph(name);
    return (await this.#starter.launchRuns([run], options))[0] as RunHandle<FrozenDag, void>;
  }

  /**
   * Returns the handle of the run with this id. Throws RunNotFoundError if the id is no UUID; the methods of the handle check
   * whether the run exists.
   */
  run<Input = unknown, Output = unknown>(id: string): RunHandle<Input, Output>;
  /** Returns the handle of the run with this id, with the input and output types of the workflow. */
  run<Input, Output>(definition: WorkflowDefinition<Input, Output>, id: string): RunHandle<Input, Output>;
  /** Returns the handle of the run with this id, with the input and output types of the class. */
  run<Class extends WorkflowClass>(workflow: Class, id: string): RunHandle<InputOf<Class>, OutputOf<Class>>;
  run(first: string | AnyWorkflow, second?: string): RunHandle<any, any> {
    return this.#createHandle(typeof first === "string" ? first : (second as string));
  }

  /**
   * Finds the run that was started with an idempotency key, or a run of a hero: the newest active run, otherwise the newest
   * run. Returns null if no run matches.
   *
   * @example
   * ```ts
   * const run = await pawl.find(order, { idempotencyKey: "order-42" });
   * ```
   */
  find<Found extends AnyWorkflow>(workflow: Found, by: FindBy): Promise<HandleOf<Found> | null>;
  /** Finds a run of a workflow that is given by its name. */
  find(workflow: string, by: FindBy): Promise<RunHandle | null>;
  async find(workflow: AnyWorkflow | string, by: FindBy): Promise<RunHandle<any, any> | null> {
    const id = await findRunId(this.store, workflow, by);
    return id === null ? null : this.#createHandle(id);
  }

  /**
   * Sends a signal to the run that `find` returns. Throws RunNotFoundError if no run matches, and InvalidStateError if
   * several runs of the hero are active or the run has ended.
   *
   * @example
   * ```ts
   * await pawl.signal(order, { idempotencyKey: "order-42" }, "paid", { cents: 4200 }, { key: webhook.id });
   * ```
   */
  async signal<Payload = unknown>(
    workflow: AnyWorkflow | string,
    by: FindBy,
    signal: SignalName<Payload>,
    ...payloadAndOptions: SignalArgs<Payload>
  ): Promise<void> {
    const run = await findSingleRun(this.store, nameOf(workflow), by);
    await this.#createHandle(run.id).signal(signal, ...payloadAndOptions);
  }

  /**
   * Lists runs, newest first, a page at a time.
   *
   * @example
   * ```ts
   * const { runs, next } = await pawl.runs({ workflow: order, status: "failed", limit: 100 });
   * ```
   */
  runs(filter: RunsFilter = {}): Promise<RunsPage> {
    return listRuns(this.store, filter, this.runtime);
  }

  /** Counts the runs of each workflow by status, at most 10,000 of each status. Completed runs are not counted. */
  counts(): Promise<RunCounts> {
    return readCounts(this.store);
  }

  /** Groups the failed and paused runs by workflow and error, the latest first. */
  errors(): Promise<ErrorReport> {
    return readErrors(this.store);
  }

  /** Reads how many runs began and ended per minute, by default in the last hour. */
  figures(options: FiguresOptions = {}): Promise<Figures[]> {
    return readFigures(this.store, options);
  }

  /** Lists all known workers, live and dead. Dead workers are removed from the list after a day. */
  async workers(): Promise<readonly WorkerHealth[]> {
    const [workers, now] = await Promise.all([this.store.workers(), this.store.now()]);
    return workers.map((worker) => healthOf(worker, now, this.runtime));
  }

  /**
   * Returns the success rate, durations, backlog and workers of a workflow, over the runs of the last day or since
   * `since`. Throws WorkflowNotFoundError for an unknown name.
   */
  metrics(workflow: AnyWorkflow | string, options: MetricsOptions = {}): Promise<WorkflowMetrics> {
    return readMetrics(this.store, nameOf(workflow), options, this.runtime);
  }

  /** Lists all queues with their backlog, their workers and whether they are paused. */
  queues(): Promise<QueueInfo[]> {
    return listQueues(this.store, this.runtime);
  }

  /**
   * Pauses a queue: workers continue the runs that they execute but take no more runs from the queue, and new runs wait.
   * Throws InvalidInputError if no workflow has the queue.
   */
  pauseQueue(
    name: string,
    reason?: string,
    options: {
      /** Who pauses it, for `queues()`. */
      readonly by?: string | undefined;
    } = {},
  ): Promise<void> {
    return pauseQueue(this.store, name, reason, options);
  }

  /** Resumes a paused queue. */
  resumeQueue(name: string): Promise<void> {
    return resumeQueue(this.store, name);
  }

  /**
   * Deletes runs that ended longer ago than `olderThan`, with their logs and children. A run is not deleted while one of its
   * children is open or ended more recently. The idempotency keys of deleted runs may be used again. With
   * `connect(url, { retention })` workers do this.
   *
   * @example
   * ```ts
   * const { runs } = await pawl.prune({ olderThan: "30 days", dryRun: true });
   * ```
   */
  prune(options: PruneOptions): Promise<PruneResult> {
    return prune(this.store, options, this.runtime);
  }

  /** Checks the stored data of all runs, or of one: recomputes each run from its log and compares it with the tables. */
  async verify(runId?: string): Promise<Verification> {
    if (runId !== undefined && !isUuid(runId)) throw new RunNotFoundError(runId);
    return verify(this.store, runId, this.runtime);
  }

  /** Lists the workflows that workers and clients have registered, by name. */
  async workflows(): Promise<WorkflowInfo[]> {
    return listWorkflows(this.store);
  }

  /** @internal What the HTTP API uses besides the public methods. */
  get internals(): {
    readonly store: Store;
    readonly log: Logger;
    readonly runtime: Runtime;
    /** Fires when the client is closed. */
    readonly closed: AbortSignal;
  } {
    return { store: this.store, log: this.log, runtime: this.runtime, closed: this.#closed.signal };
  }

  /**
   * @internal Makes the service by which a worker fires schedules.
   *
   * @param declared the schedules that the worker declares; null: none
   */
  protected createWorkerSchedules(app: string, declared: readonly ScheduleDefinition[] | null): WorkerSchedules {
    const { store, log, runtime } = this;
    const definitions = new Map((declared ?? []).map((definition) => [definition.name, definition]));
    for (const definition of definitions.values()) this.#scheduleDefinitions.set(definition.name, definition);
    const set = () => new ScheduleSet({ store, log, runtime, app, definitions: [...definitions.values()] });
    const declaredSet = declared === null ? null : { app, set: set() };
    const services = { store, firing: this.#scheduleFiring, startDeadlines: this.#starter.overdueStarts };
    return new WorkerSchedules({ ...services, definitions, declared: declaredSet });
  }

  /** @internal Adds a worker of this process. While it has room, it executes runs that this client starts without a claim. */
  protected addAdopter(worker: Adopter): void {
    this.#launcher.adopters.add(worker);
  }

  /** @internal */
  protected async closeClient(): Promise<void> {
    this.#closed.abort();
    this.#results.close();
    await this.tally.write();
  }

  /** @internal Writes definitions into the registry, each once per process. */
  register(definitions: readonly WorkflowDefinition[]): Promise<void> {
    return this.#registrar.register(definitions);
  }

  /** @internal */
  registration(name: string): Promise<Registration | null> {
    return this.#registrar.registration(name);
  }

  #createHandle(id: string): RunHandle<any, any> {
    if (typeof id !== "string" || parseRunId(id) === null) throw new RunNotFoundError(String(id));
    return new RunHandle(id, this.#handles);
  }
}
