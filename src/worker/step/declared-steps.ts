/** Declared steps, as the authoring styles ask for them: what they become in the engine. */

import { toFailure } from "../../core/encoding/error-record.js";
import type { FrozenDag } from "../../core/graph/frozen-dag.js";
import { routeOf } from "../../core/naming/route.js";
import { isCompensation } from "../../core/run/compensation.js";
import { dataOf, event } from "../../core/run/event.js";
import { type FlowAction, FlowSignal } from "../../core/run/flow-control.js";
import { keysOfNames } from "../../core/run/renamed-nodes.js";
import type { StepOp } from "../../core/run/state.js";
import { scopeMark } from "../../core/run/step-key.js";
import { isAccepted, onFailureStep } from "../../core/run/step-name.js";
import type { StepTools } from "../../define/context.js";
import type { HeroRef } from "../../define/hero.js";
import type {
  DeclaredStep,
  DispatchedNode,
  KnownStep,
  Stepping,
  StepRecord,
  StepScope,
} from "../../define/step-engine.js";
import type { RunRecord } from "../../store/contract/store.js";
import { Dispatcher } from "../children/dispatch.js";
import { CallScope } from "../replay/call-scope.js";
import { createContext } from "../replay/context.js";
import { keysOfBody, type ReplayGate } from "../replay/replay-gate.js";
import type { StepTurn } from "../turn/ports.js";
import { enterStation } from "../turn/station.js";
import type { Attempt } from "./attempt.js";
import { openCheckpoints } from "./checkpoints.js";
import { historyOf, Step } from "./step.js";
import type { TurnAttempt } from "./turn-attempt.js";

export class DeclaredSteps implements Stepping {
  readonly #scope: CallScope;
  readonly #turn: StepTurn;
  #dispatcher: Dispatcher | null = null;
  /** What the log calls a step of the code, and the other way round: a step may have been renamed. */
  readonly #keyOf: (name: string) => string;
  readonly #nameOf = new Map<string, string>();

