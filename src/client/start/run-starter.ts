/** Starts runs: of a definition, of a workflow that is known by its name only, and retries of failed runs. */

import { RunNotFoundError, WorkflowNotFoundError } from "../../core/errors/errors.js";
import type { GatherCall } from "../../core/gathering/plan-gathering.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import { validate } from "../../define/standard-schema.js";
import type { NewRun, RefusedStart } from "../../store/contract/store.js";
import { publishStatus } from "../../telemetry/publish.js";
import type { CommandOptions } from "../command/command-options.js";
import { type HandleServices, RunHandle } from "../run-handle.js";
import { checkTransaction } from "./callers-transaction.js";
import { existingRunId } from "./duplicate-start.js";
import { GatheredStarts, gatheringOf, type StartBatching } from "./gathered-starts.js";
import { KeyConflicts, type LatePolicy, type StartAgain } from "./key-conflict.js";
import type { Launcher, LaunchResult } from "./launcher.js";
import type { IdSource } from "./new-id.js";
import { newRunFactory, type StartableDefinition, type StartOptions, startedByField, withRunClass } from "./new-run.js";
import { newRunsInPages, runsPerPage } from "./new-run-pages.js";
import type { Registrar } from "./registrar.js";
import { retryRun } from "./retry.js";
import { OverdueStarts } from "./start-deadlines.js";

export class RunStarter {
  readonly #services: HandleServices;
  readonly #ids: IdSource;
  readonly #registrar: Registrar;
  readonly #launcher: Launcher;
  readonly #gatheredStarts: GatheredStarts;
  readonly #keyConflicts: KeyConflicts;
  /** Cancels the runs that have not begun in time. */
  readonly overdueStarts: OverdueStarts;

  /** @param services what the handles of the started runs need */
  constructor(services: HandleServices, ids: IdSource, registrar: Registrar, launcher: Launcher) {
    this.#services = services;
    this.#ids = ids;
    this.#registrar = registrar;
    this.#launcher = launcher;
    const { store, runtime, log } = services;
    this.#gatheredStarts = new GatheredStarts(store, runtime, (run, at) => publishStatus(log, run, "pending", at));
    this.overdueStarts = new OverdueStarts(services.store, services.commands);
    this.#keyConflicts = new KeyConflicts(services);
  }

  async startByName<Input, Output>(
    name: string,
    inputs: readonly Input[],
    options: StartOptions | undefined,
  ): Promise<RunHandle<Input, Output>[]> {
    const registration = await this.#registrar.registration(name);
    if (registration === null) throw new WorkflowNotFoundError(name);
    return this.startRuns({ name, ...registration, inputSchema: null }, inputs, options);
  }

  async startRuns<Input, Output>(
    definition: StartableDefinition & Pick<WorkflowDefinition, "inputSchema"> & { readonly batch: StartBatching },
    inputs: readonly Input[],
    options: StartOptions = {},
  ): Promise<RunHandle<Input, Output>[]> {
    const { name, inputSchema, batch } = definition;
    const toCall = gatheringOf(name, batch, options, inputs.length);
    const launch = (runs: readonly NewRun[]) =>
      toCall === null ? this.launchRuns(runs, options) : this.#gather(runs, toCall);
    const createPlainRun = newRunFactory(definition, options, this.#ids);
    const createRun = toCall === null ? withRunClass(createPlainRun, definition, options) : createPlainRun;
    const checkInput = (input: Input) =>
      inputSchema === null ? undefined : validate(inputSchema, input, `input of workflow "${name}"`);
    if (inputs.length <= runsPerPage) {
      if (inputSchema !== null) await Promise.all(inputs.map(checkInput));
      return launch(inputs.map(createRun));
    }
    const handles: RunHandle<Input, Output>[] = [];
    const checkAndCreateRun = async (input: Input) => {
      await checkInput(input);
      return createRun(input);
    };
    for await (const page of newRunsInPages(
      inputs,
      inputSchema === null ? createRun : checkAndCreateRun,
      this.#services.runtime,
    )) {
      for (const handle of await launch(page)) handles.push(handle);
    }
    return handles;
  }

  async launchRuns(
    runs: readonly NewRun[],
    { tx, onConflict }: Pick<StartOptions, "tx" | "onConflict">,
  ): Promise<RunHandle<any, any>[]> {
    const launchResults =
      tx === undefined ? await this.#launcher.launch(runs) : await this.#launchInTransaction(tx, runs);
    const handles = runs.map((run, index) => {
      const { refusal, warning } = launchResults[index] as LaunchResult;
      if (refusal !== null && isLatePolicy(onConflict)) return this.#resolveConflict(run, refusal, onConflict);
      const id =
        refusal === null ? run.id : existingRunId(run, refusal, isLatePolicy(onConflict) ? undefined : onConflict);
      const replaced = onConflict === "replace" ? { replaced: false } : {};
      return new RunHandle(id, this.#services, { warning, created: refusal === null, ...replaced });
    });
    return isLatePolicy(onConflict) ? Promise.all(handles) : (handles as RunHandle<any, any>[]);
  }

  /** Another run has the key or the hero of the new one, and the caller has said what to do then. */
  async #resolveConflict(run: NewRun, refusal: RefusedStart, policy: LatePolicy): Promise<RunHandle<any, any>> {
    let warning: string | null = null;
    const start: StartAgain = async (again, mayBeWritten) => {
      const [result] = mayBeWritten ? [await this.#launcher.relaunch(again)] : await this.#launcher.launch([again]);
      warning = result?.warning ?? null;
      return result?.refusal ?? null;
    };
    const { id, ...result } = await this.#keyConflicts.resolve(run, refusal, policy, start);
    return new RunHandle(id, this.#services, {
      warning,
      ...result,
      replaced: result.replaced ?? (policy === "replace" ? false : null),
    });
  }

  async #gather(runs: readonly NewRun[], toCall: (run: NewRun) => GatherCall): Promise<RunHandle<any, any>[]> {
    const starts = await this.#gatheredStarts.start(runs.map(toCall));
    const warning = runs.length === 0 ? null : await this.#launcher.warningFor(runs);
    return starts.map(({ id, ...start }) => new RunHandle(id, this.#services, { warning, ...start }));
  }

  async retry(id: string, options: Pick<CommandOptions, "by" | "reason">): Promise<RunHandle<any, any>> {
    const failedRun = await this.#services.store.run(id);
    if (failedRun === null) throw new RunNotFoundError(id);
    const registration = await this.#registrar.registration(failedRun.workflow);
    const { run, isNew, refusal } = await retryRun(
      this.#services.store,
      failedRun,
      startedByField(options),
      registration?.hero,
    );
    if (isNew && refusal === null) publishStatus(this.#services.log, run, "pending", await this.#services.store.now());
    const created = isNew && refusal === null;
    return new RunHandle(refusal === null ? run.id : existingRunId(run as NewRun, refusal), this.#services, {
      created,
    });
  }

  async #launchInTransaction(tx: unknown, runs: readonly NewRun[]): Promise<readonly LaunchResult[]> {
    checkTransaction(tx, "the run would be started");
    const { refused } = await this.#services.store.startInTransaction(tx, runs);
    const refusals = runs.map((run) => refused.find(({ runId }) => runId === run.id) ?? null);
    const warning = await this.#launcher.warningWithTimeout(runs, refusals);
    return refusals.map((refusal) => ({ refusal, warning }));
  }
}

const isLatePolicy = (policy: StartOptions["onConflict"]): policy is LatePolicy =>
  policy !== undefined && policy !== "attach" && policy !== "fail";
