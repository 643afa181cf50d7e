/**
 * Replay first, then go live.
 *
 * The results of calls are durable before code sees them, so in unchanged code no recorded call depends on one that is not
 * recorded: replay alone brings the code to every call in the log. As long as the log has calls that the code has not made
 * (they are left over), a call that the log lacks is therefore held back. Either the code comes to what is left over, and
 * the held calls begin in the order in which they were made; or it never does, because the code has changed, and the run
 * is paused before anything ran that its log may have under another name.
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
  /** How long code at rest may take to make the calls that are left over. */
  readonly replayGraceMs: number;
  /** Something is executed, delivered or written: it may lead the code to what is left over. */
  isMakingProgress(): boolean;
  /** The call begins although something is left over: the log has to say so. */
  onAdded(key: string): void;
  /** Held calls and left-over keys are all that there is. */
  onMismatch(gatedKeys: readonly string[], leftOver: readonly string[]): void;
}

export class ReplayGate {
  readonly #host: ReplayGateHost;
  readonly #leftOver: Set<string>;
  #gatedCalls: GatedCall[] = [];
  #timer: Timer | null = null;
  #seqAtGraceStart = 0;

  /** @param keys what the log has of this code, as far as the code must ask for it again */
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

  /** The code has come to this call. */
  markReached(key: string): void {
    if (this.#leftOver.delete(key) && this.#leftOver.size === 0) this.#startGatedCalls();
    else if (this.#gatedCalls.length > 0) this.#restartGrace();
  }

  /**
   * Whether the answer to this call is delivered outside the order of the log: its record stands behind records of calls
   * that the code makes later, and would otherwise be waited for by them.
   */
  isOutOfOrder(key: string, isAdded: boolean): boolean {
    if (this.#host.state.addedCalls?.has(key) === true) return true;
    return this.isReplaying && !this.#host.state.ops.has(key) && this.#isExempt(key, isAdded);
  }

  /** Begins a call that the log lacks: now, or when nothing is left over. */
  startWhenLive(key: string, isAdded: boolean, start: () => void): void {
    if (!this.isReplaying) return start();
    if (this.#isExempt(key, isAdded)) {
      if (this.#host.state.addedCalls?.has(key) !== true) this.#host.onAdded(key);
      return start();
    }
    this.#gatedCalls.push({ key, start });
    this.#restartGrace();
  }

  /** True: the call was held back, and will not begin. */
  withdraw(key: string): boolean {
    const before = this.#gatedCalls.length;
    this.#gatedCalls = this.#gatedCalls.filter((call) => call.key !== key);
    return this.#gatedCalls.length < before;
  }

  close(): void {
    this.#host.runtime.clearTimeout(this.#timer);
    this.#timer = null;
    this.#gatedCalls = [];
  }

  #isExempt(key: string, isAdded: boolean): boolean {
    const { state } = this.#host;
    return (
      isAdded || state.addedCalls?.has(key) === true || state.callsToRedo?.has(key) === true || isAccepted(state, key)
    );
  }

  #startGatedCalls(): void {
    const gatedCalls = this.#gatedCalls;
    this.close();
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
    // A message that arrived, or a timer, may lead the code to what is left over as well.
    if (this.#host.isMakingProgress() || this.#host.state.seq !== this.#seqAtGraceStart) return this.#restartGrace();
    this.#host.onMismatch(
      this.#gatedCalls.map(({ key }) => key),
      this.leftOver,
    );
  }
}

/** What the handler of a function must ask for again. */
export function keysOfHandler(state: RunState): string[] {
  const keys: string[] = [];
  for (const [key, op] of state.ops) {
    // Patches may be taken out of the code, and a pause lies behind a run that goes on.
    if (op.kind === "patch" || op.kind === "pause" || isCompensation(key) || key === onFailureStep) continue;
    if (!isAccepted(state, key)) keys.push(key);
  }
  return keys;
}

/**
 * What the body of a declared step that goes on after a rest must ask for again. Once its cursor has moved, that is what
 * it did for the item in flight: what it did for others, under whichever names, lies behind it.
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
