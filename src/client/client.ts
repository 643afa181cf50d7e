/** Triggers: start runs, find runs, look at them. Needs no workflow code, only names. */

import { RunNotFoundError, WorkflowNotFoundError } from "../core/errors/errors.js";
import type { FrozenDag } from "../core/graph/frozen-dag.js";
import { checkOptions } from "../core/naming/check-options.js";
import { isUuid } from "../core/naming/ids.js";
import { checkName } from "../core/naming/names.js";
import type { InputOf, OutputOf } from "../define/class/class-types.js";
import type { WorkflowClass } from "../define/class/workflow-instance.js";
import type { Logger, SignalArgs, SignalName } from "../define/context.js";
import type { WorkflowDefinition } from "../define/definition.js";
import type { GraphBuilder } from "../define/dynamic/builder.js";
import { type AnyWorkflow, asDefinition, nameOf } from "../define/resolve.js";
import { validate } from "../define/standard-schema.js";
import type { Runtime } from "../runtime/runtime.js";
import type { NewRun, Store } from "../store/contract/store.js";
import { publishStatus } from "../telemetry/publish.js";
import { RunCommands } from "./command/run-commands.js";
import { type FindBy, findRuns, findSingleRun } from "./inspect/find-runs.js";
import { listRuns, type RunsFilter } from "./inspect/list-runs.js";
import { ResultWaiter } from "./inspect/result-waiter.js";
import type { RunInfo } from "./inspect/run-info.js";
import { type MetricsOptions, readMetrics, type WorkflowMetrics } from "./operate/metrics.js";
import { type PruneOptions, type PruneResult, prune } from "./operate/prune.js";
import { listQueues, pauseQueue, type QueueInfo, resumeQueue } from "./operate/queues.js";
import { type Verification, verify } from "./operate/verify.js";
import { healthOf, type WorkerHealth } from "./operate/workers.js";
import { type HandleServices, RunHandle } from "./run-handle.js";
import { type BuildOptions, createGraphRun } from "./start/build.js";
import { checkTransaction } from "./start/callers-transaction.js";
import { existingRunId } from "./start/duplicate-start.js";
import { type Adopter, Launcher, type LaunchResult } from "./start/launcher.js";
import { IdSource } from "./start/new-id.js";
import { newRunFactory, type StartableDefinition, type StartOptions, startOptions } from "./start/new-run.js";
import { newRunsInPages, runsPerPage } from "./start/new-run-pages.js";
import { Registrar } from "./start/registrar.js";
import type { Registration } from "./start/registration.js";
import { retryRun } from "./start/retry.js";
import {
  type HandleOf,
  type InputTo,
  inputAndOptions,
  type StartArgs,
  type StartArgsOf,
  type Startable,
  type StartableWithoutHero,
} from "./start/start-args.js";

/** A key or a hero is of one run. */
const startManyOptions = new Set(
  [...startOptions].filter((option) => option !== "idempotencyKey" && option !== "hero"),
);
const workflowOptions = new Set(["queue"]);

export class Client {
  /** @internal */
  protected readonly store: Store;
  /** @internal */
  protected readonly log: Logger;
  /** @internal */
  protected readonly runtime: Runtime;
  /** @internal */
  protected readonly ids: IdSource;
  readonly #launcher: Launcher;
  readonly #results: ResultWaiter;
  readonly #handles: HandleServices;
  readonly #registrar: Registrar;

  /** @internal */
  constructor(store: Store, log: Logger, runtime: Runtime) {
    this.store = store;
    this.log = log;
    this.runtime = runtime;
    this.ids = new IdSource(runtime);
    this.#registrar = new Registrar(store, log);
    this.#launcher = new Launcher(store, log, runtime);
    this.#results = new ResultWaiter(store, runtime);
    const commands = new RunCommands({ store, log, runtime });
    this.#handles = { runtime, store, log, results: this.#results, commands, retry: (id) => this.#retry(id) };
  }

  /** Starts a run. When this returns, the run survives whatever happens. */
  start<Started extends AnyWorkflow>(
    workflow: Started & Startable<Started>,
    ...inputAndOptions: StartArgsOf<Started>
  ): Promise<HandleOf<Started>>;
  async start(workflow: AnyWorkflow, ...startArgs: unknown[]): Promise<RunHandle<any, any>> {
    const definition = asDefinition(workflow);
    const [input, options] = inputAndOptions(definition, startArgs);
    if (options !== undefined) checkOptions(`start("${definition.name}")`, options, startOptions);
    await this.#registrar.registerFor(definition, options?.tx);
    const [handle] = await this.#startRuns(definition, [input], options);
    return handle as RunHandle<any, any>;
  }

