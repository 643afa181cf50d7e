/** An attempt at a step, in the turn that it belongs to. */
import { executionId } from "../../core/naming/ids.js";
import { type NewEvent, newEvent } from "../../core/run/event.js";
import type { StepTurn } from "../turn/ports.js";
import { Attempt } from "./attempt.js";
import type { RunningAttempt } from "./running-attempts.js";

/** The calls that the body of a declared step makes: see `CallScope`. */
interface BodyScope {
  readonly gate: { readonly leftOver: readonly string[] } | null;
  close(): void;
  /** The cursor of the step was moved in this execution. */
  markCursorMoved(): void;
  /** The code for one item of a resumable step. */
  runItem(number: number, run: () => unknown): Promise<void>;
}

/** The cursor of a resumable step: see `StepCheckpoints`. */
interface CursorRecord {
  /** It has not moved in this execution. */
  readonly isUnmoved: boolean;
  /** How often it was moved: the number of the item in flight. */
  readonly moves: number;
  rewind(): void;
  writeFinalCursor(isOver: boolean): void;
}

/** An execution that knows its turn, so that the worker's watch for slow steps can record its start. */
export class TurnAttempt extends Attempt implements RunningAttempt {
  readonly turn: StepTurn;
  /** Of the body of a declared step. */
  scope: BodyScope | null = null;
  /** Of a step with a cursor. */
  checkpoints: CursorRecord | null = null;
  /** The run of its job has failed. */
  hasJobFailed = false;
  /** Its body has ended, or has been given up on. */
  isOver = false;
  /** Of a step of which only so many are executed at a time. */
  releaseSlot: (() => void) | null = null;
  /** It goes on after a wait for something durable. */
  readonly resumesAfterWait: boolean;
  /** Of the body of a declared step: it counts also while the body rests, so the log must know of it. */
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
