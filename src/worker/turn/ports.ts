/**
 * The interfaces through which the parts of a turn use each other. A part names only the ports that it needs, never the
 * turn itself: `Turn` (turn.ts) implements them all, and only the session uses it.
 */
import type { Failure } from "../../core/encoding/error-record.js";
import type { PredecessorsOf } from "../../core/graph/predecessors.js";
import type { NewEvent } from "../../core/run/event.js";
import type { FlowControlInterrupt } from "../../core/run/flow-control.js";
import type { TaskRouting } from "../../core/run/park.js";
import type { Op, RunState } from "../../core/run/state.js";
import type { Transition } from "../../core/run/transition.js";
import type { Logger, ResumedBy } from "../../define/context.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { RunRecord } from "../../store/contract/store.js";
import type { PendingWrites } from "../commit/pending-writes.js";
import type { RunWriter } from "../commit/run-writer.js";
import type { ReplayGate } from "../replay/replay-gate.js";
import type { ResultDelivery } from "../replay/result-delivery.js";
import type { Attempt, Body, Compensator } from "../step/attempt.js";
import type { FlowControlTracker } from "../step/flow-control-tracker.js";
import type { RunningAttempts } from "../step/running-attempts.js";
import type { SlotQueue } from "../step/slot-queue.js";
import type { ParkDelay } from "./park-delay.js";
import type { StoredInput } from "./stored-input.js";
import type { TurnHost } from "./turn-host.js";
import type { PhaseTracker } from "./turn-phase.js";

/** The run, its definition and its state, and the worker that owns it. */
export interface RunPort {
  readonly runId: string;
  readonly run: RunRecord;
  readonly definition: WorkflowDefinition;
  readonly state: RunState;
  readonly host: TurnHost;
  readonly log: Logger;
  /** How often a worker claimed the run since it was last parked, including this time. */
  readonly deliveries: number;
  readonly storedInput: StoredInput;
  readonly parentsOf: PredecessorsOf;
  /** The store's time, estimated without a query. */
  storeNow(): number;
  /** The virtual time in tests that control the clock; null when real time is used. */
  readonly virtualNow: number | null;
  /** The id of the run that the idempotency key of this step starts with. */
  keyOwner(node: string): string;
  /** The signal that ended the pause requested by this step; "" stands for the handler. */
  resumedBy(node: string): ResumedBy | null;
}

/** Writes to the log of the run. */
export interface WritePort {
  readonly writer: RunWriter;
  /** What the next commit will write. */
  readonly pendingWrites: PendingWrites;
  /** True when nothing more is written: the commit that ends the turn was submitted, or the worker lost the run. */
  readonly isOver: boolean;
  /** Commits the pending writes and these events. False when the worker no longer owns the run. */
  submit(events: readonly NewEvent[]): Promise<boolean>;
  /**
   * Like `submit`, with a callback instead of a promise, because it is called for every step and a promise costs more.
   */
  post(events: readonly NewEvent[], done: (written: boolean) => void): void;
}

/** The phase of the turn, which decides what may start. */
export interface PhasePort {
  readonly phase: PhaseTracker;
  /** True when no new call or step may start. */
  readonly isDraining: boolean;
}

/** Schedules the idle check, which decides what the turn does when nothing is under way. */
export interface IdlePort {
  scheduleIdleCheck(): void;
}

/** Pauses the run because of a problem that needs an operator. */
export interface PausePort {
  pauseWithError(reason: string, error: Failure | null, node?: string): void;
  /** Pauses the run because the log has calls under these keys that contradict the calls of the code. */
  pauseDiverged(steps: readonly string[], problem: string): void;
  /** Pauses the run because the code has not made the left-over calls, which are in its log. */
  pauseMismatched(gatedKeys: readonly string[], leftOver: readonly string[], thrown?: unknown): void;
}

/** The durable calls of user code and the delivery of their results. */
export interface CallPort extends PhasePort, IdlePort {
  readonly results: ResultDelivery;
  /** Keys of waits and timers that lost a race or whose step has ended; their withdrawal is recorded or pending. */
  withdrawnKeys: Set<string> | null;
  /** The inbox check that was started because a commit reported messages; null when no such check is under way. */
  readonly inboxCheck: Promise<void> | null;
}