  /** Starts many runs of one workflow, all in few commits. */
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
    return this.#startRuns(definition, inputs, options);
  }

  /** A workflow that is known by its name only. */
  workflow<Input = unknown, Output = unknown>(name: string) {
    checkName("workflow", name);
    return {
      name,
      /** Starts a run; WorkflowNotFoundError when this name was never registered. */
      trigger: async (...[input, options]: StartArgs<Input>): Promise<RunHandle<Input, Output>> => {
        if (options !== undefined) checkOptions(`trigger() of "${name}"`, options, startOptions);
        const registration = await this.#registrar.registration(name);
        if (registration === null) throw new WorkflowNotFoundError(name);
        // Its schema is where its code is: the worker checks, and fails the run.
        const registeredDefinition = { name, ...registration, inputSchema: null };
        const [handle] = await this.#startRuns<Input, Output>(registeredDefinition, [input as Input], options);
        return handle as RunHandle<Input, Output>;
      },
      run: (id: string): RunHandle<Input, Output> => this.#createHandle(id),
    };
  }

  /** Makes a workflow known by name, for triggers that run before any of its workers. Idempotent. */
  async createWorkflow(name: string, options: { readonly queue?: string } = {}): Promise<void> {
    checkName("workflow", name);
    checkOptions(`createWorkflow("${name}")`, options, workflowOptions);
    const queue = options.queue === undefined ? null : checkName("queue", options.queue);
    await this.store.registerWorkflows([{ name, queue, version: null, signature: null, graph: null }]);
  }

  /**
   * Builds a graph of jobs and starts it. The function runs once, here; what it built is frozen as data.
   *
   * ```ts
   * const run = await pawl.build("import", (g) => {
   *   const parts = g.fanOut(ids, { name: (id) => `part_${id}`, job: process, args: (id) => ({ id }) });
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
    return (await this.#launchRuns([run], options.tx))[0] as RunHandle<FrozenDag, void>;
  }

  /** A run's handle. Its existence is found out when it is used. */
  run<Input = unknown, Output = unknown>(id: string): RunHandle<Input, Output>;
  run<Input, Output>(definition: WorkflowDefinition<Input, Output>, id: string): RunHandle<Input, Output>;
  run<Class extends WorkflowClass>(workflow: Class, id: string): RunHandle<InputOf<Class>, OutputOf<Class>>;
  run(first: string | AnyWorkflow, second?: string): RunHandle<any, any> {
    return this.#createHandle(typeof first === "string" ? first : (second as string));
  }

  /**
   * The run that was started with this idempotency key, or the one about this hero: the one that is active, otherwise the
   * newest. null: there is none (any more).
   */
  find<Found extends AnyWorkflow>(workflow: Found, by: FindBy): Promise<HandleOf<Found> | null>;
  find(workflow: string, by: FindBy): Promise<RunHandle | null>;
  async find(workflow: AnyWorkflow | string, by: FindBy): Promise<RunHandle<any, any> | null> {
    const [run] = await findRuns(this.store, nameOf(workflow), by, 1);
    return run === undefined ? null : this.#createHandle(run.id);
  }

  /**
   * Sends a signal to the run that `find` would find.
   *
   * ```ts
   * await pawl.signal(order, { idempotencyKey: "order-42" }, "paid", { cents: 4200 }, { key: event.id });
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

  /** Runs, newest first, a page at a time. */
  runs(filter: RunsFilter = {}): Promise<{ readonly runs: RunInfo[]; readonly next: string | null }> {
    return listRuns(this.store, filter);
  }

  /** Workers that are there, and those that were. */
  async workers(): Promise<readonly WorkerHealth[]> {
    const [workers, now] = await Promise.all([this.store.workers(), this.store.now()]);
    return workers.map((worker) => healthOf(worker, now, this.runtime));
  }

  /** How a workflow is doing: success rate, durations, what waits, its workers. Of the last day, unless told otherwise. */
  metrics(workflow: AnyWorkflow | string, options: MetricsOptions = {}): Promise<WorkflowMetrics> {
    return readMetrics(this.store, nameOf(workflow), options, this.runtime);
  }

  /** All queues: what waits there, who works for them, which are paused. */
  queues(): Promise<QueueInfo[]> {
    return listQueues(this.store, this.runtime);
  }

  /** From now on workers begin nothing in this queue; what they execute goes on. Starts are accepted and wait. */
  pauseQueue(name: string, reason?: string): Promise<void> {
    return pauseQueue(this.store, name, reason);
  }

  /** Workers take runs from this queue again. */
  resumeQueue(name: string): Promise<void> {
    return resumeQueue(this.store, name);
  }

  /**
   * Deletes runs that ended longer ago than `olderThan`, with their logs, as whole trees: one whose child has not ended, or
   * ended later, stays. Their idempotency keys may be used again. `connect(url, { retention })` lets workers do this.
   */
  prune(options: PruneOptions): Promise<PruneResult> {
    return prune(this.store, options, this.runtime);
  }

  /** Folds every log (or one) and compares with the tables. */
  async verify(runId?: string): Promise<Verification> {
    if (runId !== undefined && !isUuid(runId)) throw new RunNotFoundError(runId);
    return verify(this.store, runId, this.runtime);
  }

  /** @internal A worker of this process: it takes what is started here, as long as it has room. */
  protected addAdopter(worker: Adopter): void {
    this.#launcher.adopters.add(worker);
  }

  /** @internal */
  protected closeClient(): void {
    this.#results.close();
  }

  /** @internal Makes definitions known to those who know only names. Once per process and definition. */
  register(definitions: readonly WorkflowDefinition[]): Promise<void> {
    return this.#registrar.register(definitions);
  }

  /** @internal */
  registration(name: string): Promise<Registration | null> {
    return this.#registrar.registration(name);
  }

  #createHandle(id: string): RunHandle<any, any> {
    if (typeof id !== "string" || !isUuid(id)) throw new RunNotFoundError(String(id));
    return new RunHandle(id, this.#handles);
  }

  async #startRuns<Input, Output>(
    definition: StartableDefinition & Pick<WorkflowDefinition, "inputSchema">,
    inputs: readonly Input[],
    options: StartOptions = {},
  ): Promise<RunHandle<Input, Output>[]> {
    const { name, inputSchema } = definition;
    const createRun = newRunFactory(definition, options, this.ids);
    const checkInput = (input: Input) =>
      inputSchema === null ? undefined : validate(inputSchema, input, `input of workflow "${name}"`);
    if (inputs.length <= runsPerPage) {
      if (inputSchema !== null) await Promise.all(inputs.map(checkInput));
      return this.#launchRuns(inputs.map(createRun), options.tx);
    }
    const handles: RunHandle<Input, Output>[] = [];
    const checkAndCreateRun = async (input: Input) => {
      await checkInput(input);
      return createRun(input);
    };
    for await (const page of newRunsInPages(
      inputs,
      inputSchema === null ? createRun : checkAndCreateRun,
      this.runtime,
    )) {
      for (const handle of await this.#launchRuns(page, options.tx)) handles.push(handle);
    }
    return handles;
  }

  async #launchRuns(runs: readonly NewRun[], tx: unknown): Promise<RunHandle<any, any>[]> {
    const launched = tx === undefined ? await this.#launcher.launch(runs) : await this.#launchInTransaction(tx, runs);
    return runs.map((run, index) => {
      const { refusal, warning } = launched[index] as LaunchResult;
      const id = refusal === null ? run.id : existingRunId(run, refusal);
      return new RunHandle(id, this.#handles, { warning, created: refusal === null });
    });
  }

  async #retry(id: string): Promise<RunHandle<any, any>> {
    const failed = await this.store.run(id);
    if (failed === null) throw new RunNotFoundError(id);
    const registration = await this.#registrar.registration(failed.workflow);
    const { run, isNew, refusal } = await retryRun(this.store, failed, registration?.hero);
    if (isNew && refusal === null) publishStatus(this.log, run, "pending", await this.store.now());
    const created = isNew && refusal === null;
    return new RunHandle(refusal === null ? run.id : existingRunId(run as NewRun, refusal), this.#handles, { created });
  }

  async #launchInTransaction(tx: unknown, runs: readonly NewRun[]): Promise<readonly LaunchResult[]> {
    checkTransaction(tx, "the run would be started");
    const { refused } = await this.store.startInTransaction(tx, runs);
    const refusals = runs.map((run) => refused.find(({ runId }) => runId === run.id) ?? null);
    const warning = await this.#launcher.warningWithTimeout(runs, refusals);
    return refusals.map((refusal) => ({ refusal, warning }));
  }
}
