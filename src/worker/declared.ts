/** Declared steps, as the authoring styles ask for them: what they become in the engine. */
import { isCompensation } from "../core/compensation.js";
import type { FrozenDag } from "../core/dag.js";
import { dataOf, event } from "../core/event.js";
import { toFailure } from "../core/failure.js";
import { type FlowAction, FlowSignal } from "../core/flow-control.js";
import { routeOf } from "../core/route.js";
import { scopeMark } from "../core/scope.js";
import type { StepOp } from "../core/state.js";
import type { StepTools } from "../define/context.js";
import type {
  DeclaredStep,
  DispatchedNode,
  HeroRef,
  KnownStep,
  Stepping,
  StepRecord,
  StepScope,
} from "../define/stepping.js";
import type { RunRecord } from "../store/store.js";
import { openCheckpoints } from "./checkpoints.js";
import { createContext } from "./context.js";
import { Dispatcher } from "./dispatch.js";
import type { Execution } from "./execution.js";
import { Scope } from "./scope.js";
import { historyOf, onFailureStep, Step, type TurnExecution } from "./step.js";
import type { Turn } from "./turn.js";

export class DeclaredSteps implements Stepping {
  readonly #scope: Scope;
  readonly #turn: Turn;
  #dispatcher: Dispatcher | null = null;

  constructor(scope: Scope) {
    this.#scope = scope;
    this.#turn = scope.turn;
    this.#leaveBehind();
  }

  /** What steps that are over have recorded, nobody will ask for again: it is not what the code still has to replay. */
  #leaveBehind(): void {
    const { answers, state } = this.#turn;
    for (const key of state.ops.keys()) {
      const mark = key.indexOf(scopeMark);
      const step = state.ops.get(mark < 0 ? key : key.slice(0, mark));
      if (step?.kind === "step" && (step.phase === "completed" || step.phase === "skipped")) answers.note(key);
    }
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
    return this.#turn.state.position;
  }

  get known(): readonly KnownStep[] {
    const steps: KnownStep[] = [];
    for (const [name, op] of this.#turn.state.ops) {
      if (op.kind !== "step" || !isDeclared(name)) continue;
      // One that failed for good is not behind it: whoever asks for it again is told so again, and the run fails.
      steps.push({ name, phase: op.phase === "completed" || op.phase === "skipped" ? op.phase : "open" });
    }
    return steps;
  }

  execute(declared: DeclaredStep): Promise<unknown> {
    const turn = this.#turn;
    const { name, queue, priority } = declared;
    const isNew = !turn.state.ops.has(name);
    // Whoever sends a run to a step wants it to go on there now.
    const waitMs = isNew && turn.state.position === name ? 0 : declared.waitMs;
    const station = { route: routeOf(turn.definition.name, queue), priority: priority ?? turn.run.priority };
    turn.enterStation(station, isNew && waitMs > 0);
    const step = new Step(turn, name, (execution) => runIn(turn, declared, execution as TurnExecution, declared.body), {
      timeoutMs: declared.timeoutMs,
      onCrash: declared.onCrash,
      input: undefined,
      kind: "plain",
      declared: true,
      undoable: declared.compensate !== null,
      places: declared.places,
      waitMs,
      react: (error, op) => declared.react(error, historyOf(op)),
    });
    return step.call(this.#scope);
  }

  compensateWith(steps: Iterable<DeclaredStep>): void {
    const turn = this.#turn;
    for (const declared of steps) {
      const { name, compensate, retry } = declared;
      if (compensate === null) continue;
      const body = (execution: StepTools) =>
        runIn(turn, declared, execution as TurnExecution, (scope) => compensate(scope, turn.outputOf(name)));
      turn.compensators.set(name, { body, retry, declared: true });
    }
  }

  recordOf(name: string): StepRecord | null {
    const op = this.#turn.state.ops.get(name);
    if (op?.kind !== "step") return null;
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
    this.#turn.outbox.events.push(event("step.skipped", place, { by: "code" }));
    this.#turn.stir();
  }

  async passOver(name: string): Promise<void> {
    const op = this.#turn.state.ops.get(name) as StepOp;
    const place = { node: name, attempt: op.attempt + 1, outcome: "skipped_by_flow_control" } as const;
    this.#turn.answers.note(name);
    await this.#turn.submit([event("step.skipped", place, { by: "code" })]);
  }

  hold(error: Error, step?: string): Promise<never> {
    this.#turn.hold(error.message, toFailure(error), step);
    return new Promise(() => {});
  }

  atEnd(): void {
    for (const key of this.#turn.state.ops.keys()) this.#turn.answers.note(key);
  }
}

/** Not a part of a step, nor what undoes one. */
export const isDeclared = (key: string): boolean =>
  !key.includes(scopeMark) && !isCompensation(key) && key !== onFailureStep;

function heroOf({ heroType, heroId }: RunRecord): HeroRef | null {
  return heroType === null || heroId === null ? null : { type: heroType, id: heroId };
}

function runIn(
  turn: Turn,
  declared: DeclaredStep,
  execution: TurnExecution,
  body: (scope: StepScope) => unknown,
): unknown {
  const scope = new Scope(turn, execution);
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
    leave,
    withoutRecords: <T>(what: string, ask: () => Promise<T>) => scope.withoutRecords(what, ask),
    inFrame: <T>(call: () => T) => turn.inFrame(execution.key, call),
  };
  const { checkpoints: options } = declared;
  if (options === null) return body({ ...parts, checkpoints: null });
  return openCheckpoints(execution, options, leave).then((checkpoints) => {
    execution.checkpoints = checkpoints;
    return body({ ...parts, checkpoints });
  });
}

function described(execution: TurnExecution, name: string): StepScope["execution"] {
  const { id, attempt, idempotencyKey, log, progress } = execution;
  return {
    id,
    name,
    attempt,
    idempotencyKey,
    log,
    progress,
    get abortSignal() {
      return (execution as Execution).abortSignal;
    },
  };
}
