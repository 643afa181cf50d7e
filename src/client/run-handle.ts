/** The handle of a run: reads it, waits for it and sends it commands. */

import { encode } from "../core/encoding/encode.js";
import {
  DamagedDataError,
  InvalidInputError,
  RunCanceledError,
  RunFailedError,
  RunNotFoundError,
} from "../core/errors/errors.js";
import type { FrozenDag } from "../core/graph/frozen-dag.js";
import { checkOptions } from "../core/naming/check-options.js";
import { type Duration, parseDuration } from "../core/naming/duration.js";
import { parseRunId } from "../core/naming/element-id.js";
import { checkName, checkReason } from "../core/naming/names.js";
import { readParkingNote } from "../core/run/parking-note.js";
import type { Command } from "../core/run/stored-schema.js";
import { currentStep } from "../core/run/waiting.js";
import type { Logger, SignalArgs, SignalName, SignalOptions } from "../define/context.js";
import type { Runtime } from "../runtime/runtime.js";
import type { RunRecord, RunStatus, Store } from "../store/contract/store.js";
import { auditField, type CommandOptions, commandOptionNames, expectedLastEvent } from "./command/command-options.js";
import { type ResumeOptions, resumeCommand } from "./command/resume-command.js";
import type { RunCommands } from "./command/run-commands.js";
import { checkEventsReadable, foldLog, rethrowAsRunDamage, toRunDamage } from "./inspect/damaged-data.js";
import { type ExecutionInfo, executionsOf } from "./inspect/executions.js";
import { explainDue, explainRun } from "./inspect/explain.js";
import type { Explanation } from "./inspect/explanation.js";
import { checkIsWhole, outputOfPosition, withGatheredInput } from "./inspect/gathered-input.js";
import { type HistoryEvent, readHistory } from "./inspect/history.js";
import { nodesAsMermaid } from "./inspect/mermaid.js";
import { readNextStep } from "./inspect/next-step.js";
import type { NodeInfo } from "./inspect/nodes.js";
import { type ProgressInfo, progressOf } from "./inspect/progress.js";
import type { ResultWaiter } from "./inspect/result-waiter.js";
import { frozenGraphOf, nodeName, readGraph } from "./inspect/run-graph.js";
import { checkUndamaged, errorOf, type RunInfo, toRunInfo } from "./inspect/run-info.js";
import { readLog } from "./inspect/run-log.js";
import { type RunSnapshot, snapshotAt } from "./inspect/snapshot.js";
import { type TimelineInterval, timelineOf } from "./inspect/timeline.js";
import { waitForEnd } from "./inspect/wait-for-end.js";

const parkedStepOf = (run: RunRecord) => readParkingNote(run.waiting).step ?? null;

const resultOptions = new Set(["timeout", "signal"]);
const signalOptions = new Set<string>(["key", "tx", "by", "reason"] satisfies (keyof SignalOptions)[]);
const commandOptions = new Set<string>(commandOptionNames);
const cancelOptions = new Set(["force", "by", "ifLastEvent"]);
const pauseOptions = new Set(["by", "ifLastEvent"]);
const retryOptions = new Set(["by", "reason"]);

export interface HandleServices {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly log: Logger;
  readonly results: ResultWaiter;
  readonly commands: RunCommands;
  /** Starts a run that continues where the run with this id failed. */
  retry(id: string, options: Pick<CommandOptions, "by" | "reason">): Promise<RunHandle<any, any>>;
}

type StartResult = Pick<RunHandle, "warning" | "created" | "merged" | "replaced" | "startsAfter">;

/**
 * The handle of one run. Its methods throw RunNotFoundError if the run does not exist, and commands throw
 * InvalidStateError if the run is not in a state for them.
 */
