/**
 * The cursor of one attempt at a resumable step. Each checkpoint overwrites one row in the group commit; the log gets an
 * event only when the attempt ends. A checkpoint is also where the step can be interrupted: the next attempt resumes from
 * the cursor.
 */

import { decode } from "../../core/encoding/decode.js";
import { encode } from "../../core/encoding/encode.js";
import { CursorTooLargeError, InvalidStateError, PayloadTooLargeError } from "../../core/errors/errors.js";
import { guardPromise } from "../../core/errors/guarded-promise.js";
import type { FlowControlAction } from "../../core/run/flow-control.js";
import { readProgress, writeProgress } from "../../core/run/progress.js";
import type { StepOp } from "../../core/run/state.js";
import { emptyList } from "../../core/run/transition.js";
import type { CheckpointOptions, Checkpoints } from "../../define/step-engine.js";
import type { CursorRow } from "../../store/contract/store.js";
import { readForTurn } from "../turn/read.js";
import { assertTurnGoesOn } from "./call-body.js";
import type { TurnAttempt } from "./turn-attempt.js";

const cursorLimitBytes = 128 * 1024;
/** How long a relaxed loop may run before it yields to the event loop. */
const yieldEveryMs = 4;

interface StoredCursor {
  readonly cursor: string | null;
  readonly done: number;
  readonly total: number | null;
  /** How often the cursor was moved, which is also the index of the item that is being processed. */
  readonly moves: number;
}

/** Reads the stored cursor of the step; must be called before the step's body runs. */
export async function openCheckpoints(
  attempt: TurnAttempt,
  options: CheckpointOptions,
  raiseFlowControl: (action: FlowControlAction) => never,
): Promise<StepCheckpoints> {
  const { turn, key } = attempt;
  const rows = await readForTurn(turn, () => turn.host.store.cursors(turn.runId));
  assertTurnGoesOn(turn);
  const op = turn.state.ops.get(key) as StepOp | undefined;
  const isRewound = op?.isRewound === true && op.phase === "awaiting_attempt";
  const storedCursor = isRewound ? noCursor : readStoredCursor(rows.find((row) => row.node === key));
  const isResumed =
    storedCursor.cursor !== null || (attempt.attempt > 1 && !isRewound && op !== undefined && !op.isScheduled);
  return new StepCheckpoints(attempt, options, raiseFlowControl, storedCursor, isResumed);
}

const noCursor: StoredCursor = { cursor: null, done: 0, total: null, moves: 0 };

function readStoredCursor(row: CursorRow | undefined): StoredCursor {
  if (row === undefined || row.cursor === null) return noCursor;
  const { done, total, moves = done } = readProgress(row.progress);
  return { cursor: row.cursor, done, total, moves };
}

export class StepCheckpoints implements Checkpoints {
  readonly resumed: boolean;
  readonly #attempt: TurnAttempt;
  readonly #options: CheckpointOptions;
  readonly #raiseFlowControl: (action: FlowControlAction) => never;
  readonly #startedAt: number;
  readonly #initialCursorText: string | null;
  #cursor: unknown;
  /** The encoded cursor; undefined if the current cursor has not been encoded yet. */
  #cursorText: string | null | undefined;
  #hasAdvanced = false;
  #iterations = 0;
  #done: number;
  #moves: number;
  #total: number | null;
  #isWriting = false;
  #isDirty = false;
  #yieldedAt: number;

  constructor(
    attempt: TurnAttempt,
    options: CheckpointOptions,
    raiseFlowControl: (action: FlowControlAction) => never,
    storedCursor: StoredCursor,
    resumed: boolean,
  ) {
    this.#attempt = attempt;
    this.#options = options;
    this.#raiseFlowControl = raiseFlowControl;
    this.#startedAt = attempt.turn.storeNow();
    this.#yieldedAt = attempt.turn.host.runtime.monotonic();
    this.#initialCursorText = storedCursor.cursor;
    this.#cursorText = storedCursor.cursor;
    this.#cursor = storedCursor.cursor === null ? null : decode(storedCursor.cursor);
    this.#done = storedCursor.done;
    this.#moves = storedCursor.moves;
    this.#total = storedCursor.total;
    this.resumed = resumed;
  }

  get cursor(): unknown {
    return this.#cursor;
  }

  get advanced(): boolean {
    return this.#hasAdvanced;
  }

  /** How often the cursor was moved, which is also the index of the item that is being processed. */
  get moves(): number {
    return this.#moves;
  }

  /** Whether the cursor has the same value as when this attempt started. */
  get isUnmoved(): boolean {
    return this.#encoded() === this.#initialCursorText;
  }

  set(cursor: unknown): Promise<void> {
    try {
      this.#move(cursor);
    } catch (error) {
      return guardPromise(Promise.reject(error));
    }
    this.#done += 1;
    this.#iterations += 1;
    return this.checkpoint();
  }

