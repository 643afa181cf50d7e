/**
 * A turn: one worker has one run, from the claim until the run is parked or finished.
 *
 * Read (or know) the log, fold it, decide about messages and time, run the user's code for as long as it gets anywhere,
 * commit what it did, and let go. User code sees nothing that is not committed, and nothing is held while a run waits:
 * a run that sleeps for a month is one row.
 *
 * This is the composition of the parts of a turn. They know each other only by the ports that they use (ports.ts).
 */

import type { Failure } from "../../core/encoding/error-record.js";
import { ExecutionAbortedError } from "../../core/errors/errors.js";
import { frozenVersion, graphRoute } from "../../core/naming/route.js";
import type { NewEvent } from "../../core/run/event.js";
import type { FlowSignal } from "../../core/run/flow-control.js";
import type { Station } from "../../core/run/park.js";

import { writeProgress } from "../../core/run/progress.js";

import { keep } from "../../core/run/transition.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { Transition } from "../../store/contract/store.js";
import type { PendingWrites } from "../commit/pending-writes.js";
import { type Parting, RunWriter, type RunWriterOwner } from "../commit/run-writer.js";
import { settleCall } from "../replay/resolve-call.js";
import { type Deferred, ResultDelivery, type ResultOwner } from "../replay/result-delivery.js";
import type { Attempt, Body, Compensator } from "../step/attempt.js";
import { callBody, inFrame } from "../step/call-body.js";
import { FlowControlTracker } from "../step/flow-control-tracker.js";
import { RunningAttempts } from "../step/running-attempts.js";
import { SlotQueue } from "../step/slot-queue.js";
import { afterWrite } from "./after-write.js";
import { beginTurn } from "./begin.js";
import { Cancellation } from "./cancellation.js";
import { ExecutedRun } from "./executed-run.js";
import { Handler } from "./handler.js";
import { obey } from "./handler-end.js";
import type { Opening, TurnAtHost, TurnHost } from "./host.js";
import { advanceWhenIdle } from "./idle.js";
import { InboxProcessor } from "./inbox-processor.js";
import { overdue } from "./overdue.js";
import { parkRun } from "./park.js";
import { ParkDelay } from "./park-delay.js";
import { pauseDiverged, pauseMismatched, pauseWithError } from "./pause-with-error.js";
import { Phase } from "./phase.js";
import type { WholeTurn } from "./ports.js";
import { pauseIfItFails } from "./user-code.js";

export class Turn extends ExecutedRun implements WholeTurn, TurnAtHost, RunWriterOwner, ResultOwner {
  readonly phase: Phase;
  readonly writer: RunWriter;
  readonly results: ResultDelivery;
  readonly attempts: RunningAttempts;
  readonly slots = new SlotQueue();
  readonly flowControl = new FlowControlTracker();
  readonly parkDelay = new ParkDelay(this);
  readonly inboxProcessor = new InboxProcessor(this);
  readonly handler = new Handler(this);
  compensators: Map<string, Compensator> | null = null;
  withdrawing: Set<string> | null = null;
  takingMessages: Promise<void> | null = null;
  station: Station | null = null;
  recordsStart = false;
  #cancellation: Cancellation | null = null;
  #isIdleCheckScheduled = false;
  #unended: ((unwritten: Transition) => void) | null = null;

  constructor(host: TurnHost, definition: WorkflowDefinition, opening: Opening) {
    super(host, definition, opening);
    const { run, at } = opening;
    // Before its nodes: all of them may be waiting for what it does next.
    if (run.version === frozenVersion) this.station = { route: graphRoute, priority: run.priority + 1 };
    this.phase = new Phase(this, this.state);
    this.attempts = new RunningAttempts(this);
    this.writer = new RunWriter(this, host.committer, at);
    this.results = new ResultDelivery(this, run.createdAt);
  }

  begin(): void {
    beginTurn(this, this.opening);
  }

  /** The worker stops: what runs may finish, then the next owner goes on. */
  stop(): void {
    this.phase.stopping = true;
    this.scheduleIdleCheck();
  }

  /** The worker lost its lease: another worker has the run. */
  abandon(): void {
    if (this.over) return;
    this.writer.close();
    this.onParted({ how: "lost" });
  }

  /** A message arrived, or time has passed: look. */
  poke(): Promise<void> {
    return this.inboxProcessor.poke();
  }

  /** Its code has been called, runs no step, and has asked for nothing that it still waits for. */
  get isSilent(): boolean {
    return this.phase.hasCalledCode && !this.over && !this.attempts.any && this.results.pending.size === 0;
  }

