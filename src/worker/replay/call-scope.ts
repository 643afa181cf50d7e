/**
 * The scope in which durable calls are made: the handler of a workflow, or the body of one declared step. Each scope
 * numbers its own calls. Calls of a body are recorded under its step's name, so that a later attempt finds them again.
 */

import { InvalidInputError } from "../../core/errors/errors.js";
import { seededRandom } from "../../core/naming/ids.js";
import type { FlowControlInterrupt } from "../../core/run/flow-control.js";
import type { Op } from "../../core/run/state.js";
import { itemPrefix, scopeOf } from "../../core/run/step-key.js";
import { recordedName } from "../../core/run/step-name.js";
import type { TurnAttempt } from "../step/turn-attempt.js";
import type { StepTurn } from "../turn/ports.js";
import type { ReplayGate } from "./replay-gate.js";

export class CallScope {
  readonly turn: StepTurn;
  /** The attempt whose body makes the calls; null for the handler. */
  readonly stepAttempt: TurnAttempt | null;
  /** Delays new calls during a replay; null if the log has no calls that this code has to make again. */
  gate: ReplayGate | null;
  readonly #prefix: string;
  /** How many calls have used each name so far. */
  readonly #nameCounts = new Map<string, number>();
  /** The item of a resumable step whose code runs now. */
  #item: Item | null = null;
  #random: (() => number) | null = null;
  /**
   * Conditions draw from their own sequence. They are not evaluated again when the body resumes after a wait, so with a
   * shared sequence the body would then draw other numbers than before.
   */
  #conditionRandom: (() => number) | null = null;
  /** Names the hook or condition that is running and must not make durable calls; null otherwise. */
  #recordsForbiddenIn: string | null = null;
  /** Whether the cursor of the step has moved in this attempt. */
  #hasCursorMoved = false;
  /**
   * How many calls of the body have no result yet. While there are any, the body counts as waiting and the run may be
   * parked.
   */
  #openCallCount = 0;
  #isClosed = false;

  constructor(turn: StepTurn, stepAttempt: TurnAttempt | null = null, gate: ReplayGate | null = null) {
    this.turn = turn;
    this.stepAttempt = stepAttempt;
    this.gate = gate;
    this.#prefix = stepAttempt === null ? "" : scopeOf(stepAttempt.key);
  }

  /**
   * Returns the log key for a new call. The second call with the same name gets the suffix #2, the third #3, and so on.
   */
  takeKey(callName: string): string {
    const name = this.#recordedName(callName);
    const key = this.#buildKey(name);
    const nameCounts = this.#item?.nameCounts ?? this.#nameCounts;
    nameCounts.set(name, (nameCounts.get(name) ?? 0) + 1);
    return key;
  }

  /** Returns the key that `takeKey` would return, without counting a call. */
  peekKey(callName: string): string {
    return this.#buildKey(this.#recordedName(callName));
  }

  #recordedName(callName: string): string {
    const { state, definition } = this.turn;
    if (definition.aliases === null && state.logNameByCodeName === null) return callName;
    if (state.ops.size === 0 && state.callsToRedo === null) return callName;
    return recordedName(state, definition.aliases, this.#prefix + (this.#item?.prefix ?? ""), callName);
  }

