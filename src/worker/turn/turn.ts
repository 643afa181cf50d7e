/**
 * A turn: one worker owns one run, from the claim until the run is parked or finished.
 *
 * A turn folds the log, processes messages and due times, runs the user's code as long as it makes progress, commits
 * its results, and parks the run. User code sees only committed results, and a waiting run uses no memory: a run that
 * sleeps for a month is one row.
 *
 * `Turn` composes the parts of a turn. They use each other only through ports (ports.ts).
 */

import type { Failure } from "../../core/encoding/error-record.js";
import { ExecutionAbortedError } from "../../core/errors/errors.js";
import { frozenDagVersion, graphRoute } from "../../core/naming/route.js";
import type { NewEvent } from "../../core/run/event.js";
import type { FlowControlInterrupt } from "../../core/run/flow-control.js";
import type { TaskRouting } from "../../core/run/park.js";
import { writeProgress } from "../../core/run/progress.js";
import { keepOwner } from "../../core/run/transition.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { Transition } from "../../store/contract/store.js";
import type { PendingWrites } from "../commit/pending-writes.js";
import { RunWriter, type RunWriterOwner, type TurnEnd } from "../commit/run-writer.js";
import { resolveCall } from "../replay/resolve-call.js";
import { type Deferred, ResultDelivery, type ResultOwner } from "../replay/result-delivery.js";
import type { Attempt, Body, Compensator } from "../step/attempt.js";
import { callBody, callInFrame } from "../step/call-body.js";
import { FlowControlTracker } from "../step/flow-control-tracker.js";
import { RunningAttempts } from "../step/running-attempts.js";
import { SlotQueue } from "../step/slot-queue.js";
import { afterWrite } from "./after-write.js";
import { Cancellation } from "./cancellation.js";
import { ExecutedRun } from "./executed-run.js";
import { Handler } from "./handler.js";
import { applyFlowControl } from "./handler-end.js";
import { advanceWhenIdle } from "./idle.js";
import { InboxProcessor } from "./inbox-processor.js";
import { parkRun } from "./park.js";
import { ParkDelay } from "./park-delay.js";
import { pauseDiverged, pauseMismatched, pauseWithError } from "./pause-with-error.js";
import type { WholeTurn } from "./ports.js";
import { handleRunTimeout } from "./run-timeout.js";
import { SlotPark } from "./slot-park.js";
import type { HostedTurn, TurnHost, TurnSnapshot } from "./turn-host.js";
import { PhaseTracker } from "./turn-phase.js";
import { startTurn } from "./turn-start.js";
import { pauseRunOnError } from "./user-code.js";

export class Turn extends ExecutedRun implements WholeTurn, HostedTurn, RunWriterOwner, ResultOwner {
  readonly phase: PhaseTracker;
  readonly writer: RunWriter;
  readonly results: ResultDelivery;
  readonly attempts: RunningAttempts;
  readonly slots = new SlotQueue();
  readonly flowControl = new FlowControlTracker();
  readonly parkDelay = new ParkDelay(this);
  readonly slotPark: SlotPark = new SlotPark(this);
  readonly inboxProcessor: InboxProcessor = new InboxProcessor(this);
  readonly handler: Handler = new Handler(this);
  compensators: Map<string, Compensator> | null = null;
  withdrawnKeys: Set<string> | null = null;
  inboxCheck: Promise<void> | null = null;
  placement: TaskRouting | null = null;
  willRecordStart = false;
  #cancellation: Cancellation | null = null;
  #isIdleCheckScheduled = false;
  #endRefusedHandler: ((unwritten: Transition) => void) | null = null;

  constructor(host: TurnHost, definition: WorkflowDefinition, snapshot: TurnSnapshot) {
    super(host, definition, snapshot);
    const { run, claimedAt } = snapshot;
    // The run of a graph has a higher priority than its nodes, because all of them may be waiting for its next decision.
    if (run.version === frozenDagVersion) this.placement = { route: graphRoute, priority: run.priority + 1 };
    this.phase = new PhaseTracker(this, this.state);
    this.attempts = new RunningAttempts(this);
    this.writer = new RunWriter(this, host.committer, claimedAt);
    this.results = new ResultDelivery(this, run.createdAt);
  }

  start(): void {
    startTurn(this, this.snapshot);
  }

  /** Called when the worker stops: running steps may finish, then the run is released and its next owner resumes it. */
  stop(): void {
    this.phase.isStopping = true;
    this.scheduleIdleCheck();
  }

  /** Called when the worker has lost its lease, so that another worker may own the run: nothing more is written. */
  abandon(): void {
    if (this.isOver) return;
    this.writer.close();
    this.onTurnEnd({ how: "lost" });
  }

  /** For tests: parks the run if its steps have waited for long enough by the clock of the test. Returns when that is next due. */
  parkIfWaitedLong(): number | null {
    this.slotPark.check();
    return this.slotPark.dueAt;
  }

  get isLeavingSlots(): boolean {
    return this.slotPark.isLeaving;
  }

  /** Whether nothing is under way but steps that wait for slots. */
  get isWaitingForSlots(): boolean {
    const { slots, attempts, inboxProcessor, writer } = this;
    const isBusy =
      attempts.isBusy || inboxProcessor.isBusy || writer.hasUnacknowledgedWrites || this.slotPark.isLeaving;
    return slots.waitingCount > 0 && !isBusy;
  }

