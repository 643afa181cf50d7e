/** Calls the workflow's handler with the run's input, in a fresh async context and a watchdog frame. */
import { newEvent } from "../../core/run/event.js";
import type { WorkflowContext } from "../../define/context.js";
import { stepEngineKey } from "../../define/step-engine.js";
import { inIsolatedContext } from "../../telemetry/async-context.js";
import { callWithInterceptors, hasCallListeners } from "../../telemetry/call-interception.js";
import { CallScope } from "../replay/call-scope.js";
import { createContext } from "../replay/context.js";
import { keysOfHandler, ReplayGate } from "../replay/replay-gate.js";
import { DeclaredSteps } from "../step/declared-steps.js";
import { recordCodeChange } from "./code-change.js";
import { handlerReturned, handlerThrew } from "./handler-end.js";
import type { HandlerPort, WholeTurn } from "./ports.js";
import { pauseRunOnError } from "./user-code.js";
import { callWithInput, readInputOfStart } from "./validated-input.js";

export class Handler implements HandlerPort {
  input: unknown;
  thrown: { readonly error: unknown } | null = null;
  gate: ReplayGate | null = null;
  patches: Map<string, boolean> | null = null;
  readonly #turn: WholeTurn;
  #gates: Set<ReplayGate> | null = null;
  #releaseSuspectSlot: (() => void) | null = null;

  constructor(turn: WholeTurn) {
    this.#turn = turn;
  }

  /**
   * The code runs in an isolated async context, not in the context of the caller that started the run or sent a
   * message.
   */
  call(): void {
    const { state, host } = this.#turn;
    const startCode = () => inIsolatedContext(() => this.#call());
    if ((state.blockedWorkers?.size ?? 0) === 0) return startCode();
    host.suspectRuns.enqueue(this, startCode);
  }

  skip(): void {
    const turn = this.#turn;
    turn.phase.on({ type: "code called" });
    this.input = readInputOfStart(turn);
    turn.results.startDelivery();
  }

  close(): void {
    if (this.#gates !== null) for (const gate of this.#gates) gate.close();
    this.releaseSuspectSlot();
  }

  // ── Runs suspected of blocking the event loop are executed one at a time ───────────────────────────────────────────

  get runId(): string {
    return this.#turn.runId;
  }

  get slots() {
    return this.#turn.slots;
  }

  onSuspectSlotAcquired(release: () => void): void {
    this.#releaseSuspectSlot = release;
  }

  releaseSuspectSlot(): void {
    this.#releaseSuspectSlot?.();
    this.#releaseSuspectSlot = null;
  }

  // ── The call ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #call(): void {
    const turn = this.#turn;
    turn.phase.on({ type: "code called" });
    if (turn.definition.timeoutMs !== null) turn.inboxProcessor.scheduleDueTimer();
    callWithInput(turn, (input) => this.#callHandler(input));
  }

  #callHandler(input: unknown): void {
    const turn = this.#turn;
    this.input = input;
    turn.results.startDelivery();
    let result: Promise<unknown>;
    try {
      result = Promise.resolve(turn.callInFrame("", () => this.#invoke(input)));
    } catch (error) {
      return pauseRunOnError(turn, () => handlerThrew(turn, error));
    }
    result.then(
      (output) => pauseRunOnError(turn, () => handlerReturned(turn, output)),
      (error) => pauseRunOnError(turn, () => handlerThrew(turn, error)),
    );
  }

  #invoke(input: unknown): unknown {
    const { definition, run } = this.#turn;
    const ctx = this.#createContext();
    const { handler } = definition;
    return hasCallListeners() ? callWithInterceptors(run, null, () => handler(ctx, input)) : handler(ctx, input);
  }

  #createContext(): WorkflowContext<any> {
    const turn = this.#turn;
    recordCodeChange(turn);
    const isFunction = turn.definition.declared === null;
    if (isFunction && turn.state.ops.size > 0) this.gate = this.openGate(keysOfHandler(turn.state));
    const scope = new CallScope(turn, null, this.gate);
    const ctx = createContext(scope);
    return isFunction ? ctx : Object.assign(ctx, { [stepEngineKey]: new DeclaredSteps(scope) });
  }

  // ── Gates, which delay new calls until the replay has reached every recorded call ──────────────────────────────────

  openGate(keys: readonly string[]): ReplayGate | null {
    if (keys.length === 0) return null;
    const turn = this.#turn;
    const { state, host } = turn;
    const gate = new ReplayGate(
      {
        state,
        runtime: host.runtime,
        replayGraceMs: host.replayGraceMs,
        isMakingProgress: () =>
          turn.attempts.isBusy ||
          turn.slots.waitingCount > 0 ||
          turn.results.isDelivering ||
          turn.writer.hasUnacknowledgedWrites,
        onAdded: (key) => void turn.pendingWrites.events.push(newEvent("call.added", { node: key })),
        onMismatch: (gatedKeys, leftOver) => turn.pauseMismatched(gatedKeys, leftOver),
      },
      keys,
    );
    (this.#gates ??= new Set()).add(gate);
    if (turn.isOver) gate.close();
    return gate;
  }

  get hasGatedCalls(): boolean {
    if (this.#gates !== null) for (const gate of this.#gates) if (gate.hasGatedCalls) return true;
    return false;
  }
}