  #buildKey(name: string): string {
    if (this.#recordsForbiddenIn !== null) {
      const where = this.turn.definition.declared === null ? "before or after the step" : "in the step itself";
      throw new InvalidInputError(
        `${this.#recordsForbiddenIn} cannot wait for "${name}" or record it; do that ${where}.`,
      );
    }
    const count = ((this.#item?.nameCounts ?? this.#nameCounts).get(name) ?? 0) + 1;
    if (count > 1 && this.#hasCursorMoved && this.#item === null)
      throw createRepeatedNameError(name, this.stepAttempt?.key ?? "");
    return this.#prefix + (this.#item?.prefix ?? "") + (count === 1 ? name : `${name}#${count}`);
  }

  /** Runs the code of one item. Call names are numbered per item, so that a repeated item finds its own records again. */
  async runItem(number: number, run: () => unknown): Promise<void> {
    if (this.#item !== null)
      throw new InvalidInputError(
        `Step "${this.stepAttempt?.key}" goes through its items one at a time; await one loop before the next.`,
      );
    this.#item = new Item(number);
    try {
      await this.turn.callInFrame(this.stepAttempt?.key ?? "", run);
    } finally {
      this.#item = null;
    }
  }

  /**
   * Forbids durable calls during `work`, a condition or hook, which is not repeated when the body resumes after a wait.
   */
  async withoutRecords<T>(caller: string, work: () => Promise<T>): Promise<T> {
    this.#recordsForbiddenIn = caller;
    try {
      return await work();
    } finally {
      this.#recordsForbiddenIn = null;
    }
  }

  get forbidsRecords(): boolean {
    return this.#recordsForbiddenIn !== null;
  }

  markCursorMoved(): void {
    this.#hasCursorMoved = true;
  }

  /** All `patched()` calls with the same id in one scope share a key, so patches are not numbered. */
  patchKey(id: string): string {
    return `${this.#prefix}patch:${id}`;
  }

  /** Returns a seeded random number. All attempts at a body draw the same sequence; each step and item has its own. */
  random(): number {
    if (this.#item !== null) return (this.#item.random ??= seededRandom(this.#seed(this.#item.prefix)))();
    if (this.#recordsForbiddenIn === null) return (this.#random ??= seededRandom(this.#seed("")))();
    return (this.#conditionRandom ??= seededRandom(this.#seed("?")))();
  }

  #seed(suffix: string): string {
    // A run that retries another run draws the same numbers as that run, because the log that it inherits depends on
    // them.
    const run = this.turn.state.lineage?.rootRunId ?? this.turn.runId;
    return this.#prefix === "" ? run : `${run}/${this.#prefix}${suffix}`;
  }

  /**
   * Returns a promise of the call's result. Once the turn is over, the promise never settles: the next turn replays the
   * code, which makes the same call again.
   */
  requestResult(key: string, isAdded = false): Promise<unknown> {
    const isOutOfOrder = this.gate?.isOutOfOrder(key, isAdded) === true;
    this.gate?.markReached(key);
    // An earlier attempt at this step may have made this call and left it open, so that it was withdrawn when it ended.
    if (this.stepAttempt !== null) this.turn.withdrawnKeys?.delete(key);
    if (this.turn.isOver) this.#warnOfLateCall(key);
    const { results } = this.turn;
    const result = isOutOfOrder ? results.requestOutOfOrder(key) : results.request(key);
    if (this.stepAttempt !== null && !this.#isClosed) this.#markWaitingUntil(result);
    return result;
  }

  #warnOfLateCall(key: string): void {
    const { log, runId } = this.turn;
    log.warn(
      `Run ${runId}: "${key}" was called after the run had been parked. The workflow awaits something outside ctx in parallel with a durable wait; put it into a step.`,
    );
  }

  /**
   * Finds the recorded call with this key. If the record is of another kind, the code has changed and the run is
   * paused.
   */
  findRecorded<Kind extends Op["kind"]>(key: string, kind: Kind): Extract<Op, { kind: Kind }> | undefined {
    const op = this.turn.state.ops.get(key);
    if (op === undefined || op.kind === kind) return op as Extract<Op, { kind: Kind }> | undefined;
    this.turn.pauseDiverged([key], `the log has "${key}" as a ${op.kind}, the code now uses that name for a ${kind}`);
    return undefined;
  }

  /** Keeps the run from being parked while `work` starts this call. If `work` throws, the call is rejected. */
  async startCall<T>(key: string, work: () => Promise<T>): Promise<T> {
    try {
      return await this.turn.attempts.preventParkingDuring(work);
    } catch (error) {
      this.turn.results.rejectCall(key, error);
      throw error;
    }
  }

  /** Starts a call that is not in the log: at once, or when the code has reached every call in the log. */
  startWhenLive(key: string, isAdded: boolean, start: () => void): void {
    if (this.gate === null) start();
    else this.gate.startWhenLive(key, isAdded, start);
  }

  /**
   * Returns undefined if the call may start now, otherwise a promise that resolves when it may. The promise never settles
   * if the turn ends first.
   */
  waitUntilLive(key: string, isAdded: boolean): Promise<void> | undefined {
    if (this.gate === null) return undefined;
    return new Promise((resolve) => this.startWhenLive(key, isAdded, resolve));
  }

  /**
   * Allows the run to be parked while the body has open calls, and prevents it again when the last of them has settled.
   */
  #markWaitingUntil(result: Promise<unknown>): void {
    this.#openCallCount += 1;
    if (this.#openCallCount === 1) this.turn.attempts.onBodyWaiting(this.stepAttempt as TurnAttempt);
    const onSettled = () => {
      if (this.#isClosed) return;
      this.#openCallCount -= 1;
      if (this.#openCallCount === 0) this.turn.attempts.onBodyContinues(this.stepAttempt as TurnAttempt);
    };
    result.then(onSettled, onSettled);
  }

  /** Called when the body has ended; withdraws the calls that have no result yet. */
  close(): void {
    this.gate?.close();
    if (!this.#isClosed && this.#openCallCount > 0) {
      this.turn.attempts.onBodyContinues(this.stepAttempt as TurnAttempt);
      this.#withdrawOpenCalls();
    }
    this.#isClosed = true;
  }

  /** The step's open waits must no longer receive signals, which other waits could receive instead. */
  #withdrawOpenCalls(): void {
    for (const key of this.turn.results.pending.keys()) {
      if (key.startsWith(this.#prefix)) (this.turn.withdrawnKeys ??= new Set()).add(key);
    }
  }

  raise(interrupt: FlowControlInterrupt): void {
    this.turn.flowControl.raise(interrupt, this.stepAttempt);
  }
}

/** The call names and random numbers of one item. Both are created on first use: most items make no durable calls. */
class Item {
  readonly #number: number;
  #nameCounts: Map<string, number> | null = null;
  random: (() => number) | null = null;

  constructor(number: number) {
    this.#number = number;
  }

  get prefix(): string {
    return itemPrefix(this.#number);
  }

  get nameCounts(): Map<string, number> {
    this.#nameCounts ??= new Map();
    return this.#nameCounts;
  }
}

/** When a loop resumes at its cursor, repeated names are numbered from 1 again, so #2 would belong to another item. */
function createRepeatedNameError(name: string, step: string): InvalidInputError {
  return new InvalidInputError(
    `"${name}" is used again after the cursor of step "${step}" has moved. In a loop of your own, give each item's calls a name of their own, such as \`${name} \${id}\`; over(), records(), batches() and each() do that by themselves.`,
  );
}
