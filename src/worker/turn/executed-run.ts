/** The run that a turn is about: its row, its definition, its state, and the worker that has it. */

import type { ParentsOf } from "../../core/graph/predecessors.js";
import type { NewEvent } from "../../core/run/event.js";
import { dataOf } from "../../core/run/event.js";
import { fold } from "../../core/run/fold.js";
import { keyOwner } from "../../core/run/lineage.js";
import type { Pause, RunState } from "../../core/run/state.js";
import type { NewRun, Next } from "../../core/run/transition.js";
import type { Logger, ResumedBy } from "../../define/context.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { RunRecord } from "../../store/contract/store.js";
import { boundLogger } from "../../telemetry/safe-logger.js";
import { tellOfCommit, tellOfPause } from "../../telemetry/tell.js";
import type { RunWriter } from "../commit/run-writer.js";
import type { Opening, TurnHost } from "./host.js";
import type { Phase } from "./phase.js";
import type { RunAtHand } from "./ports.js";
import { parentsIn } from "./predecessors.js";
import { StoredInput } from "./stored-input.js";

export abstract class ExecutedRun implements RunAtHand {
  readonly host: TurnHost;
  readonly definition: WorkflowDefinition;
  readonly opening: Opening;
  readonly run: RunRecord;
  readonly state: RunState;
  readonly storedInput: StoredInput;
  readonly parentsOf: ParentsOf;
  /** Our own monotonic clock when the turn was made. */
  readonly openedAt: number;
  abstract readonly phase: Phase;
  abstract readonly writer: RunWriter;
  readonly #pausedBefore: Pause | null;
  #log: Logger | null = null;

  /** @throws DamagedDataError when its log cannot be folded */
  constructor(host: TurnHost, definition: WorkflowDefinition, opening: Opening) {
    this.host = host;
    this.definition = definition;
    this.opening = opening;
    this.run = opening.run;
    this.state = fold(opening.log);
    this.#pausedBefore = this.state.paused;
    this.storedInput = new StoredInput(opening.run.input);
    this.parentsOf = parentsIn(opening.run, this.state, this.storedInput, definition);
    this.openedAt = host.runtime.monotonic();
  }

  get runId(): string {
    return this.run.id;
  }

  get deliveries(): number {
    return this.opening.deliveries;
  }

  get takenAt(): number {
    return this.opening.at;
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

  /** What is done because the run failed is its own: another run failed for another reason. */
  keyOwner(node: string): string {
    return node === this.phase.lastStep ? this.runId : keyOwner(this.state, this.runId, node);
  }

  resumedBy(node: string): ResumedBy | null {
    const signal = this.state.resumedBy?.get(node);
    if (signal === undefined) return null;
    return { signal: signal.name, payload: dataOf(signal, "signal.received").payload };
  }

  outputOf(key: string): unknown {
    const op = this.state.ops.get(key);
    return op?.kind === "step" ? dataOf(op, "step.completed").output : undefined;
  }

  /** Tells of what has become durable. A paused run waits for a person: it must not do so in silence. One that was paused before is no news. */
  publish(events: readonly NewEvent[], after: number, at: number, next: Next, starts: readonly NewRun[]): void {
    tellOfCommit(this.log, this.run, { events, after, at, next, starts, state: this.state });
    const { paused } = this.state;
    if (next.kind === "park" && paused !== null && paused !== this.#pausedBefore)
      tellOfPause(this.host.log, this.run, paused);
  }
}