/** The execution of step bodies. */
export interface ExecutePort {
  readonly attempts: RunningAttempts;
  readonly slots: SlotQueue;
  readonly flowControl: FlowControlTracker;
  /** By key of the step: the compensations that the code has defined so far in this turn. */
  compensators: Map<string, Compensator> | null;
  /** Calls user code; until it returns, the watchdog attributes a blocked event loop to this run. */
  callInFrame<Result>(key: string, call: () => Result): Result;
  callBody(attempt: Attempt, body: Body): unknown;
  /** The recorded output of a step. */
  outputOf(key: string): unknown;
  /** Stores the progress of a node. Each commit overwrites the node's one row. */
  progress(node: string, done: number, total?: number, message?: string): void;
  /**
   * Applies flow control that a step raised for the whole run; the end of the step and of the run are committed
   * together.
   */
  applyFlowControlFromStep(interrupt: FlowControlInterrupt, stepEndEvents: readonly NewEvent[]): void;
}

export interface HandlerOwner {
  readonly handler: HandlerPort;
  readonly abortSignal: AbortSignal;
}

export interface HandlerPort {
  /** Calls the code of the run; a suspect run first waits for its slot. */
  call(): void;
  /** Continues as if the code had been called; used when the rest of the run does not need the code. */
  skip(): void;
  /** The input that the code was called with. */
  input: unknown;
  /** The error that failed the run. */
  thrown: { readonly error: unknown } | null;
  /** The gate of the handler; null for declared workflows and if the log has no calls to repeat. */
  readonly gate: ReplayGate | null;
  /** Opens a gate for code that must repeat these calls; returns null if there are none. */
  openGate(keys: readonly string[]): ReplayGate | null;
  /** Whether calls wait until the code has reached every call in the log. */
  readonly hasGatedCalls: boolean;
  /** The results of `ctx.patched` in this turn, by key. */
  patches: Map<string, boolean> | null;
}

/** Parks runs that do nothing but wait for slots of step limits: see `slot-park.ts`. */
export interface SlotParkPort {
  /** Whether the waits are being given to the run. The idle check runs again when that is done. */
  readonly isLeaving: boolean;
  /** Called whenever the turn may have come to do nothing but wait. */
  check(): void;
  /** Gives the waits to the run. The idle check then parks it, or waits on if it has something else to do after all. */
  leave(): Promise<void>;
  /** Whether there is nothing left for this worker to do, because all waits belong to the run. */
  canPark(isStopping: boolean): boolean;
}

/** Parks or ends the run. */
export interface TurnEndPort {
  /** The store's time at the claim. */
  readonly claimedAt: number;
  /** The value of this process's monotonic clock when the turn was created. */
  readonly openedAt: number;
  readonly parkDelay: ParkDelay;
  readonly slotPark: SlotParkPort;
  /** Parks the run. `finalEvent`, if any, records why. `waitsForSlots`: it does nothing but wait for slots of step limits. */
  park(finalEvent?: NewEvent, waitsForSlots?: boolean): Promise<void>;
  /** Sets the callback for the case that the store refuses to end the run because messages have arrived. */
  setEndRefusedHandler(callback: (unwritten: Transition) => void): void;
  /** The route and priority of the next step, which decide which workers claim the run; null: those of the run. */
  placement: TaskRouting | null;
}

/** Processes messages and due times: see `inbox-processor.ts`. */
export interface InboxPort {
  /** Whether the inbox is being processed. */
  readonly isBusy: boolean;
  /** Whether another check must run before the run is parked, because it may match a new wait with an earlier signal. */
  readonly isCheckDue: boolean;
  /** Processes the inbox. Resolves when all messages that are in it now have been processed. */
  checkNow(): Promise<void>;
  /** Sets a timer for the next due time of a run that is not parked because its code runs. */
  scheduleDueTimer(): void;
  /** `startAttempt` is called when the next attempt of the step is due, unless the turn ends before that. */
  scheduleRetry(key: string, startAttempt: (op: Op | undefined) => void): void;
  /** Whether an operator wants to skip the step, or has its output, once its running attempt has ended. */
  hasPostponed(key: string): boolean;
  /** Whether an operator has ended the step, which is not acknowledged yet. */
  isEnding(key: string): boolean;
  /** Processes the inbox if it has commands that wait for the end of this attempt. */
  onAttemptRecorded(key: string): void;
}

export interface InboxOwner {
  readonly inboxProcessor: InboxPort;
  /** Called when the time limit of the run has passed. */
  onRunTimeout(events: readonly NewEvent[], error: Failure): Promise<void> | void;
  /** Called when nothing new may start. Running steps may finish; if the run is canceled, they are aborted. */
  drain(): void;
  /** Aborts the signals of the handler and of the running step bodies. */
  abort(reason: unknown): void;
}

/** What a step needs from its turn. */
export type StepTurn = RunPort &
  WritePort &
  CallPort &
  ExecutePort &
  PausePort &
  HandlerOwner &
  TurnEndPort &
  Pick<InboxOwner, "inboxProcessor">;

/** All ports, for the parts that decide how the run continues. */
export type WholeTurn = StepTurn & InboxOwner;