  checkpoint(): Promise<void> {
    if (this.#attempt.isOver) return guardPromise(Promise.reject(this.#createStepOverError()));
    // If user code does not await the promise, its rejection must not crash the process. An interruption is not lost
    // thereby, because it is registered before the promise rejects.
    return guardPromise(this.#options.relaxed ? this.#checkpointRelaxed() : this.#checkpointDurably());
  }

  skipTo(cursor: unknown, waitMs: number): never {
    this.#move(cursor);
    return this.#raiseFlowControl({ kind: "suspend", waitMs });
  }

  item(run: () => unknown): Promise<void> {
    return (this.#attempt.scope as NonNullable<TurnAttempt["scope"]>).runItem(this.#moves, run);
  }

  total(count: number): void {
    this.#total = count;
    this.#isDirty = true;
  }

  /** Clears the cursor, so that the next attempt starts with the first item. */
  rewind(): void {
    this.#cursor = null;
    this.#cursorText = null;
    this.#done = 0;
    this.#moves = 0;
  }

  /** Writes the cursor in the same commit as the event that ends the attempt, or deletes it if the step is over. */
  writeFinalCursor(isOver: boolean): void {
    const { turn, key } = this.#attempt;
    turn.pendingWrites.setCursor({ node: key, cursor: isOver ? null : this.#encoded(), progress: this.#progress() });
  }

  /** A numeric cursor is encoded only when it is written, because it can be neither too large nor mutated until then. */
  #move(cursor: unknown): void {
    if (this.#attempt.isOver) throw this.#createStepOverError();
    this.#cursorText = typeof cursor === "number" ? undefined : this.#encode(cursor ?? null);
    this.#cursor = cursor ?? null;
    this.#moves += 1;
    this.#attempt.scope?.markCursorMoved();
    this.#hasAdvanced = true;
    this.#isDirty = true;
  }

  #createStepOverError(): InvalidStateError {
    return new InvalidStateError(`Step "${this.#attempt.key}" is over; its iterator cannot be used any more.`);
  }

  #encoded(): string | null {
    if (this.#cursorText === undefined) this.#cursorText = this.#encode(this.#cursor);
    return this.#cursorText;
  }

  #encode(cursor: unknown): string | null {
    if (cursor === null) return null;
    const step = this.#attempt.key;
    try {
      return encode(cursor, { label: `the cursor of step "${step}"`, limitBytes: cursorLimitBytes });
    } catch (error) {
      if (!(error instanceof PayloadTooLargeError)) throw error;
      throw new CursorTooLargeError({ step, bytes: error.bytes, limit: cursorLimitBytes });
    }
  }

  /** `items` and `ms` count this attempt only, so that readers can compute a rate from them. */
  #progress(): string {
    const [done, total, moves, items] = [this.#done, this.#total, this.#moves, this.#iterations];
    return writeProgress({ done, total, message: null, moves, items, ms: this.#attempt.elapsedRealMs });
  }

  #write(done: (written: boolean) => void): void {
    const { turn, key } = this.#attempt;
    this.#isDirty = false;
    turn.pendingWrites.setCursor({ node: key, cursor: this.#encoded(), progress: this.#progress() });
    turn.post(emptyList, done);
  }

  /** Waits until the cursor is durable, so that after a crash only the current item is processed again. */
  async #checkpointDurably(): Promise<void> {
    await new Promise<void>((resolve) => this.#write(() => resolve()));
    await this.#waitForInboxCheck();
    this.#raiseIfInterrupted();
  }

  /** Does not wait for the write. One write is under way at a time, and the next one writes the latest cursor. */
  async #checkpointRelaxed(): Promise<void> {
    if (!this.#isWriting && this.#isDirty) this.#writeLatest();
    await this.#yieldToEventLoop();
    await this.#waitForInboxCheck();
    this.#raiseIfInterrupted();
  }

  /** If a pause or cancel has been accepted, it must take effect before the next item starts. */
  #waitForInboxCheck(): Promise<void> | undefined {
    return this.#attempt.turn.inboxCheck ?? undefined;
  }

  /** A loop over quick items that awaits no I/O would otherwise starve the event loop. */
  #yieldToEventLoop(): Promise<void> | undefined {
    const now = this.#attempt.turn.host.runtime.monotonic();
    if (now - this.#yieldedAt < yieldEveryMs) return undefined;
    this.#yieldedAt = now;
    return new Promise((resolve) => this.#attempt.turn.host.runtime.setImmediate(resolve));
  }

  #writeLatest(): void {
    this.#isWriting = true;
    this.#write((written) => {
      this.#isWriting = false;
      if (written && this.#isDirty && !this.#attempt.isOver) this.#writeLatest();
    });
  }

  #raiseIfInterrupted(): void {
    const action = this.#findInterruption();
    if (action !== null) this.#raiseFlowControl(action);
  }

  #findInterruption(): FlowControlAction | null {
    const { turn } = this.#attempt;
    const { cancelRequest } = turn.state;
    if (cancelRequest !== null) return { kind: "cancel", reason: cancelRequest.reason };
    if (turn.isDraining || turn.isOver) return suspendNow;
    if (!turn.host.allowsInterruptions()) return null;
    const { maxIterations, maxRuntimeMs } = this.#options;
    if (maxIterations !== null && this.#iterations >= maxIterations) return suspendNow;
    if (maxRuntimeMs !== null && turn.storeNow() - this.#startedAt >= maxRuntimeMs) return suspendNow;
    return null;
  }
}

const suspendNow: FlowControlAction = { kind: "suspend", waitMs: 0 };