  checkInbox(): Promise<void> {
    return this.inboxProcessor.check();
  }

  /** Whether the code has been called, but runs no step and awaits no durable call. */
  get isStalled(): boolean {
    return this.phase.hasCalledCode && !this.isOver && !this.attempts.hasRunning && this.results.pending.size === 0;
  }

  // ── Writing, and reacting to receipts ──────────────────────────────────────────────────────────────────────────────

  get isOver(): boolean {
    return this.writer.isClosed;
  }

  get pendingWrites(): PendingWrites {
    return this.writer.pendingWrites;
  }

  submit(events: readonly NewEvent[]): Promise<boolean> {
    return this.writer.submit(events);
  }

  post(events: readonly NewEvent[], done: (written: boolean) => void): void {
    this.writer.post(events, keepOwner, done);
  }

  onWritten(events: readonly NewEvent[], at: number): void {
    afterWrite(this, events, at);
  }

  /** The inbox is processed before more results are delivered, so that an accepted pause or cancel takes effect first. */
  onMessagesWaiting(): void {
    if (this.inboxCheck !== null) return;
    this.results.pauseDelivery();
    this.inboxCheck = this.inboxProcessor.checkNow().then(() => {
      this.inboxCheck = null;
      this.results.resumeDelivery();
    });
  }

  /** Called when the store refused to end the run because messages wait; calls the handler that `run-end.ts` has set. */
  onEndRefused(unwritten: Transition): void {
    this.#endRefusedHandler?.(unwritten);
  }

  setEndRefusedHandler(callback: (unwritten: Transition) => void): void {
    this.#endRefusedHandler = callback;
  }

  onTurnEnd(turnEnd: TurnEnd): void {
    this.phase.on({ type: "turn ended" });
    this.results.close();
    this.handler.close();
    this.inboxProcessor.stop();
    this.slots.close();
    this.slotPark.stop();
    this.parkDelay.stop();
    this.attempts.disposeAll();
    this.#cancellation?.stop();
    // Creating an error with a stack costs more than a quick step, so the error is created only if code may observe it.
    if (this.#cancellation !== null || this.attempts.hasRunning)
      this.abort(new ExecutionAbortedError(`Run ${this.runId} is no longer executed by this worker (${turnEnd.how}).`));
    this.attempts.clear();
    this.host.onTurnEnd(this, turnEnd);
  }

  // ── Calls of user code, and step bodies ────────────────────────────────────────────────────────────────────────────

  resolveCall(key: string, call: Deferred): void | Promise<void> {
    return resolveCall(this, key, call);
  }

  onDeliveryIdle(): void {
    if (this.results.pending.size > 0) this.scheduleIdleCheck();
  }

  callInFrame<Result>(key: string, call: () => Result): Result {
    return callInFrame(this, key, call);
  }

  callBody(attempt: Attempt, body: Body): unknown {
    return callBody(this, attempt, body);
  }

  progress(node: string, done: number, total?: number, message?: string): void {
    if (this.isOver) return;
    this.pendingWrites.setCursor({
      node,
      progress: writeProgress({ done, total: total ?? null, message: message ?? null }),
    });
    this.scheduleIdleCheck();
  }

  applyFlowControlFromStep(interrupt: FlowControlInterrupt, stepEndEvents: readonly NewEvent[]): void {
    pauseRunOnError(this, () => applyFlowControl(this, interrupt, stepEndEvents));
  }

  // ── Pausing, canceling and parking ─────────────────────────────────────────────────────────────────────────────────

  get isDraining(): boolean {
    return this.phase.isDraining;
  }

  /** Runs the idle check in a macrotask, so that the code has first reacted to the results that it has received. */
  scheduleIdleCheck(): void {
    if (this.#isIdleCheckScheduled || this.isOver) return;
    this.#isIdleCheckScheduled = true;
    this.host.runtime.setImmediate(() => {
      this.#isIdleCheckScheduled = false;
      pauseRunOnError(this, () => advanceWhenIdle(this));
    });
  }

  pauseWithError(reason: string, error: Failure | null, node?: string): void {
    pauseWithError(this, reason, error, node);
  }

  pauseDiverged(steps: readonly string[], problem: string): void {
    pauseDiverged(this, steps, problem);
  }

  pauseMismatched(gatedKeys: readonly string[], leftOver: readonly string[], thrown?: unknown): void {
    pauseMismatched(this, gatedKeys, leftOver, thrown);
  }

  onRunTimeout(events: readonly NewEvent[], error: Failure): Promise<void> | void {
    return handleRunTimeout(this, events, error);
  }

  get abortSignal(): AbortSignal {
    return (this.#cancellation ??= new Cancellation(this)).abortSignal;
  }

  abort(reason: unknown): void {
    this.#cancellation?.abortSignalOfCode(reason);
    this.attempts.abort(reason);
  }

  drain(): void {
    this.scheduleIdleCheck();
    if (this.state.cancelRequest !== null)
      (this.#cancellation ??= new Cancellation(this)).start(this.state.cancelRequest);
  }

  park(finalEvent?: NewEvent, waitsForSlots = false): Promise<void> {
    return parkRun(this, finalEvent, waitsForSlots);
  }
}
