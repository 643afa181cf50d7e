/**
 * The cursor of one execution of a resumable step. Each checkpoint overwrites one row, in the same group commit as
 * everything else; the log hears of the execution only when it ends. At a checkpoint the step can be interrupted: its
 * successor goes on from the cursor.
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
import type { TurnAttempt } from "./turn-attempt.js";

const cursorLimitBytes = 128 * 1024;
const yieldEveryMs = 4;

interface StoredCursor {
  readonly cursor: string | null;
  readonly done: number;
  readonly total: number | null;
  /** How often the cursor was moved: the number of the item in flight. */
  readonly moves: number;
}

/** Reads where the step stands, before its body runs. */
export async function openCheckpoints(
  attempt: TurnAttempt,
  options: CheckpointOptions,
  raiseFlowControl: (action: FlowControlAction) => never,
): Promise<StepCheckpoints> {
  const { turn, key } = attempt;
  const rows = await readForTurn(turn, () => turn.host.store.cursors(turn.runId));
  const op = turn.state.ops.get(key) as StepOp | undefined;
  const isRewound = op?.isRewound === true && op.phase === "awaiting_attempt";
  const stored = isRewound ? noCursor : readStoredCursor(rows.find((row) => row.node === key));
  const resumed = stored.cursor !== null || (attempt.attempt > 1 && !isRewound && op !== undefined && !op.isScheduled);
  return new StepCheckpoints(attempt, options, raiseFlowControl, stored, resumed);
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
  readonly #initialText: string | null;
  #cursor: unknown;
  /** The cursor as it is stored; undefined when it has to be encoded yet. */
  #text: string | null | undefined;
  #advanced = false;
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
    stored: StoredCursor,
    resumed: boolean,
  ) {
    this.#attempt = attempt;
    this.#options = options;
    this.#raiseFlowControl = raiseFlowControl;
    this.#startedAt = attempt.turn.storeNow();
    this.#yieldedAt = attempt.turn.host.runtime.monotonic();
    this.#initialText = stored.cursor;
    this.#text = stored.cursor;
    this.#cursor = stored.cursor === null ? null : decode(stored.cursor);
    this.#done = stored.done;
    this.#moves = stored.moves;
    this.#total = stored.total;
    this.resumed = resumed;
  }

  get cursor(): unknown {
    return this.#cursor;
  }

  get advanced(): boolean {
    return this.#advanced;
  }

  /** How often the cursor was moved: the number of the item in flight. */
  get moves(): number {
    return this.#moves;
  }

  /** Whether it stands where its predecessor stood. */
  get isUnmoved(): boolean {
    return this.#encoded() === this.#initialText;
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
    // An interruption is noted already: a call that no code awaits must not end the process because of it.
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

  /** The next execution begins at the beginning. */
  rewind(): void {
    this.#cursor = null;
    this.#text = null;
    this.#done = 0;
    this.#moves = 0;
  }

  /** Goes along with the event that ends the execution. A step that is over has no cursor any more. */
  writeFinalCursor(isOver: boolean): void {
    const { turn, key } = this.#attempt;
    turn.pendingWrites.setCursor({ node: key, cursor: isOver ? null : this.#encoded(), progress: this.#progress() });
  }

  /** A number cannot grow too large or change under our hands: it is written down when it is needed. */
  #move(cursor: unknown): void {
    if (this.#attempt.isOver) throw this.#createStepOverError();
    this.#text = typeof cursor === "number" ? undefined : this.#encode(cursor ?? null);
    this.#cursor = cursor ?? null;
    this.#moves += 1;
    this.#attempt.scope?.markCursorMoved();
    this.#advanced = true;
    this.#isDirty = true;
  }

  #createStepOverError(): InvalidStateError {
    return new InvalidStateError(`Step "${this.#attempt.key}" is over; its iterator cannot be used any more.`);
  }

  #encoded(): string | null {
    if (this.#text === undefined) this.#text = this.#encode(this.#cursor);
    return this.#text;
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

  /** `items` in `ms` are of this execution alone: what the rate is made of. */
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

  /** Goes on when it is durable: after a crash, at most the item in flight is done again. */
  async #checkpointDurably(): Promise<void> {
    await new Promise<void>((resolve) => this.#write(() => resolve()));
    await this.#waitForInboxCheck();
    this.#raiseIfInterrupted();
  }

  /** Goes on at once; the latest cursor is written as fast as the store takes it. */
  async #checkpointRelaxed(): Promise<void> {
    if (!this.#isWriting && this.#isDirty) this.#writeLatest();
    await this.#yieldToEventLoop();
    await this.#waitForInboxCheck();
    this.#raiseIfInterrupted();
  }

  /** A pause or cancel that was acknowledged acts before the next item begins. */
  #waitForInboxCheck(): Promise<void> | undefined {
    return this.#attempt.turn.inboxCheck ?? undefined;
  }

  /** A loop over quick items that waits for nothing would never let the process do anything else. */
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
    if (turn.isDraining || turn.isOver) return suspend;
    if (!turn.host.allowsInterruptions()) return null;
    const { maxIterations, maxRuntimeMs } = this.#options;
    if (maxIterations !== null && this.#iterations >= maxIterations) return suspend;
    if (maxRuntimeMs !== null && turn.storeNow() - this.#startedAt >= maxRuntimeMs) return suspend;
    return null;
  }
}

const suspend: FlowControlAction = { kind: "suspend", waitMs: 0 };