  constructor(scope: CallScope) {
    this.#scope = scope;
    this.#turn = scope.turn;
    this.#keyOf = keysOfNames(this.#turn);
    const { aliases, declared } = this.#turn.definition;
    if (aliases !== null || this.#turn.state.renamed !== null)
      for (const { name } of declared?.nodes ?? []) this.#nameOf.set(this.#keyOf(name), name);
  }

  get dag(): FrozenDag | null {
    return this.#turn.state.dag;
  }

  dispatch(node: DispatchedNode): Promise<unknown> {
    this.#dispatcher ??= new Dispatcher(this.#scope);
    return this.#dispatcher.dispatch(node);
  }

  get began(): "chain" | "graph" | null {
    return this.#turn.state.steps;
  }

  get position(): string | null {
    const { position } = this.#turn.state;
    return position === null ? null : (this.#nameOf.get(position) ?? position);
  }

  get known(): readonly KnownStep[] {
    const steps: KnownStep[] = [];
    for (const [key, op] of this.#turn.state.ops) {
      if (op.kind !== "step" || !isDeclared(key)) continue;
      const name = this.#nameOf.get(key) ?? key;
      // One that failed for good is not behind it: code that asks for it again is told so again, and the run fails.
      steps.push({ name, phase: op.phase === "completed" || op.phase === "skipped" ? op.phase : "open" });
    }
    return steps;
  }

  execute(declared: DeclaredStep): Promise<unknown> {
    const turn = this.#turn;
    const { name, queue, priority } = declared;
    const key = this.#keyOf(name);
    const isNew = !turn.state.ops.has(key);
    // An operator who sends a run to a step wants it to go on there now.
    const waitMs = isNew && this.position === name ? 0 : declared.waitMs;
    const station = { route: routeOf(turn.definition.name, queue), priority: priority ?? turn.run.priority };
    enterStation(turn, station, isNew && waitMs > 0);
    const step = new Step(turn, key, (execution) => runIn(turn, declared, execution as TurnAttempt, declared.body), {
      timeoutMs: declared.timeoutMs,
      onCrash: declared.onCrash,
      input: undefined,
      kind: "plain",
      declared: true,
      job: declared.job !== null,
      undoable: declared.compensate !== null,
      places: declared.places,
      waitMs,
      react: (error, op) => declared.react(error, historyOf(op), turn.host.runtime.random()),
    });
    return step.call(this.#scope);
  }

  compensateWith(steps: Iterable<DeclaredStep>): void {
    const turn = this.#turn;
    for (const declared of steps) {
      const { name, compensate, retry } = declared;
      if (compensate === null) continue;
      const key = this.#keyOf(name);
      const body = (execution: StepTools) =>
        runIn(turn, declared, execution as TurnAttempt, (scope) => compensate(scope, turn.outputOf(key)));
      (turn.compensators ??= new Map()).set(key, { body, retry, declared: true });
    }
  }

  recordOf(name: string): StepRecord | null {
    const op = this.#turn.state.ops.get(this.#keyOf(name));
    if (op?.kind !== "step") return null;
    // One that paused its run and was not released is as good as failed: nothing new begins beside it.
    if (op.held !== null) return { phase: "failed" };
    if (op.phase !== "completed") return { phase: op.phase === "started" || op.phase === "again" ? "open" : op.phase };
    return {
      phase: "completed",
      get output() {
        return dataOf(op, "step.completed").output;
      },
    };
  }

  leaveOut(name: string): void {
    const attempt = (this.#turn.state.rewound?.get(name) ?? 0) + 1;
    const place = { node: name, attempt, outcome: "skipped_by_condition" } as const;
    this.#turn.pendingWrites.events.push(event("step.skipped", place, { by: "code" }));
    this.#turn.scheduleIdleCheck();
  }

  async passOver(name: string): Promise<void> {
    const op = this.#turn.state.ops.get(name) as StepOp;
    const place = { node: name, attempt: op.attempt + 1, outcome: "skipped_by_flow_control" } as const;
    await this.#turn.submit([event("step.skipped", place, { by: "code" })]);
  }

  pauseWithError(error: Error, step?: string): Promise<never> {
    this.#turn.pauseWithError(error.message, toFailure(error), step);
    return new Promise(() => {});
  }

  isAccepted(name: string): boolean {
    return isAccepted(this.#turn.state, name);
  }

  doesNotFit(unrecorded: readonly string[], vanished: readonly string[]): Promise<never> {
    this.#turn.doesNotFit(unrecorded, vanished);
    return new Promise(() => {});
  }
}

/** Not a part of a step, nor what undoes one. */
export const isDeclared = (key: string): boolean =>
  !key.includes(scopeMark) && !isCompensation(key) && key !== onFailureStep;

function heroOf({ heroType, heroId }: RunRecord): HeroRef | null {
  return heroType === null || heroId === null ? null : { type: heroType, id: heroId };
}

/**
 * A body that goes on after a rest asks again for what it had asked for; a new attempt has nothing left over. A step with a
 * job has no code of its own that could change.
 */
function gateOf(turn: StepTurn, { job }: DeclaredStep, { key, wakes, checkpoints }: TurnAttempt): ReplayGate | null {
  return wakes && job === null ? turn.handler.openGate(keysOfBody(turn.state, key, checkpoints?.moves ?? 0)) : null;
}

function runIn(
  turn: StepTurn,
  declared: DeclaredStep,
  execution: TurnAttempt,
  body: (scope: StepScope) => unknown,
): unknown {
  const scope = new CallScope(turn, execution);
  execution.scope = scope;
  const leave = (action: FlowAction): never => {
    const signal = new FlowSignal(action);
    scope.raise(signal);
    throw signal;
  };
  const parts = {
    ctx: createContext(scope),
    hero: heroOf(turn.run),
    execution: described(execution, declared.name),
    wakes: execution.wakes,
    jobRun: spentRuns(turn, execution.key) + 1,
    jobFailed: () => {
      execution.jobFailed = true;
    },
    leave,
    withoutRecords: <T>(what: string, ask: () => Promise<T>) => scope.withoutRecords(what, ask),
    inFrame: <T>(call: () => T) => turn.inFrame(execution.key, call),
  };
  const { checkpoints: options } = declared;
  if (options === null) {
    scope.gate = gateOf(turn, declared, execution);
    return body({ ...parts, checkpoints: null });
  }
  return openCheckpoints(execution, options, leave).then((checkpoints) => {
    execution.checkpoints = checkpoints;
    scope.gate = gateOf(turn, declared, execution);
    return body({ ...parts, checkpoints });
  });
}

function spentRuns({ state }: StepTurn, step: string): number {
  const op = state.ops.get(step);
  return op?.kind === "step" ? op.spent : 0;
}

function described(execution: TurnAttempt, name: string): StepScope["execution"] {
  const { id, attempt, idempotencyKey, log, progress } = execution;
  return {
    id,
    name,
    attempt,
    idempotencyKey,
    log,
    progress,
    get abortSignal() {
      return (execution as Attempt).abortSignal;
    },
    get resumedBy() {
      return (execution as Attempt).resumedBy;
    },
  };
}
