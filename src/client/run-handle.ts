/** One run, from outside: look at it, wait for it, tell it something. */

import { encode } from "../core/encoding/encode.js";
import {
  DamagedDataError,
  InvalidInputError,
  RunCanceledError,
  RunFailedError,
  RunNotFoundError,
  TimeoutError,
} from "../core/errors/errors.js";
import type { FrozenDag } from "../core/graph/frozen-dag.js";
import { checkOptions } from "../core/naming/check-options.js";
import { type Duration, parseDuration } from "../core/naming/duration.js";
import { checkName, checkReason } from "../core/naming/names.js";
import { readParkingNote } from "../core/run/parking-note.js";
import type { Command } from "../core/run/stored-schema.js";
import { currentStep } from "../core/run/waiting.js";
import type { Logger, SignalArgs, SignalName, SignalOptions } from "../define/context.js";
import { maxTimerMs, type Runtime, type Timer } from "../runtime/runtime.js";
import type { RunRecord, RunStatus, Store } from "../store/contract/store.js";
import { type ResumeOptions, resumeCommand } from "./command/resume-command.js";
import type { RunCommands } from "./command/run-commands.js";
import { checkEventsReadable, decodeColumn, foldLog, rethrowAsRunDamage, toRunDamage } from "./inspect/damaged-data.js";
import { type ExecutionInfo, executionsOf } from "./inspect/executions.js";
import { type Explanation, explainDue, explainRun } from "./inspect/explain.js";
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

const parkedStepOf = (run: RunRecord) => readParkingNote(run.waiting).step ?? null;

const resultOptions = new Set(["timeout"]);
const signalOptions = new Set<string>(["key", "tx"] satisfies (keyof SignalOptions)[]);
const cancelOptions = new Set(["force"]);

export interface HandleServices {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly log: Logger;
  readonly results: ResultWaiter;
  readonly commands: RunCommands;
  /** Starts a run that goes on where this one failed. */
  retry(id: string): Promise<RunHandle<any, any>>;
}

export class RunHandle<Input = unknown, Output = unknown> {
  readonly id: string;
  /** From `start`: what its caller should know, such as that no live worker has its workflow. */
  readonly warning: string | null;
  /** From `start`: whether this call made the run; false: it existed, by its idempotency key. null: not from a start. */
  readonly created: boolean | null;
  readonly #services: HandleServices;
  readonly #store: Store;

  /** @internal */
  constructor(id: string, services: HandleServices, startResult: Partial<Pick<RunHandle, "warning" | "created">> = {}) {
    this.id = id;
    this.warning = startResult.warning ?? null;
    this.created = startResult.created ?? null;
    this.#services = services;
    this.#store = services.store;
  }

