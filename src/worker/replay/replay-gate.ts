/**
 * Delays new calls until the code has repeated all recorded ones.
 *
 * The results of calls are durable before code sees them, so in unchanged code no recorded call depends on an
 * unrecorded one: replay alone makes the code reach every call in the log. As long as the log has calls that the code
 * has not made (left-over calls), a call that is not in the log is therefore gated. If the code reaches all left-over
 * calls, the gated calls start in the order in which they were made. If it never does, the code has changed, and the
 * run is paused before it runs a step that the log may have under another name.
 */
import { isCompensation } from "../../core/run/compensation.js";
import type { RunState } from "../../core/run/state.js";
import { itemPrefix, scopeOf } from "../../core/run/step-key.js";
import { isAccepted, onFailureStep } from "../../core/run/step-name.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";

interface GatedCall {
  readonly key: string;
  readonly start: () => void;
}

export interface ReplayGateHost {
  readonly runtime: Runtime;
  readonly state: RunState;
  /** If nothing is in progress and the code makes no call for this long while calls are gated, the run is paused. */
  readonly replayGraceMs: number;
  /**
   * Whether a step runs, a result is being delivered or a write is under way: the code may then still reach the calls.
   */
  isMakingProgress(): boolean;
  /** Called when a call starts although calls are left over; the host records that in the log. */
  onAdded(key: string): void;
  /** Called when the gated calls wait for left-over calls that the code does not make; the host pauses the run. */
  onMismatch(gatedKeys: readonly string[], leftOver: readonly string[]): void;
}

export class ReplayGate {
  readonly #host: ReplayGateHost;
  readonly #leftOver: Set<string>;
  #gatedCalls: GatedCall[] = [];
  #timer: Timer | null = null;
  /** The last event of the log when the grace period was last restarted. */
  #seqAtGraceStart = 0;
  #isClosed = false;

  /** @param keys the calls in the log that the code must make again */
  constructor(host: ReplayGateHost, keys: Iterable<string>) {
    this.#host = host;
    this.#leftOver = new Set(keys);
  }

  get leftOver(): readonly string[] {
    return [...this.#leftOver];
  }

  get isReplaying(): boolean {
    return this.#leftOver.size > 0;
  }

  get hasGatedCalls(): boolean {
    return this.#gatedCalls.length > 0;
  }

  /** Called when the code makes this call. */
  markReached(key: string): void {
    if (this.#leftOver.delete(key) && this.#leftOver.size === 0) this.#startGatedCalls();
    else if (this.#gatedCalls.length > 0) this.#restartGrace();
  }

  /**
   * Whether the result of this call is delivered outside the order of the log. The call was added to the code, so the log
   * has its result after results of calls that the code makes later. Delivery in log order would wait for those calls,
   * which the code can only make after this one has its result.
   */
  isOutOfOrder(key: string, isAdded: boolean): boolean {
    if (this.#host.state.addedCalls?.has(key) === true) return true;
    return this.isReplaying && !this.#host.state.ops.has(key) && this.#isExempt(key, isAdded);
  }

  /** Starts a call that is not in the log: at once if it is exempt or no calls are left over, otherwise when none are. */
  startWhenLive(key: string, isAdded: boolean, start: () => void): void {
    if (!this.isReplaying) return start();
    if (this.#isClosed) return;
    if (this.#isExempt(key, isAdded)) {
      if (this.#host.state.addedCalls?.has(key) !== true) this.#host.onAdded(key);
      return start();
    }
    this.#gatedCalls.push({ key, start });
    this.#restartGrace();
  }

  /** Removes a gated call, so that it will not start. Returns false if the call was not gated. */
  withdraw(key: string): boolean {
    const before = this.#gatedCalls.length;
    this.#gatedCalls = this.#gatedCalls.filter((call) => call.key !== key);
    return this.#gatedCalls.length < before;
  }

  /** From now on no gated call starts: the turn, or the body that makes the calls, is over. */
  close(): void {
    this.#isClosed = true;
    this.#forgetGatedCalls();
  }

  #forgetGatedCalls(): void {
    this.#host.runtime.clearTimeout(this.#timer);
    this.#timer = null;
    this.#gatedCalls = [];
  }

  /** Whether the call may start while calls are left over: it was declared as added, was accepted, or must be redone. */
  #isExempt(key: string, isAdded: boolean): boolean {
    const { state } = this.#host;
    return (
      isAdded || state.addedCalls?.has(key) === true || state.callsToRedo?.has(key) === true || isAccepted(state, key)
    );
  }

  #startGatedCalls(): void {
    const gatedCalls = this.#gatedCalls;
    this.#forgetGatedCalls();
    for (const { start } of gatedCalls) start();
  }

  #restartGrace(): void {
    this.#seqAtGraceStart = this.#host.state.seq;
    this.#host.runtime.clearTimeout(this.#timer);
    this.#timer = this.#host.runtime.setTimeout(() => this.#onGraceOver(), this.#host.replayGraceMs);
  }

  #onGraceOver(): void {
    this.#timer = null;
    if (this.#gatedCalls.length === 0 || !this.isReplaying) return;
    // If the log has grown, a message or a timer has arrived, which may make the code reach the left-over calls.
    if (this.#host.isMakingProgress() || this.#host.state.seq !== this.#seqAtGraceStart) return this.#restartGrace();
    this.#host.onMismatch(
      this.#gatedCalls.map(({ key }) => key),
      this.leftOver,
    );
  }
}

/** Returns the keys of the recorded calls that the handler of a function workflow must make again. */
export function keysOfHandler(state: RunState): string[] {
  const keys: string[] = [];
  for (const [key, op] of state.ops) {
    // A patch may be removed from the code, and a pause in the log is over once the run was resumed.
    if (op.kind === "patch" || op.kind === "pause" || isCompensation(key) || key === onFailureStep) continue;
    if (!isAccepted(state, key)) keys.push(key);
  }
  return keys;
}

/**
 * Returns the keys of the recorded calls that the body of a declared step must make again when it resumes after a wait.
 * Once the step's cursor has moved, only the calls of the current item are repeated, not those of earlier items.
 */
export function keysOfBody(state: RunState, step: string, item: number): string[] {
  const keys: string[] = [];
  const scope = scopeOf(step);
  const currentItem = scope + itemPrefix(item);
  for (const key of state.bodyCalls?.get(step) ?? []) {
    const op = state.ops.get(key);
    if (op === undefined || op.kind === "patch" || op.kind === "pause") continue;
    const isOfBody = item === 0 && !key.startsWith("#", scope.length);
    if (!isOfBody && !key.startsWith(currentItem)) continue;
    if (!isAccepted(state, key)) keys.push(key);
  }
  return keys;
}
