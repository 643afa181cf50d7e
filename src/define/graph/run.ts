/** Takes a run through its graph: whatever has all that it depends on is executed, side by side. */
import { parseDuration } from "../../core/duration.js";
import { GraphError, PermanentError, StepNotDefinedError } from "../../core/errors.js";
import { Places } from "../../core/places.js";
import type { RetryPolicy } from "../../core/retry.js";
import { byRetryPolicy } from "../retrying.js";
import type { DeclaredStep, Stepping, StepScope } from "../stepping.js";
import { type AnyNode, type GraphStepOptions, retryOf, type StepContext } from "./node.js";
import { isAncestor, type Shape, type ShapeNode } from "./shape.js";

export interface GraphPlan {
  readonly shape: Shape;
  readonly concurrency: number;
  readonly followers: ReadonlyMap<string, readonly ShapeNode[]>;
  readonly steps: ReadonlyMap<string, (engine: Stepping) => DeclaredStep>;
}

export function planOf(shape: Shape, retry: RetryPolicy, concurrency: number): GraphPlan {
  const followers = new Map<string, ShapeNode[]>(shape.nodes.map(({ name }) => [name, []]));
  for (const node of shape.nodes) for (const name of node.after) followers.get(name)?.push(node);
  const steps = new Map(
    shape.nodes.map((node) => {
      const places = placesOf(node);
      return [node.name, (engine: Stepping) => ({ ...declare(shape, node, retry, engine), places })];
    }),
  );
  return { shape, concurrency, followers, steps };
}

/** One line for all runs of the process. */
function placesOf({ handle }: ShapeNode): Places | null {
  const limit = handle.kind === "step" ? handle.options.concurrency : undefined;
  return limit === undefined ? null : new Places(limit);
}

type Unplaced = Omit<DeclaredStep, "places">;

function declare(shape: Shape, node: ShapeNode, defaults: RetryPolicy, engine: Stepping): Unplaced {
  const { name, handle } = node;
  const options: GraphStepOptions = handle.kind === "step" ? handle.options : {};
  const undo = options.compensate;
  const policy = retryOf(options, defaults);
  return {
    name,
    waitMs: 0,
    timeoutMs: options.timeout === undefined ? null : parseDuration(options.timeout, `timeout of step "${name}"`),
    onCrash: options.onCrash ?? "rerun",
    queue: null,
    priority: null,
    checkpoints: null,
    retry: policy,
    compensate: undo === undefined ? null : (scope, output) => undo(contextOf(shape, node, engine, scope), output),
    body: (scope) => {
      const ctx = contextOf(shape, node, engine, scope);
      return handle.kind === "step" ? handle.fn(ctx) : choose(handle, ctx);
    },
    react: (error, history) => byRetryPolicy(policy, error, history),
  };
}

async function choose(handle: Extract<AnyNode, { kind: "branch" }>, ctx: StepContext<any>): Promise<string> {
  const choice = await handle.choose(ctx);
  if (Object.hasOwn(handle.cases, choice)) return choice;
  const cases = Object.keys(handle.cases).join(", ");
  throw new PermanentError(
    `Branch "${handle.name}" chose "${String(choice)}", which is not one of its cases: ${cases}.`,
  );
}

function contextOf(shape: Shape, node: ShapeNode, engine: Stepping, scope: StepScope): StepContext<any> {
  const read = ({ name }: AnyNode) => {
    if (!isAncestor(shape, name, node.name))
      throw new GraphError(
        `Step "${node.name}" of graph "${shape.workflow}" reads the output of "${name}", which does not come before it; say .after(${name}).`,
        { workflow: shape.workflow, nodes: [node.name, name] },
      );
    return engine.recordOf(name);
  };
  return Object.assign(scope.ctx, {
    idempotencyKey: scope.execution.idempotencyKey,
    output: (step: AnyNode) => {
      const record = read(step);
      if (record?.phase === "completed") return record.output;
      throw new GraphError(`Step "${step.name}" was skipped and has no output; use maybeOutput where that can be.`, {
        workflow: shape.workflow,
        nodes: [step.name],
      });
    },
    maybeOutput: (step: AnyNode) => {
      const record = read(step);
      return record?.phase === "completed" ? record.output : undefined;
    },
  }) as StepContext<any>;
}

export function runGraph(plan: GraphPlan, engine: Stepping): Promise<unknown> {
  return new GraphRun(plan, engine).toTheEnd();
}

type Ended = "completed" | "skipped" | "failed";

class GraphRun {
  readonly #plan: GraphPlan;
  readonly #engine: Stepping;
  /** How many of those it depends on have not ended. */
  readonly #missing = new Map<string, number>();
  readonly #ended = new Map<string, Ended>();
  readonly #ready: ShapeNode[] = [];
  /** The first of those that has not been looked at. */
  #next = 0;
  #running = 0;
  #failure: { readonly error: unknown } | null = null;
  #finish: (output: unknown) => void = () => {};
  #fail: (error: unknown) => void = () => {};

