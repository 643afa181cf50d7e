/** The engine's side of declared steps: executes the steps that the class and graph styles define. */

import { toFailure } from "../../core/encoding/error-record.js";
import type { FrozenDag } from "../../core/graph/frozen-dag.js";
import { routeOf } from "../../core/naming/route.js";
import { isCompensation } from "../../core/run/compensation.js";
import { dataOf, newEvent } from "../../core/run/event.js";
import { type FlowControlAction, FlowControlInterrupt } from "../../core/run/flow-control.js";
import { createStepKeyLookup } from "../../core/run/renamed-nodes.js";
import type { StepOp } from "../../core/run/state.js";
import { scopeSeparator } from "../../core/run/step-key.js";
import { isAccepted, onFailureStep } from "../../core/run/step-name.js";
import type { StepTools } from "../../define/context.js";
import type { HeroRef } from "../../define/hero.js";
import type {
  DeclaredStep,
  DispatchedNode,
  RecordedStep,
  StepEngine,
  StepRecord,
  StepScope,
} from "../../define/step-engine.js";
import type { RunRecord } from "../../store/contract/store.js";
import { Dispatcher } from "../children/dispatch.js";
import { CallScope } from "../replay/call-scope.js";
import { createContext } from "../replay/context.js";
import { keysOfBody, type ReplayGate } from "../replay/replay-gate.js";
import type { StepTurn } from "../turn/ports.js";
import { placeNextStep } from "../turn/step-placement.js";
import type { Attempt } from "./attempt.js";
import { openCheckpoints } from "./checkpoints.js";
import { historyOf, Step } from "./step.js";
import type { TurnAttempt } from "./turn-attempt.js";

export class DeclaredSteps implements StepEngine {
  readonly #scope: CallScope;
  readonly #turn: StepTurn;
  #dispatcher: Dispatcher | null = null;
  /** Maps a step's name in the code to its key in the log. The two differ when the step was renamed. */
  readonly #keyOf: (name: string) => string;
  /** Maps the keys of renamed steps back to their names in the code. */
  readonly #nameOf = new Map<string, string>();