  // ── Writing, and what became of what was written ───────────────────────────────────────────────────────────────────

  get over(): boolean {
    return this.writer.closed;
  }

  get pendingWrites(): PendingWrites {
    return this.writer.pendingWrites;
  }

  submit(events: readonly NewEvent[]): Promise<boolean> {
    return this.writer.submit(events);
  }

  post(events: readonly NewEvent[], done: (written: boolean) => void): void {
    this.writer.post(events, keep, done);
  }

  onWritten(events: readonly NewEvent[], at: number): void {
    afterWrite(this, events, at);
  }

  /** An acknowledged pause or cancel acts at the next boundary: before the code gets what it is waiting for. */
  onMailed(): void {
    if (this.takingMessages !== null) return;
    this.results.holdBack();
    this.takingMessages = this.inboxProcessor.lookNow().then(() => {
      this.takingMessages = null;
      this.results.goOn();
    });
  }

  /** The end of the run was refused because messages wait: `finish.ts` has said what to do then. */
  onUnread(unwritten: Transition): void {
    this.#unended?.(unwritten);
  }

  onUnended(callback: (unwritten: Transition) => void): void {
    this.#unended = callback;
  }

  onParted(parting: Parting): void {
    this.phase.on({ type: "turn ended" });
    this.results.close();
    this.handler.close();
    this.inboxProcessor.stop();
    this.slots.leaveAll();
    this.parkDelay.stop();
    this.attempts.leave();
    this.#cancellation?.stop();
    // An error with its stack costs more than a quick step: only if there is code that may hear it.
    if (this.#cancellation !== null || this.attempts.any)
      this.abort(new ExecutionAbortedError(`Run ${this.runId} is not executed here any more (${parting.how}).`));
    this.attempts.clear();
    this.host.parted(this, parting);
  }

  // ── Calls of user code, and the bodies of steps ────────────────────────────────────────────────────────────────────

  settleCall(key: string, call: Deferred): void | Promise<void> {
    return settleCall(this, key, call);
  }

  onAnswersIdle(): void {
    if (this.results.pending.size > 0) this.scheduleIdleCheck();
  }

  inFrame<Result>(key: string, call: () => Result): Result {
    return inFrame(this, key, call);
  }

  callBody(execution: Attempt, body: Body): unknown {
    return callBody(this, execution, body);
  }

  progress(node: string, done: number, total?: number, message?: string): void {
    if (this.over) return;
    this.pendingWrites.cursor({
      node,
      progress: writeProgress({ done, total: total ?? null, message: message ?? null }),
    });
    this.scheduleIdleCheck();
  }

  obeyFromStep(signal: FlowSignal, ended: readonly NewEvent[]): void {
    pauseIfItFails(this, () => obey(this, signal, ended));
  }

  // ── Pausing, canceling and letting go ──────────────────────────────────────────────────────────────────────────────

  get halted(): boolean {
    return this.phase.halted;
  }

  /** Something durable is open, or something is in the pending writes: see to it once the code has come to rest. */
  scheduleIdleCheck(): void {
    if (this.#isIdleCheckScheduled || this.over) return;
    this.#isIdleCheckScheduled = true;
    this.host.runtime.setImmediate(() => {
      this.#isIdleCheckScheduled = false;
      pauseIfItFails(this, () => advanceWhenIdle(this));
    });
  }

  pauseWithError(reason: string, error: Failure | null, node?: string): void {
    pauseWithError(this, reason, error, node);
  }

  diverge(steps: readonly string[], problem: string): void {
    pauseDiverged(this, steps, problem);
  }

  doesNotFit(held: readonly string[], leftOver: readonly string[], thrown?: unknown): void {
    pauseMismatched(this, held, leftOver, thrown);
  }

  overdue(events: readonly NewEvent[], error: Failure): Promise<void> | void {
    return overdue(this, events, error);
  }

  get abortSignal(): AbortSignal {
    return (this.#cancellation ??= new Cancellation(this)).abortSignal;
  }

  abort(reason: unknown): void {
    this.#cancellation?.abort(reason);
    this.attempts.abort(reason);
  }

  halt(): void {
    this.scheduleIdleCheck();
    if (this.state.cancel !== null) (this.#cancellation ??= new Cancellation(this)).begin(this.state.cancel);
  }

  park(last?: NewEvent): Promise<void> {
    return parkRun(this, last);
  }
}
