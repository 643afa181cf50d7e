/** An attempt at a step, with the turn that it belongs to. */
import { executionId } from "../../core/naming/ids.js";
import { type NewEvent, newEvent } from "../../core/run/event.js";
import type { StepTurn } from "../turn/ports.js";
import { Attempt } from "./attempt.js";
import type { RunningAttempt } from "./running-attempts.js";

/** The calls that the body of a declared step makes: see `CallScope`. */
interface BodyScope {
  readonly gate: { readonly leftOver: readonly string[] } | null;
  close(): void;
  /** The attempt moved the cursor of the step. */
  markCursorMoved(): void;
  /** Runs the user's code for one item of a resumable step. */
  runItem(number: number, run: () => unknown): Promise<void>;
}

/** The cursor of a resumable step: see `StepCheckpoints`. */
interface CursorRecord {
  /** Whether the cursor is where it was when this attempt started. */
  readonly isUnmoved: boolean;
  /** How often the cursor was moved, which is also the number of the item in flight. */
  readonly moves: number;
  rewind(): void;
  writeFinalCursor(isOver: boolean): void;
}

/** An attempt that knows its turn, so that the slow-step recorder can write its start. */
export class TurnAttempt extends Attempt implements RunningAttempt {
  readonly turn: StepTurn;
  /** The call scope of a declared step's body; null for other steps. */
  scope: BodyScope | null = null;
  /** The cursor of a resumable step; null for other steps. */
  checkpoints: CursorRecord | null = null;
  /** Whether the run of the step's job has failed. */
  hasJobFailed = false;
  /** Whether the body has ended, or its time limit has passed. */
  isOver = false;
  /** Releases the semaphore slot of a step with limited concurrency. */
  releaseSlot: (() => void) | null = null;
  /** Whether the attempt started in an earlier turn and resumes after a wait for something durable. */
  readonly resumesAfterWait: boolean;
  /** The time limit of a declared step. It includes the time during which the run is parked, so the log records it. */
  readonly #timeoutMs: number | null;

  constructor(turn: StepTurn, key: string, attempt: number, resumesAfterWait = false, timeoutMs: number | null = null) {
    super(turn, key, attempt);
    this.turn = turn;
    this.resumesAfterWait = resumesAfterWait;
    this.isStartRecorded = resumesAfterWait;
    this.#timeoutMs = timeoutMs;
  }

  get remainingMs(): number | null {
    return this.#timeoutMs === null ? null : Math.max(0, this.#timeoutMs - this.elapsedMs);
  }

  createStartedEvent(): NewEvent {
    this.isStartRecorded = true;
    const { remainingMs } = this;
    const worker = this.turn.host.workerName;
    const data = remainingMs === null ? { worker } : { timeoutMs: remainingMs, worker };
    return newEvent("step.started", { node: this.key, attempt: this.attempt }, data);
  }

  get id(): string {
    return executionId(this.turn.runId, this.key, this.attempt);
  }

  recordStart(): Promise<boolean> {
    return this.turn.submit([this.createStartedEvent()]);
  }
}