  constructor(scope: CallScope) {
    this.#scope = scope;
    this.#turn = scope.turn;
    this.#keyOf = createStepKeyLookup(this.#turn);
    const { aliases, declared } = this.#turn.definition;
    if (aliases !== null || this.#turn.state.logNameByCodeName !== null)
      for (const { name } of declared?.nodes ?? []) this.#nameOf.set(this.#keyOf(name), name);
  }

  get dag(): FrozenDag | null {
    return this.#turn.state.importedDag;
  }

  dispatch(node: DispatchedNode): Promise<unknown> {
    this.#dispatcher ??= new Dispatcher(this.#scope);
    return this.#dispatcher.dispatch(node);
  }

  get executedAs(): "chain" | "graph" | null {
    return this.#turn.state.stepStructure;
  }

  get resumeAtStep(): string | null {
    const { movedToStep } = this.#turn.state;
    return movedToStep === null ? null : (this.#nameOf.get(movedToStep) ?? movedToStep);
  }

  get recordedSteps(): readonly RecordedStep[] {
    const steps: RecordedStep[] = [];
    for (const [key, op] of this.#turn.state.ops) {
      if (op.kind !== "step" || !isDeclared(key)) continue;
      const name = this.#nameOf.get(key) ?? key;
      // A step that failed for good is reported as open: the code calls it again and gets the recorded error.
      steps.push({ name, phase: op.phase === "completed" || op.phase === "skipped" ? op.phase : "open" });
    }
    return steps;
  }

  execute(declaredStep: DeclaredStep): Promise<unknown> {
    const turn = this.#turn;
    const { name, queue, priority } = declaredStep;
    const key = this.#keyOf(name);
    const isNew = !turn.state.ops.has(key);
    // An operator who moves a run to a step expects the step to start now, without its wait.
    const waitMs = isNew && this.resumeAtStep === name ? 0 : declaredStep.waitMs;
    const placement = { route: routeOf(turn.definition.name, queue), priority: priority ?? turn.run.priority };
    placeNextStep(turn, placement, isNew && waitMs > 0);
    const step = new Step(
      turn,
      key,
      (attempt) => runDeclaredBody(turn, declaredStep, attempt as TurnAttempt, declaredStep.body),
      {
        timeoutMs: declaredStep.timeoutMs,
        onCrash: declaredStep.onCrash,
        input: undefined,
        kind: "plain",
        declared: true,
        job: declaredStep.job !== null,
        undoable: declaredStep.compensate !== null,
        semaphore: declaredStep.semaphore,
        limit: declaredStep.limit,
        waitMs,
        react: (error, op) => declaredStep.react(error, historyOf(op), turn.host.runtime.random()),
      },
    );
    return step.call(this.#scope);
  }

  compensateWith(steps: Iterable<DeclaredStep>): void {
    const turn = this.#turn;
    for (const declaredStep of steps) {
      const { name, compensate, retry } = declaredStep;
      if (compensate === null) continue;
      const key = this.#keyOf(name);
      const body = (attempt: StepTools) =>
        runDeclaredBody(turn, declaredStep, attempt as TurnAttempt, (scope) => compensate(scope, turn.outputOf(key)));
      (turn.compensators ??= new Map()).set(key, { body, retry, declared: true });
    }
  }

  recordOf(name: string): StepRecord | null {
    const op = this.#turn.state.ops.get(this.#keyOf(name));
    if (op?.kind !== "step") return null;
    // A step whose pause an operator has not released is reported as failed, so that no new step starts beside it.
    if (op.pauseCause !== null) return { phase: "failed" };
    if (op.phase !== "completed")
      return { phase: op.phase === "started" || op.phase === "awaiting_attempt" ? "open" : op.phase };
    return {
      phase: "completed",
      get output() {
        return dataOf(op, "step.completed").output;
      },
    };
  }

  recordSkipped(name: string): void {
    const attempt = (this.#turn.state.attemptsBeforeRewind?.get(name) ?? 0) + 1;
    const place = { node: name, attempt, outcome: "skipped_by_condition" } as const;
    this.#turn.pendingWrites.events.push(newEvent("step.skipped", place, { by: "code" }));
    this.#turn.scheduleIdleCheck();
  }

  async skipRemovedStep(name: string): Promise<void> {
    const op = this.#turn.state.ops.get(name) as StepOp;
    const place = { node: name, attempt: op.attempt + 1, outcome: "skipped_by_flow_control" } as const;
    await this.#turn.submit([newEvent("step.skipped", place, { by: "code" })]);
  }

  pauseWithError(error: Error, step?: string): Promise<never> {
    this.#turn.pauseWithError(error.message, toFailure(error), step);
    return new Promise(() => {});
  }

  isAccepted(name: string): boolean {
    return isAccepted(this.#turn.state, name);
  }

  pauseForMismatch(unrecorded: readonly string[], vanished: readonly string[]): Promise<never> {
    this.#turn.pauseMismatched(unrecorded, vanished);
    return new Promise(() => {});
  }
}

/** Whether the key names a declared step itself, not a call inside one, a compensation or `onFailure`. */
export const isDeclared = (key: string): boolean =>
  !key.includes(scopeSeparator) && !isCompensation(key) && key !== onFailureStep;

function heroOf({ heroType, heroId }: RunRecord): HeroRef | null {
  return heroType === null || heroId === null ? null : { type: heroType, id: heroId };
}

/**
 * A body that resumes after a durable wait must repeat its recorded calls before it makes new ones, so it needs a gate.
 * Other bodies need none: a new attempt has no recorded calls, and the body of a step with a job is not user code, so it
 * cannot have changed.
 */
function openReplayGate(
  turn: StepTurn,
  { job }: DeclaredStep,
  { key, resumesAfterWait, checkpoints }: TurnAttempt,
): ReplayGate | null {
  return resumesAfterWait && job === null
    ? turn.handler.openGate(keysOfBody(turn.state, key, checkpoints?.moves ?? 0))
    : null;
}

function runDeclaredBody(
  turn: StepTurn,
  declaredStep: DeclaredStep,
  attempt: TurnAttempt,
  body: (scope: StepScope) => unknown,
): unknown {
  const scope = new CallScope(turn, attempt);
  attempt.scope = scope;
  const raiseFlowControl = (action: FlowControlAction): never => {
    const interrupt = new FlowControlInterrupt(action);
    scope.raise(interrupt);
    throw interrupt;
  };
  const parts = {
    ctx: createContext(scope),
    hero: heroOf(turn.run),
    execution: describeAttempt(attempt, declaredStep.name),
    resumesAfterWait: attempt.resumesAfterWait,
    jobRunNumber: countFailedJobRuns(turn, attempt.key) + 1,
    markJobFailed: () => {
      attempt.hasJobFailed = true;
    },
    leave: raiseFlowControl,
    withoutRecords: <T>(label: string, call: () => Promise<T>) => scope.withoutRecords(label, call),
    inFrame: <T>(call: () => T) => turn.callInFrame(attempt.key, call),
  };
  const { checkpoints: options } = declaredStep;
  if (options === null) {
    scope.gate = openReplayGate(turn, declaredStep, attempt);
    return body({ ...parts, checkpoints: null });
  }
  return openCheckpoints(attempt, options, raiseFlowControl).then((checkpoints) => {
    attempt.checkpoints = checkpoints;
    scope.gate = openReplayGate(turn, declaredStep, attempt);
    return body({ ...parts, checkpoints });
  });
}

function countFailedJobRuns({ state }: StepTurn, step: string): number {
  const op = state.ops.get(step);
  return op?.kind === "step" ? op.discardedJobRuns : 0;
}

function describeAttempt(turnAttempt: TurnAttempt, name: string): StepScope["execution"] {
  const { id, attempt, idempotencyKey, log, progress, spent } = turnAttempt;
  return {
    id,
    name,
    attempt,
    idempotencyKey,
    log,
    progress,
    spent,
    get abortSignal() {
      return (turnAttempt as Attempt).abortSignal;
    },
    get resumedBy() {
      return (turnAttempt as Attempt).resumedBy;
    },
  };
}