export class RunHandle<Input = unknown, Output = unknown> {
  /** The id of the run; for one start of a batch, that of the run followed by its position: "….3". */
  readonly id: string;
  /** The id of the run alone. */
  readonly runId: string;
  /** After `start`: a warning for the caller, such as that no live worker has the workflow; otherwise null. */
  readonly warning: string | null;
  /**
   * On a handle that `start` returned: whether the call created the run; false if a run with this idempotency key existed, or
   * if the start was merged. On other handles null.
   */
  readonly created: boolean | null;
  /** Whether the start was added to a run that had not begun, by `debounce` or by the `batch` of its workflow. */
  readonly merged: boolean;
  readonly #position: number | null;
  /** After `start` with `onConflict: "replace"`: whether it replaced what this run was started with; otherwise null. */
  readonly replaced: boolean | null;
  /** After `start` with `onConflict`: the open run for whose end this run waits; otherwise null. */
  readonly startsAfter: string | null;
  readonly #services: HandleServices;
  readonly #store: Store;

  /** @internal */
  constructor(id: string, services: HandleServices, startResult: Partial<StartResult> = {}) {
    this.id = id;
    const { runId, position } = parseRunId(id) ?? { runId: id, position: null };
    this.runId = runId;
    this.#position = position;
    this.merged = startResult.merged ?? false;
    this.warning = startResult.warning ?? null;
    this.created = startResult.created ?? null;
    this.replaced = startResult.replaced ?? null;
    this.startsAfter = startResult.startsAfter ?? null;
    this.#services = services;
    this.#store = services.store;
  }

