/** Calls the code of a run: its handler, with its input, in a context and a stack frame of its own. */
import { event } from "../../core/run/event.js";
import type { WorkflowContext } from "../../define/context.js";
import { stepping } from "../../define/step-engine.js";
import { callInside, callsAreHeard } from "../../telemetry/around.js";
import { inContextOfItsOwn } from "../../telemetry/async-context.js";
import { CallScope } from "../replay/call-scope.js";
import { createContext } from "../replay/context.js";
import { keysOfHandler, ReplayGate } from "../replay/replay-gate.js";
import { DeclaredSteps } from "../step/declared-steps.js";
import { noteChangedCode } from "./code-change.js";
import { handlerReturned, handlerThrew } from "./handler-end.js";
import { knownInput, withInput } from "./input.js";
import type { HandlerPort, WholeTurn } from "./ports.js";
import { pauseIfItFails } from "./user-code.js";

export class Handler implements HandlerPort {
  input: unknown;
  thrown: { readonly error: unknown } | null = null;
  gate: ReplayGate | null = null;
  patches: Map<string, boolean> | null = null;
  readonly #turn: WholeTurn;
  #gates: Set<ReplayGate> | null = null;
  #endTrial: (() => void) | null = null;

  constructor(turn: WholeTurn) {
    this.#turn = turn;
  }

  /** Not in the context of the code that started the run, sent it a message or shared a commit with it. */
  call(): void {
    const { state, host } = this.#turn;
    const begin = () => inContextOfItsOwn(() => this.#call());
    if ((state.blocked?.size ?? 0) === 0) return begin();
    host.trials.enqueue(this, begin);
  }

  skip(): void {
    const turn = this.#turn;
    turn.phase.on({ type: "code called" });
    this.input = knownInput(turn);
    turn.results.open();
  }

  close(): void {
    if (this.#gates !== null) for (const gate of this.#gates) gate.close();
    this.endTrial();
  }

  // ── A run that has blocked the event loop of a worker is executed apart from others like it ────────────────────────

  get runId(): string {
    return this.#turn.runId;
  }

  get slots() {
    return this.#turn.slots;
  }

  onTrial(end: () => void): void {
    this.#endTrial = end;
  }

  endTrial(): void {
    this.#endTrial?.();
    this.#endTrial = null;
  }

  // ── The call ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #call(): void {
    const turn = this.#turn;
    turn.phase.on({ type: "code called" });
    if (turn.definition.timeoutMs !== null) turn.inboxProcessor.setAlarm();
    withInput(turn, (input) => this.#callWith(input));
  }

  #callWith(input: unknown): void {
    const turn = this.#turn;
    this.input = input;
    turn.results.open();
    let result: Promise<unknown>;
    try {
      result = Promise.resolve(turn.inFrame("", () => this.#enter(input)));
    } catch (error) {
      return pauseIfItFails(turn, () => handlerThrew(turn, error));
    }
    result.then(
      (output) => pauseIfItFails(turn, () => handlerReturned(turn, output)),
      (error) => pauseIfItFails(turn, () => handlerThrew(turn, error)),
    );
  }

  #enter(input: unknown): unknown {
    const { definition, run } = this.#turn;
    const ctx = this.#createContext();
    const { handler } = definition;
    return callsAreHeard() ? callInside(run, null, () => handler(ctx, input)) : handler(ctx, input);
  }

  #createContext(): WorkflowContext<any> {
    const turn = this.#turn;
    noteChangedCode(turn);
    const isFunction = turn.definition.declared === null;
    if (isFunction && turn.state.ops.size > 0) this.gate = this.openGate(keysOfHandler(turn.state));
    const scope = new CallScope(turn, null, this.gate);
    const ctx = createContext(scope);
    return isFunction ? ctx : Object.assign(ctx, { [stepping]: new DeclaredSteps(scope) });
  }

  // ── Replay first, then go live ─────────────────────────────────────────────────────────────────────────────────────

  openGate(keys: readonly string[]): ReplayGate | null {
    if (keys.length === 0) return null;
    const turn = this.#turn;
    const { state, host } = turn;
    const gate = new ReplayGate(
      {
        state,
        runtime: host.runtime,
        replayGraceMs: host.replayGraceMs,
        isMoving: () =>
          turn.attempts.busy || turn.slots.waiting > 0 || turn.results.delivering || turn.writer.unsettled,
        onAdded: (key) => void turn.pendingWrites.events.push(event("call.added", { node: key })),
        onMismatch: (held, leftOver) => turn.doesNotFit(held, leftOver),
      },
      keys,
    );
    (this.#gates ??= new Set()).add(gate);
    return gate;
  }

  get holdsCalls(): boolean {
    if (this.#gates !== null) for (const gate of this.#gates) if (gate.holdsCalls) return true;
    return false;
  }
}