  async get(): Promise<RunInfo<Input, Output>> {
    const run = await this.#readRun();
    const position = await this.#currentStep(run);
    return { ...checkUndamaged(toRunInfo(run, position)), explanation: await this.#dueExplanation(run) };
  }

  async #dueExplanation(run: RunRecord): Promise<string | null> {
    if (run.status !== "pending" && run.status !== "waiting") return null;
    const [task] = await this.#store.tasks([run.id]);
    return task === undefined
      ? null
      : ((await explainDue(this.#store, run, task, this.#services.runtime))?.text ?? null);
  }

  /** Why the run is not moving: one plain answer. */
  async explain(): Promise<Explanation> {
    return rethrowAsRunDamage(this.id, async () =>
      explainRun(this.#store, await this.#readRun(), this.#services.runtime),
    );
  }

  /**
   * The row of a run in execution is as it was when it was taken up: only its log knows where it is now. Of a run that is
   * parked the row knows, unless the run is between two steps, which only one that is paused, or has not begun, can be.
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
      // A run that is paused because its log is damaged can still be looked at.
      if (error instanceof DamagedDataError && run.status !== "running") return null;
      throw error;
    }
  }

  async status(): Promise<RunStatus> {
    return (await this.#readRun()).status;
  }

  async #readRun(): Promise<RunRecord> {
    const run = await this.#store.run(this.id);
    if (run === null) throw new RunNotFoundError(this.id);
    return run;
  }

  /**
   * Waits for the run to end and returns its output. Throws RunFailedError or RunCanceledError when it ended otherwise,
   * TimeoutError when it has not ended in time (the run goes on).
   */
  async result(options: { readonly timeout?: Duration } = {}): Promise<Output> {
    checkOptions("result()", options, resultOptions);
    const timeoutMs = options.timeout === undefined ? null : parseDuration(options.timeout, "timeout of result()");
    const run = await this.#waitForEnd(timeoutMs);
    if (run.status === "completed") return decodeColumn(run, "output") as Output;
    const error = errorOf(run);
    if (run.status === "canceled") throw new RunCanceledError(this.id, error?.message);
    throw new RunFailedError(this.id, error ?? undefined);
  }

  #waitForEnd(timeoutMs: number | null): Promise<RunRecord> {
    const { runtime, results } = this.#services;
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined;
      const stopWaiting = results.wait(this.id, (run) => {
        runtime.clearTimeout(timer);
        if (!(run instanceof Error)) resolve(run);
        else reject(run.message === "unknown" ? new RunNotFoundError(this.id) : run);
      });
      if (timeoutMs === null || timeoutMs > maxTimerMs) return;
      timer = runtime.setTimeout(() => {
        stopWaiting();
        reject(
          new TimeoutError(
            `Run ${this.id} did not end within ${timeoutMs} ms. That changes nothing for it: ask again later, or explain() why.`,
          ),
        );
      }, timeoutMs);
    });
  }

  /**
   * Sends a signal, by its name or by what `signal<Payload>(name)` made, which knows the type of the payload. The same
   * `key` a second time is not delivered again, and is no mistake either when the run has ended meanwhile. With `tx`, your
   * own open transaction, it is sent if and when that commits.
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
    const command = { type: "signal", name, payload: encoded, key } as const;
    if (options.tx === undefined) return this.#send(command);
    await this.#services.commands.sendInTransaction(options.tx, this.id, command);
  }

  #send(command: Command): Promise<void> {
    return this.#services.commands.send(this.id, command).catch((error: unknown) => {
      throw toRunDamage(this.id, error);
    });
  }

  /** Begins nothing new; what runs finishes and is recorded. */
  async pause(reason?: string): Promise<void> {
    await this.#send({ type: "pause", reason: checkReason(reason) });
  }

  /**
   * Goes on. With `output`, the step that the run is stuck at counts as done with that result. `accept` and `renamed` say
   * how code that has changed belongs to the log of the run.
   */
  async resume(options: ResumeOptions = {}): Promise<void> {
    await this.#send(resumeCommand(options));
  }

  /** Of a paused run of a workflow class: goes on from this step, whatever was done before. */
  async resumeAt(step: string): Promise<void> {
    await this.#send({ type: "resumeAt", step: checkName("step", step) });
  }

  /** Passes over the step that the run is stuck at, or that waits for its next attempt. */
  async skip(): Promise<void> {
    await this.#send({ type: "skip" });
  }

  /**
   * Ends the run: what it has done is compensated first, and its children are canceled. With `force` it ends at once,
   * whatever its code says and without compensation, and its log says so: for a run that cannot end otherwise.
   */
  async cancel(reason?: string, options: { readonly force?: boolean } = {}): Promise<void> {
    checkOptions("cancel()", options, cancelOptions);
    const force = options.force === true ? { force: true as const } : {};
    await this.#send({ type: "cancel", reason: checkReason(reason), ...force });
  }

  /**
   * Of a run that has failed: starts a new one, linked to it, that goes on from where it failed. What was unfinished keeps
   * its idempotency key. Once per run: while the new one is open, it is returned again; after that, retry the new one.
   */
  retry(): Promise<RunHandle<Input, Output>> {
    return this.#services.retry(this.id);
  }

  /** The log, a page at a time. */
  async history(page: { readonly after?: number; readonly limit?: number } = {}): Promise<HistoryEvent[]> {
    return readHistory(this.#store, await this.#readRun(), page);
  }

  /** Every attempt at every step, in the order in which they began to be known. */
  async executions(): Promise<ExecutionInfo[]> {
    const run = await this.#readRun();
    const log = await readLog(this.#store, run);
    checkEventsReadable(this.id, log);
    return rethrowAsRunDamage(this.id, async () => {
      const dag = frozenGraphOf(run, log);
      const next = await readNextStep(this.#store, run, log);
      return executionsOf(this.id, log, next).map((one) => ({ ...one, step: nodeName(dag, one.node) }));
    });
  }

  /** When each execution began and ended, in that order, for drawing. */
  async timeline(): Promise<TimelineInterval[]> {
    return timelineOf(await this.executions());
  }

  /** The steps that a class or graph declares, and how far the run is with each. Of a function: those it has come to. */
  async nodes(): Promise<NodeInfo[]> {
    const run = await this.#readRun();
    const executions = await this.executions();
    return (await this.#readGraph(run)).nodes(executions);
  }

  /** The same as a picture, a flowchart for Mermaid: what has not begun is dashed. */
  async toMermaid(): Promise<string> {
    return nodesAsMermaid(await this.nodes());
  }

  async #readGraph(knownRun?: RunRecord) {
    const run = knownRun ?? (await this.#readRun());
    return rethrowAsRunDamage(this.id, () => readGraph(this.#store, run));
  }

  /** Begins a run that was built with `{ start: false }`. */
  async start(): Promise<void> {
    await this.#send({ type: "start" });
  }

  /**
   * Tries a node again, now. Refused if it has completed, or if anything that comes after it has: that was built upon
   * what it had.
   */
  async reattempt(node: string): Promise<void> {
    const graph = await this.#readGraph();
    const id = graph.idOf(checkName("node", node));
    try {
      await this.#send({ type: "reattempt", node: id, descendants: graph.descendantsOf(id) });
    } catch (error) {
      throw graph.withNodeNames(error);
    }
  }

  /** The graph that the run goes by, as JSON: to look at, or to edit and import. */
  async exportDag(): Promise<string> {
    return (await this.#readGraph()).exportJson();
  }

  /** From now on the paused run goes by this graph. What has completed must be in it as it was. */
  async importDag(json: string | FrozenDag): Promise<void> {
    const dag = await (await this.#readGraph()).checkImport(this.#store, json);
    await this.#send({ type: "import", dag });
  }

  /** The run as it was after this event: its state is rebuilt from the log. */
  async stateAt(seq: number): Promise<RunSnapshot> {
    if (!Number.isInteger(seq) || seq < 0)
      throw new InvalidInputError(`stateAt(seq) takes the number of an event, not ${seq}.`);
    const log = await readLog(this.#store, await this.#readRun());
    return rethrowAsRunDamage(this.id, () => snapshotAt(log, seq));
  }

  /** How far the run and its steps say they are. */
  async progress(): Promise<ProgressInfo[]> {
    const cursors = await this.#store.cursors(this.id);
    return rethrowAsRunDamage(this.id, () => progressOf(cursors));
  }
}
