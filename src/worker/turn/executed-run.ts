/** The run that a turn executes: its row, its definition, its state, and the worker that owns it. */

import type { PredecessorsOf } from "../../core/graph/predecessors.js";
import type { NewEvent } from "../../core/run/event.js";
import { dataOf } from "../../core/run/event.js";
import { fold } from "../../core/run/fold.js";
import { idempotencyRunIdOf } from "../../core/run/lineage.js";
import type { Pause, RunState } from "../../core/run/state.js";
import type { NewRun, NextTaskState } from "../../core/run/transition.js";
import type { Logger, ResumedBy } from "../../define/context.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { RunRecord } from "../../store/contract/store.js";
import { logPause, publishCommit } from "../../telemetry/publish.js";
import { boundLogger } from "../../telemetry/safe-logger.js";
import type { RunWriter } from "../commit/run-writer.js";
import { withBatchInput } from "./batch.js";
import { createParentLookup } from "./node-parents.js";
import type { RunPort } from "./ports.js";
import { StoredInput } from "./stored-input.js";
import type { TurnHost, TurnSnapshot } from "./turn-host.js";
import type { PhaseTracker } from "./turn-phase.js";

export abstract class ExecutedRun implements RunPort {
  readonly host: TurnHost;
  readonly definition: WorkflowDefinition;
  readonly snapshot: TurnSnapshot;
  readonly run: RunRecord;
  readonly state: RunState;
  readonly storedInput: StoredInput;
  readonly parentsOf: PredecessorsOf;
  /** The value of this process's monotonic clock when the turn was created. */
  readonly openedAt: number;
  abstract readonly phase: PhaseTracker;
  abstract readonly writer: RunWriter;
  readonly #pausedBefore: Pause | null;
  #log: Logger | null = null;

  /** @throws DamagedDataError when the log cannot be folded */
  constructor(host: TurnHost, definition: WorkflowDefinition, snapshot: TurnSnapshot) {
    this.host = host;
    this.definition = definition;
    this.snapshot = snapshot;
    this.run = withBatchInput(definition, snapshot.run);
    this.state = fold(snapshot.log);
    this.#pausedBefore = this.state.paused;
    this.storedInput = new StoredInput(this.run.input);
    this.parentsOf = createParentLookup(snapshot.run, this.state, this.storedInput, definition);
    this.openedAt = host.runtime.monotonic();
  }

  get runId(): string {
    return this.run.id;
  }

  get route(): string {
    return this.snapshot.route;
  }

  get deliveries(): number {
    return this.snapshot.deliveries;
  }

  get claimedAt(): number {
    return this.snapshot.claimedAt;
  }

  get log(): Logger {
    return (this.#log ??= boundLogger(this.host.log, { runId: this.runId, workflow: this.run.workflow }));
  }

  get virtualNow(): number | null {
    return this.host.virtualClock === null ? null : this.host.virtualClock();
  }

  storeNow(): number {
    return this.virtualNow ?? this.writer.storeNow();
  }

  /**
   * The onFailure step always uses the id of this run, because the earlier run that this run retries had its own
   * failure.
   */
  keyOwner(node: string): string {
    return node === this.phase.lastStep ? this.runId : idempotencyRunIdOf(this.state, this.runId, node);
  }

  resumedBy(node: string): ResumedBy | null {
    const signal = this.state.resumeSignals?.get(node);
    if (signal === undefined) return null;
    return { signal: signal.name, payload: dataOf(signal, "signal.received").payload };
  }

  outputOf(key: string): unknown {
    const op = this.state.ops.get(key);
    return op?.kind === "step" ? dataOf(op, "step.completed").output : undefined;
  }

  /** Publishes committed events. A pause that is new in this turn is also logged, because an operator has to end it. */
  publish(
    events: readonly NewEvent[],
    afterSeq: number,
    at: number,
    next: NextTaskState,
    newChildren: readonly NewRun[],
  ): void {
    publishCommit(this.log, this.run, { events, afterSeq, at, next, newChildren });
    this.host.tally.record(this.run.workflow, { events, afterSeq, at, next });
    const { paused } = this.state;
    if (next.kind === "park" && paused !== null && paused !== this.#pausedBefore)
      logPause(this.host.log, this.run, paused);
  }
}