  /** Reads the run: status, input, output, error, what it waits for. Throws DamagedDataError if its row cannot be read. */
  async get(): Promise<RunInfo<Input, Output>> {
    const run = await this.#readRun();
    const position = await this.#currentStep(run);
    const info = { ...checkUndamaged(toRunInfo(run, position)), explanation: await this.#dueExplanation(run) };
    return info.gathered === null ? info : withGatheredInput(this.#store, run, info, this.#position);
  }

  async #dueExplanation(run: RunRecord): Promise<string | null> {
    if (run.status !== "pending" && run.status !== "waiting") return null;
    const [task] = await this.#store.tasks([run.id]);
    return task === undefined
      ? null
      : ((await explainDue(this.#store, run, task, this.#services.runtime))?.text ?? null);
  }

  /**
   * Explains why the run is not moving, in one or two sentences.
   *
   * @example
   * ```ts
   * console.log((await run.explain()).text); // It waits for the signal "approved", since …
   * ```
   */
  async explain(): Promise<Explanation> {
    return rethrowAsRunDamage(this.runId, async () =>
      explainRun(this.#store, await this.#readRun(), this.#services.runtime),
    );
  }

  /**
   * Finds the current step in the log, for runs whose row does not contain it: a run that a worker executes, because its row
   * is written when it is parked, and a pending or paused run that is between two steps. Otherwise returns null.
   */
  async #currentStep(run: RunRecord) {
    if (run.status === "running") {
      const [first] = await this.#store.log(run.id, { after: 0, limit: 1 });
      if (first !== undefined && foldLog(run.id, [first]).stepStructure === null) return null;
    } else if ((run.status !== "pending" && run.status !== "paused") || parkedStepOf(run) !== null) return null;
    try {
      const log = await readLog(this.#store, run);
      return currentStep(foldLog(run.id, log)) ?? (await readNextStep(this.#store, run, log));
    } catch (error) {
      // A run that is paused because its log is damaged must stay readable.
      if (error instanceof DamagedDataError && run.status !== "running") return null;
      throw error;
    }
  }

  /** Reads the status of the run. */
  async status(): Promise<RunStatus> {
    return (await this.#readRun()).status;
  }

  async #readRun(): Promise<RunRecord> {
    const run = await this.#store.run(this.runId);
    if (run === null) throw new RunNotFoundError(this.runId);
    return run;
  }

  /**
   * Waits for the run to end and returns its output. Throws RunFailedError (its `cause` is the error of the run),
   * RunCanceledError, or TimeoutError, which does not affect the run.
   *
   * @example
   * ```ts
   * const output = await run.result({ timeout: "5 minutes" });
   * ```
   */
  async result(
    options: {
      /** How long to wait. Default: without limit. */
      readonly timeout?: Duration;
      /** Stops waiting when this signal fires; the call then throws the reason of the signal. */
      readonly signal?: AbortSignal;
    } = {},
  ): Promise<Output> {
    checkOptions("result()", options, resultOptions);
    const timeoutMs = options.timeout === undefined ? null : parseDuration(options.timeout, "timeout of result()");
    const run = await waitForEnd(this.#services, this.runId, { timeoutMs, signal: options.signal });
    if (run.status === "completed") return outputOfPosition(run, this.#position) as Output;
    const error = errorOf(run);
    if (run.status === "canceled")
      throw new RunCanceledError(this.runId, error?.message, (error as { readonly code?: unknown } | null)?.code);
    throw new RunFailedError(this.runId, error ?? undefined);
  }

  /**
   * Sends a signal, by its name or by its handle, with which the compiler checks the payload. The run stores the signal until
   * its code waits for it. Throws InvalidStateError if the run has ended, unless it received a signal with this `key` before.
   *
   * @example
   * ```ts
   * await run.signal("approved", { by: "finance" }, { key: "webhook-9" });
   * ```
   */
  async signal<Payload = unknown>(
    signal: SignalName<Payload>,
    ...payloadAndOptions: SignalArgs<Payload>
  ): Promise<void> {
    const [payload, options = {}] = payloadAndOptions;
    checkOptions("signal()", options, signalOptions);
    const name = checkName("signal", typeof signal === "object" && signal !== null ? signal.signal : signal);
    const key = options.key === undefined ? null : checkName("signal key", options.key);
    const encoded = encode(payload, { label: `the payload of signal "${name}"` });
    const command = { type: "signal", name, payload: encoded, key, ...auditField(options) } as const;
    if (options.tx === undefined) return this.#send(command);
    checkIsWhole(this);
    await this.#services.commands.sendInTransaction(options.tx, this.runId, command);
  }

  async #send(command: Command, options: CommandOptions = {}): Promise<void> {
    checkIsWhole(this);
    return this.#services.commands.send(this.runId, command, expectedLastEvent(options)).catch((error: unknown) => {
      throw toRunDamage(this.runId, error);
    });
  }

  /** Sends a command that takes no options of its own. */
  async #sendAudited(method: string, command: Command, options: CommandOptions): Promise<void> {
    checkOptions(`${method}()`, options, commandOptions);
    await this.#send({ ...command, ...auditField(options) }, options);
  }

  /**
   * Pauses the run: steps that are executing finish and are recorded, and no further step starts.
   *
   * @example
   * ```ts
   * await run.pause("The supplier is down.", { by: "ada" });
   * ```
   */
  async pause(reason?: string, options: Omit<CommandOptions, "reason"> = {}): Promise<void> {
    checkOptions("pause()", options, pauseOptions);
    await this.#send({ type: "pause", reason: checkReason(reason), ...auditField(options) }, options);
  }

  /**
   * Resumes a paused run: a step that failed runs again, and a step that was scheduled for later keeps its time.
   *
   * @example
   * ```ts
   * await run.resume({ output: { receipt: "by hand" } }); // the step that the run is paused at counts as completed
   * ```
   */
  async resume(options: ResumeOptions = {}): Promise<void> {
    await this.#send(resumeCommand(options), options);
  }

  /**
   * Resumes a paused run of a class at this step, at once and without its `wait`; the steps after it run again. Only for
   * classes whose steps are a chain.
   */
  async resumeAt(step: string, options: CommandOptions = {}): Promise<void> {
    await this.#sendAudited("resumeAt", { type: "resumeAt", step: checkName("step", step) }, options);
  }

  /** Skips the step that the run is paused at, or that waits for its time or its next attempt. */
  async skip(options: CommandOptions = {}): Promise<void> {
    await this.#sendAudited("skip", { type: "skip" }, options);
  }

  /** Cancels the run and its children; completed steps are compensated first. Canceling a canceled run changes nothing. */
  async cancel(
    reason?: string,
    options: Omit<CommandOptions, "reason"> & {
      /** Ends the run at once and without compensation, for a run that cannot end otherwise. Default false. */
      readonly force?: boolean;
    } = {},
  ): Promise<void> {
    checkOptions("cancel()", options, cancelOptions);
    const force = options.force === true ? { force: true as const } : {};
    await this.#send({ type: "cancel", reason: checkReason(reason), ...force, ...auditField(options) }, options);
  }

  /**
   * Retries a failed run: starts a new, linked run that continues from the failed step with the recorded results. Steps that
   * did not complete keep their idempotency keys. A run has one retry: while the retry is open, this call returns it again.
   */
  async retry(options: Pick<CommandOptions, "by" | "reason"> = {}): Promise<RunHandle<Input, Output>> {
    checkOptions("retry()", options, retryOptions);
    checkIsWhole(this);
    return this.#services.retry(this.runId, options);
  }

  /** Reads the log of the run, a page of events at a time. */
  async history(
    page: {
      /** Starts after the event with this number. Default 0: from the first event. */
      readonly after?: number;
      /** How many events to read, 1 to 1,000. Default 1,000. */
      readonly limit?: number;
    } = {},
  ): Promise<HistoryEvent[]> {
    return readHistory(this.#store, await this.#readRun(), page);
  }

  /** Lists every attempt at every step in the order of the log, and after them the attempts that are scheduled. */
  async executions(): Promise<ExecutionInfo[]> {
    const run = await this.#readRun();
    const log = await readLog(this.#store, run);
    checkEventsReadable(this.runId, log);
    return rethrowAsRunDamage(this.runId, async () => {
      const dag = frozenGraphOf(run, log);
      const next = await readNextStep(this.#store, run, log);
      return executionsOf(this.runId, log, next).map((execution) => ({
        ...execution,
        step: nodeName(dag, execution.node),
      }));
    });
  }

  /** Lists when each execution started and ended, by start time, for drawing. */
  async timeline(): Promise<TimelineInterval[]> {
    return timelineOf(await this.executions());
  }

  /** Lists the steps that a class or graph declares, with their states. For a function: the steps that have run so far. */
  async nodes(): Promise<NodeInfo[]> {
    const run = await this.#readRun();
    const executions = await this.executions();
    return (await this.#readGraph(run)).nodes(executions);
  }

  /** Draws `nodes()` as a Mermaid flowchart; steps that have not started are dashed. */
  async toMermaid(): Promise<string> {
    return nodesAsMermaid(await this.nodes());
  }

  async #readGraph(knownRun?: RunRecord) {
    const run = knownRun ?? (await this.#readRun());
    return rethrowAsRunDamage(this.runId, () => readGraph(this.#store, run));
  }

  /** Starts a run that was built with `{ start: false }`. */
  async start(options: CommandOptions = {}): Promise<void> {
    await this.#sendAudited("start", { type: "start" }, options);
  }

  /**
   * Tries a node of a class with tasks, or of a built graph, again at once. Throws InvalidStateError if the node, or a node
   * that depends on it, has completed.
   */
  async reattempt(node: string, options: CommandOptions = {}): Promise<void> {
    checkOptions("reattempt()", options, commandOptions);
    const graph = await this.#readGraph();
    const id = graph.idOf(checkName("node", node));
    try {
      const descendants = graph.descendantsOf(id);
      await this.#sendAudited("reattempt", { type: "reattempt", node: id, descendants }, options);
    } catch (error) {
      throw graph.withNodeNames(error);
    }
  }

  /** Returns the graph of the run as JSON, to inspect it, or to edit and import it. Throws InvalidStateError for a function. */
  async exportDag(): Promise<string> {
    return (await this.#readGraph()).exportJson();
  }

  /** Replaces the graph of a paused run. Throws a GraphError if a completed or started node was removed or rewired. */
  async importDag(json: string | FrozenDag, options: CommandOptions = {}): Promise<void> {
    checkOptions("importDag()", options, commandOptions);
    const dag = await (await this.#readGraph()).checkImport(this.#store, json);
    await this.#sendAudited("importDag", { type: "import", dag }, options);
  }

  /** Returns the run as it was after the event with this number, rebuilt from the log. */
  async stateAt(seq: number): Promise<RunSnapshot> {
    if (!Number.isInteger(seq) || seq < 0)
      throw new InvalidInputError(`stateAt(seq) takes the number of an event, not ${seq}.`);
    const log = await readLog(this.#store, await this.#readRun());
    return rethrowAsRunDamage(this.runId, () => snapshotAt(log, seq));
  }

  /** Reads the progress that the run and its steps reported with `progress(done, total, message)`. */
  async progress(): Promise<ProgressInfo[]> {
    const cursors = await this.#store.cursors(this.runId);
    return rethrowAsRunDamage(this.runId, () => progressOf(cursors));
  }
}
