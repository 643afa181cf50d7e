/**
 * Who asks: the handler of a workflow, or the body of one of its declared steps. Each numbers its own calls, and what a
 * body asks for is recorded under its step's name, so that it finds it again when it is run again.
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
  /** null: the handler itself. */
  readonly stepAttempt: TurnAttempt | null;
  /** null: the log has nothing that this code would have to ask for again. */
  gate: ReplayGate | null;
  readonly #prefix: string;
  readonly #nameCounts = new Map<string, number>();
  /** While the code for one item of a resumable step runs: its number, and the names used for it. */
  #item: Item | null = null;
  #random: (() => number) | null = null;
  /** Conditions have numbers of their own: they are not asked again when the body goes on after a wait. */
  #conditionRandom: (() => number) | null = null;
  #recordsForbiddenIn: string | null = null;
  /** The cursor of the step was moved in this execution. */
  #hasCursorMoved = false;
  /** Calls of the body that have no answer yet: while there are any it only waits, and the run may be parked. */
  #openCallCount = 0;
  #isClosed = false;

  constructor(turn: StepTurn, stepAttempt: TurnAttempt | null = null, gate: ReplayGate | null = null) {
    this.turn = turn;
    this.stepAttempt = stepAttempt;
    this.gate = gate;
    this.#prefix = stepAttempt === null ? "" : scopeOf(stepAttempt.key);
  }

  /** The name in the log: a name that is used again gets #2, #3… in the order of the calls. */
  takeKey(callName: string): string {
    const name = this.#recordedName(callName);
    const key = this.#buildKey(name);
    const nameCounts = this.#item?.nameCounts ?? this.#nameCounts;
    nameCounts.set(name, (nameCounts.get(name) ?? 0) + 1);
    return key;
  }

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
      throw new InvalidInputError(`${this.#recordsForbiddenIn} cannot wait for "${name}" or record it; do that ${where}.`);
    }
    const count = ((this.#item?.nameCounts ?? this.#nameCounts).get(name) ?? 0) + 1;
    if (count > 1 && this.#hasCursorMoved && this.#item === null) throw createRepeatedNameError(name, this.stepAttempt?.key ?? "");
    return this.#prefix + (this.#item?.prefix ?? "") + (count === 1 ? name : `${name}#${count}`);
  }

  /** Each item has its own names, so that it finds its own records again when it is the one in flight. */
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

  /** Conditions are asked once per attempt, and not again when the body goes on after a wait: they cannot wait themselves. */
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

  /** Asked for as often as one likes: it is one thing per scope. */
  patchKey(id: string): string {
    return `${this.#prefix}patch:${id}`;
  }

  /** A body draws the same random numbers at each of its attempts, and not those of another step or item. */
  random(): number {
    if (this.#item !== null) return (this.#item.random ??= seededRandom(this.#seed(this.#item.prefix)))();
    if (this.#recordsForbiddenIn === null) return (this.#random ??= seededRandom(this.#seed("")))();
    return (this.#conditionRandom ??= seededRandom(this.#seed("?")))();
  }

  #seed(suffix: string): string {
    // A run that goes on for another draws the same numbers: what was done with them is in its log.
    const run = this.turn.state.lineage?.rootRunId ?? this.turn.runId;
    return this.#prefix === "" ? run : `${run}/${this.#prefix}${suffix}`;
  }

  /** The promise of an answer. After the turn it never settles: the next turn replays the code, which asks again. */
  requestResult(key: string, isAdded = false): Promise<unknown> {
    const isOutOfOrder = this.gate?.isOutOfOrder(key, isAdded) === true;
    this.gate?.markReached(key);
    // An earlier attempt at this step may have left it behind.
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
      `Run ${runId}: "${key}" was asked for after the run had been parked. The workflow awaits something that is not under ctx beside a durable wait; put it into a step.`,
    );
  }

  /** What the log has under this key. The same name must still be the same kind of thing. */
  findRecorded<Kind extends Op["kind"]>(key: string, kind: Kind): Extract<Op, { kind: Kind }> | undefined {
    const op = this.turn.state.ops.get(key);
    if (op === undefined || op.kind === kind) return op as Extract<Op, { kind: Kind }> | undefined;
    this.turn.pauseDiverged([key], `the log has "${key}" as a ${op.kind}, the code now uses that name for a ${kind}`);
    return undefined;
  }

  /** Keeps the run from being parked while `work` brings this call under way. If that fails, the call has failed. */
  async startCall<T>(key: string, work: () => Promise<T>): Promise<T> {
    try {
      return await this.turn.attempts.preventParkingDuring(work);
    } catch (error) {
      this.turn.results.rejectCall(key, error);
      throw error;
    }
  }

  /** Begins what the log lacks: at once, unless the code has yet to come to calls that the log has. */
  startWhenLive(key: string, isAdded: boolean, start: () => void): void {
    if (this.gate === null) start();
    else this.gate.startWhenLive(key, isAdded, start);
  }

  /** The same for what is awaited. It comes back when the call may begin; after the end of the turn, never. */
  waitUntilLive(key: string, isAdded: boolean): Promise<void> | undefined {
    if (this.gate === null) return undefined;
    return new Promise((resolve) => this.startWhenLive(key, isAdded, resolve));
  }

  #markWaitingUntil(result: Promise<unknown>): void {
    this.#openCallCount += 1;
    if (this.#openCallCount === 1) this.turn.attempts.onBodyWaiting(this.stepAttempt as TurnAttempt);
    const onSettled = () => {
      if (this.#isClosed) return;
      this.#openCallCount -= 1;
      if (this.#openCallCount === 0) this.turn.attempts.retain();
    };
    result.then(onSettled, onSettled);
  }

  /** The body has ended; what it asked for and did not wait for is not its business any more. */
  close(): void {
    this.gate?.close();
    if (!this.#isClosed && this.#openCallCount > 0) {
      this.turn.attempts.retain();
      this.#withdrawOpenCalls();
    }
    this.#isClosed = true;
  }

  /** They are over when the end of the step is in the log; a signal that is decided about before that is for others. */
  #withdrawOpenCalls(): void {
    for (const key of this.turn.results.pending.keys()) {
      if (key.startsWith(this.#prefix)) (this.turn.withdrawnKeys ??= new Set()).add(key);
    }
  }

  raise(signal: FlowControlInterrupt): void {
    this.turn.flowControl.raise(signal, this.stepAttempt);
  }
}

/** Made for every item, so it makes nothing before the code asks for it: most items do nothing durably. */
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

/** In a loop with a cursor, "the second call" is another one each time the loop is continued. */
function createRepeatedNameError(name: string, step: string): InvalidInputError {
  return new InvalidInputError(
    `"${name}" is used again after the cursor of step "${step}" has moved. In a loop of your own, give each item's calls a name of their own, such as \`${name} \${id}\`; over(), records(), batches() and each() do that by themselves.`,
  );
}
