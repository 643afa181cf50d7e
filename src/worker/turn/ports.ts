/**
 * What the parts of a turn ask of each other. A part names the few ports that it uses, and never the turn itself: `Turn`
 * (turn.ts) is the composition that implements them all, and only the session knows it.
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

/** The run, its definition and its state, and the worker that has it. */
export interface RunPort {
  readonly runId: string;
  readonly run: RunRecord;
  readonly definition: WorkflowDefinition;
  readonly state: RunState;
  readonly host: TurnHost;
  readonly log: Logger;
  /** How often a worker got the run since it was last parked, this time included. */
  readonly deliveries: number;
  readonly storedInput: StoredInput;
  readonly parentsOf: PredecessorsOf;
  /** The store's time, as well as it is known here without asking. */
  storeNow(): number;
  /** In tests, the time that passes only when the test says so. */
  readonly virtualNow: number | null;
  /** The run whose id the idempotency key of this step begins with. */
  keyOwner(node: string): string;
  /** The signal that ended the pause which this step, or with "" the handler, had asked for. */
  resumedBy(node: string): ResumedBy | null;
}

/** Writing to the log of the run. */
export interface WritePort {
  readonly writer: RunWriter;
  /** What goes along with the next commit. */
  readonly pendingWrites: PendingWrites;
  /** Nothing more is written: the run was let go of, is about to be, or is not ours any more. */
  readonly isOver: boolean;
  /** Commits the pending writes and these events. False: the run is not ours any more. */
  submit(events: readonly NewEvent[]): Promise<boolean>;
  /** The same without a promise, for what happens once per step. */
  post(events: readonly NewEvent[], done: (written: boolean) => void): void;
}

/** In which phase the turn is, and what may begin in it. */
export interface PhasePort {
  readonly phase: PhaseTracker;
  /** Nothing new may begin. */
  readonly isDraining: boolean;
}

/** Looking whether anything is left to do, once everything that is under way has had its say. */
export interface IdlePort {
  scheduleIdleCheck(): void;
}

/** Pausing the run because of something that only a person can solve. */
export interface PausePort {
  pauseWithError(reason: string, error: Failure | null, node?: string): void;
  /** The log has something under these keys that the code cannot mean. */
  pauseDiverged(steps: readonly string[], problem: string): void;
  /** The code makes calls that the log lacks, and does not make those that it has. */
  pauseMismatched(gatedKeys: readonly string[], leftOver: readonly string[], thrown?: unknown): void;
}

/** The calls of user code: what the log has of them, and the promises of their answers. */
export interface CallPort extends PhasePort, IdlePort {
  readonly results: ResultDelivery;
  /** Waits and timers that lost a race, or whose step is over: their withdrawal is in the log, or on its way there. */
  withdrawnKeys: Set<string> | null;
  /** While messages are being taken that a commit has told of. */
  readonly inboxCheck: Promise<void> | null;
}

/** The bodies of steps that run. */
export interface ExecutePort {
  readonly attempts: RunningAttempts;
  readonly slots: SlotQueue;
  readonly flowControl: FlowControlTracker;
  /** How to undo steps, as far as the code has said. */
  compensators: Map<string, Compensator> | null;
  /** Calls user code; until it returns, the watchdog knows whose it is. */
  callInFrame<Result>(key: string, call: () => Result): Result;
  callBody(attempt: Attempt, body: Body): unknown;
  /** What a step has returned, as the log says. */
  outputOf(key: string): unknown;
  /** Overwrites one row; it goes along with the next commit, or soon by itself. */
  progress(node: string, done: number, total?: number, message?: string): void;
  /** Run-level flow control that a step raised: the end of the step is recorded with the end of the run. */
  applyFlowControlFromStep(signal: FlowControlInterrupt, stepEndEvents: readonly NewEvent[]): void;
}

/** The handler of the run: how it is called, and with what. */
export interface HandlerOwner {
  readonly handler: HandlerPort;
  readonly abortSignal: AbortSignal;
}

export interface HandlerPort {
  /** Calls the code of the run, when it is the turn of this run to be executed. */
  call(): void;
  /** What is left to do is not the business of its code. */
  skip(): void;
  /** What the code was called with, and what made it fail. */
  input: unknown;
  thrown: { readonly error: unknown } | null;
  /** Of a function whose log is not empty. */
  readonly gate: ReplayGate | null;
  /** For code that has these calls in its log; null when there are none. */
  openGate(keys: readonly string[]): ReplayGate | null;
  /** Calls wait until the code has come to everything that the log has. */
  readonly hasGatedCalls: boolean;
  /** What the code was told about its patches in this turn. */
  patches: Map<string, boolean> | null;
}

/** Letting go of the run. */
export interface TurnEndPort {
  /** The store's time when this worker got the run, and our own monotonic clock then. */
  readonly claimedAt: number;
  readonly openedAt: number;
  readonly parkDelay: ParkDelay;
  /** Lets go of the run until something happens. `last` is one more event that explains why. */
  park(finalEvent?: NewEvent): Promise<void>;
  /** Calls back when the end of the run, which was posted before, was not written because of messages. */
  setEndRefusedHandler(callback: (unwritten: Transition) => void): void;
  /** Where the step that is asked for is to be run, when its workflow has an opinion about that. */
  placement: TaskRouting | null;
}

/** Messages that came, and time that has passed: see `inbox-processor.ts`. */
export interface InboxPort {
  /** The inbox is being read, or decided about. */
  readonly isBusy: boolean;
  /** It may find that what the run would be parked for is there: a signal that came before the wait for it. */
  readonly isCheckDue: boolean;
  /** Comes back when everything that is in the inbox now has been decided about. */
  checkNow(): Promise<void>;
  /** While code runs on, the run is not parked: its timers are watched here. */
  scheduleDueTimer(): void;
  /** A step waits for its next attempt: `begin` is called when it is due, if the turn lives that long. */
  scheduleRetry(key: string, startAttempt: (op: Op | undefined) => void): void;
}

/** Messages, and time that has passed. */
export interface InboxOwner {
  readonly inboxProcessor: InboxPort;
  /** The time limit of the run has passed. */
  onRunTimeout(events: readonly NewEvent[], error: Failure): Promise<void> | void;
  /** Nothing new begins. What runs may finish and is recorded; a canceled run tells it to hurry. */
  drain(): void;
  /** Tells the code, and the bodies that run, that nothing waits for them any more. */
  abort(reason: unknown): void;
}

/** What a step needs of the turn that it is executed in. */
export type StepTurn = RunPort &
  WritePort &
  CallPort &
  ExecutePort &
  PausePort &
  HandlerOwner &
  TurnEndPort &
  Pick<InboxOwner, "inboxProcessor">;

/** What decides how the run goes on when its code, or all that it waits for, is at rest. */
export type WholeTurn = StepTurn & InboxOwner;
