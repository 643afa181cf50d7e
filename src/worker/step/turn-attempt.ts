/** An attempt at a step, extended with its turn and with the parts that only some kinds of steps have. */
import { InvalidInputError } from "../../core/errors/errors.js";
import { executionId } from "../../core/naming/ids.js";
import { type NewEvent, newEvent } from "../../core/run/event.js";
import { checkUnits, type StepLimit } from "../../define/limit.js";
import type { StepTurn } from "../turn/ports.js";
import { Attempt } from "./attempt.js";
import type { RunningAttempt } from "./running-attempts.js";

/** The durable calls that the body of a declared step makes; implemented by `CallScope`. */
interface BodyScope {
  readonly gate: { readonly leftOver: readonly string[] } | null;
  close(): void;
  /** Called when the attempt has moved the cursor of the step. */
  markCursorMoved(): void;
  /** Runs the user's code for one item of a resumable step. */
  runItem(number: number, run: () => unknown): Promise<void>;
}

/** The cursor of a resumable step; implemented by `StepCheckpoints`. */
interface CursorRecord {
  /** Whether the cursor has the same value as when this attempt started. */
  readonly isUnmoved: boolean;
  /** How often the cursor was moved, which is also the index of the item that is being processed. */
  readonly moves: number;
  rewind(): void;
  writeFinalCursor(isOver: boolean): void;
}

/** An attempt with its turn, through which the slow-step recorder writes the attempt's `step.started` event. */
export class TurnAttempt extends Attempt implements RunningAttempt {
  readonly turn: StepTurn;
  /** The call scope of a declared step's body; null for other steps. */
  scope: BodyScope | null = null;
  /** The cursor of a resumable step; null for other steps. */
  checkpoints: CursorRecord | null = null;
  /** Whether the step executes a job and the job's run has failed. */
  hasJobFailed = false;
  /** Whether the body has ended, or its time limit has passed. */
  isOver = false;
  /** Releases the semaphore slot of a step with limited concurrency. */
  releaseSlot: (() => void) | null = null;
  /** The limit of whose slots the attempt holds one; null: it needs none. */
  limit: StepLimit | null = null;
  /** Whether the attempt started in an earlier turn and resumes after a wait for something durable. */
  readonly resumesAfterWait: boolean;
  /**
   * The time limit of a declared step. It continues to elapse while the run is parked, so the log records what is left.
   */
  readonly #timeoutMs: number | null;
  /** What the body has said to have used of the rate; null if it has said nothing. */
  #spentUnits: number | null = null;

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

  /** A bound function, because user code destructures it: `({ spent }) => …`. */
  override get spent(): (units: number) => void {
    return (units) => {
      const { limit } = this;
      if (limit === null) throw new InvalidInputError(`Step "${this.key}" has no limit whose units it could spend.`);
      const furtherUnits = checkUnits(`step "${this.key}"`, units) - (this.#spentUnits ?? limit.units);
      this.#spentUnits = units;
      this.turn.host.stepSlots().correctUnits(limit, this.turn.run, furtherUnits);
    };
  }

  recordStart(): Promise<boolean> {
    return this.turn.submit([this.createStartedEvent()]);
  }
}