  constructor(plan: GraphPlan, engine: Stepping) {
    this.#plan = plan;
    this.#engine = engine;
    for (const { name, after } of plan.shape.nodes) this.#missing.set(name, after.length);
  }

  toTheEnd(): Promise<unknown> {
    const { steps } = this.#plan;
    const obstacle = this.#obstacle();
    if (obstacle !== null) return this.#engine.hold(obstacle.error, obstacle.step);
    this.#engine.compensateWith([...steps.values()].map((declare) => declare(this.#engine)));
    return new Promise((resolve, reject) => {
      this.#finish = resolve;
      this.#fail = reject;
      for (const node of this.#plan.shape.nodes) if (node.after.length === 0) this.#ready.push(node);
      this.#goOn();
    });
  }

  /** What the code of today cannot go on with. */
  #obstacle(): { readonly error: Error; readonly step?: string } | null {
    const { steps, shape } = this.#plan;
    const { workflow } = shape;
    // What had begun must be brought to its end, and only its code could do that.
    const lost = this.#engine.known.find(({ name, phase }) => phase === "open" && !steps.has(name));
    if (lost !== undefined)
      return { error: new StepNotDefinedError({ workflow, step: lost.name, inGraph: true }), step: lost.name };
    for (const { name, handle } of shape.nodes) {
      if (handle.kind !== "branch") continue;
      const record = this.#engine.recordOf(name);
      if (record?.phase !== "completed" || Object.hasOwn(handle.cases, String(record.output))) continue;
      const message = `Branch "${name}" of graph "${workflow}" has chosen "${record.output}", which is not one of its cases any more. Bring the case back and resume().`;
      return { error: new GraphError(message, { workflow, nodes: [name] }) };
    }
    return null;
  }

  /** Begins what can begin. A loop, not a recursion: a chain of thousands of recorded steps passes through here. */
  #goOn(): void {
    for (; this.#next < this.#ready.length && this.#running < this.#plan.concurrency; this.#next += 1) {
      const node = this.#ready[this.#next] as ShapeNode;
      if (!this.#passes(node)) this.#begin(node);
    }
    if (this.#running > 0) return;
    if (this.#failure !== null) return this.#fail(this.#failure.error);
    this.#engine.atEnd();
    this.#finish(this.#output());
  }

  /** Nothing is to be done for it: the log has it, or it is skipped. */
  #passes(node: ShapeNode): boolean {
    const record = this.#engine.recordOf(node.name);
    if (record?.phase === "completed" || record?.phase === "skipped") {
      this.#note(node, record.phase);
      return true;
    }
    if (record !== null || !this.#isLeftOut(node)) return false;
    if (this.#failure === null) this.#engine.leaveOut(node.name);
    this.#note(node, "skipped");
    return true;
  }

  /** Of a case that was not chosen; or everything before it was skipped. */
  #isLeftOut({ after, choice }: ShapeNode): boolean {
    if (choice !== null) {
      const record = this.#engine.recordOf(choice.branch);
      if (record?.phase === "completed" && record.output !== choice.label) return true;
    }
    return after.length > 0 && after.every((name) => this.#ended.get(name) === "skipped");
  }

  /** Once something has failed nothing new begins; what had begun before a crash is brought to its end. */
  #begin(node: ShapeNode): void {
    if (this.#failure !== null && this.#engine.recordOf(node.name) === null) return;
    this.#running += 1;
    const declare = this.#plan.steps.get(node.name) as (engine: Stepping) => DeclaredStep;
    this.#engine.execute(declare(this.#engine)).then(
      () => this.#came(node, this.#engine.recordOf(node.name)?.phase === "skipped" ? "skipped" : "completed"),
      (error) => {
        this.#failure ??= { error };
        this.#came(node, "failed");
      },
    );
  }

  #came(node: ShapeNode, ended: Ended): void {
    this.#running -= 1;
    this.#note(node, ended);
    this.#goOn();
  }

  #note(node: ShapeNode, ended: Ended): void {
    this.#ended.set(node.name, ended);
    if (ended === "failed") return;
    for (const follower of this.#plan.followers.get(node.name) ?? []) {
      const left = (this.#missing.get(follower.name) as number) - 1;
      this.#missing.set(follower.name, left);
      if (left === 0) this.#ready.push(follower);
    }
  }

  /** That of the last step; of several, an object by name. Steps that were skipped have none. */
  #output(): unknown {
    const { last } = this.#plan.shape;
    const outputs = last.flatMap(({ name }): [string, unknown][] => {
      const record = this.#engine.recordOf(name);
      return record?.phase === "completed" ? [[name, record.output]] : [];
    });
    return last.length === 1 ? outputs[0]?.[1] : Object.fromEntries(outputs);
  }
}
