/** Executes a run of a graph: plans its steps, runs them through the scheduler and returns the output. */

import { Semaphore } from "../../concurrency/semaphore.js";
import { GraphError, PermanentError, StepNotDefinedError } from "../../core/errors/errors.js";
import { parseDuration } from "../../core/naming/duration.js";
import { type NodeEnd, runDag, type ScheduledNode } from "../dag-scheduler.js";
import type { WorkflowDefinition } from "../definition.js";
import { checkStepLimit } from "../limit.js";
import { findMissingSteps } from "../missing-steps.js";
import { reactByRetryPolicy } from "../retry-reaction.js";
import type { DeclaredStep, StepEngine, StepScope } from "../step-engine.js";
import { bindHooks, runWithHooks, type StepHooks } from "../step-hooks.js";
import { type AnyNode, type GraphStepOptions, retryOf, type StepContext } from "./node.js";
import { isAncestor, type Shape, type ShapeNode } from "./shape.js";

interface ScheduledGraphNode extends ScheduledNode {
  readonly choice: ShapeNode["choice"];
}

export interface GraphPlan {
  readonly shape: Shape;
  readonly concurrency: number;
  readonly scheduled: readonly ScheduledGraphNode[];
  readonly steps: ReadonlyMap<string, (engine: StepEngine) => DeclaredStep>;
  /** The names of steps that the definition lists in `removedSteps`. */
  readonly removed: ReadonlySet<string>;
}

export function createGraphPlan(
  shape: Shape,
  { retry, hooks }: Defaults,
  { concurrency, removed }: Pick<GraphPlan, "concurrency" | "removed">,
): GraphPlan {
  const scheduled = shape.nodes.map(({ name, after, choice }) => ({ key: name, after, choice }));
  const steps = new Map(
    shape.nodes.map((node) => {
      const semaphore = createSemaphore(node);
      return [
        node.name,
        (engine: StepEngine) => ({ ...declareStep(shape, node, { retry, hooks }, engine), semaphore }),
      ];
    }),
  );
  return { shape, concurrency, scheduled, steps, removed };
}

/** Makes the semaphore for `concurrency` of a step. It is made once per step and process, so that all runs share it. */
function createSemaphore({ handle }: ShapeNode): Semaphore | null {
  const limit = handle.kind === "step" ? handle.options.concurrency : undefined;
  return limit === undefined ? null : new Semaphore(limit);
}

type Defaults = Pick<WorkflowDefinition, "retry" | "hooks">;
type StepWithoutSemaphore = Omit<DeclaredStep, "semaphore">;

function declareStep(
  shape: Shape,
  node: ShapeNode,
  { retry, hooks }: Defaults,
  engine: StepEngine,
): StepWithoutSemaphore {
  const { name, handle } = node;
  const options: GraphStepOptions = handle.kind === "step" ? handle.options : {};
  const undo = options.compensate;
  const policy = retryOf(options, retry);
  return {
    name,
    waitMs: 0,
    timeoutMs: options.timeout === undefined ? null : parseDuration(options.timeout, `timeout of step "${name}"`),
    onCrash: options.onCrash ?? "rerun",
    queue: null,
    priority: null,
    limit: checkStepLimit(`Step "${name}"`, options.limit, options.units),
    checkpoints: null,
    job: null,
    retry: policy,
    compensate: undo === undefined ? null : (scope, output) => undo(contextOf(shape, node, engine, scope), output),
    body: (scope) => {
      const ctx = contextOf(shape, node, engine, scope);
      const body = () => (handle.kind === "step" ? handle.fn(ctx) : chooseCase(handle, ctx));
      return hooks === null ? body() : runHooked(hooks, ctx, scope, body);
    },
    react: (error, history, random) => reactByRetryPolicy(policy, error, history, random),
  };
}

async function runHooked(
  stepHooks: StepHooks,
  ctx: StepContext<any>,
  scope: StepScope,
  body: () => unknown,
): Promise<unknown> {
  const hooks = bindHooks(stepHooks, ctx);
  const { id, name, attempt } = scope.execution;
  const execution = { id, step: name, attempt };
  if (!scope.resumesAfterWait)
    await scope.withoutRecords("A hook", async () => scope.inFrame(() => hooks.before(execution)));
  return runWithHooks(hooks, execution, { runId: ctx.runId, log: ctx.log, inFrame: scope.inFrame }, body);
}

async function chooseCase(handle: Extract<AnyNode, { kind: "branch" }>, ctx: StepContext<any>): Promise<string> {
  const choice = await handle.choose(ctx);
  if (Object.hasOwn(handle.cases, choice)) return choice;
  const cases = Object.keys(handle.cases).join(", ");
  throw new PermanentError(
    `Branch "${handle.name}" chose "${String(choice)}", which is not one of its cases: ${cases}.`,
  );
}

function contextOf(shape: Shape, node: ShapeNode, engine: StepEngine, scope: StepScope): StepContext<any> {
  const read = ({ name }: AnyNode) => {
    if (!isAncestor(shape, name, node.name))
      throw new GraphError(
        `Step "${node.name}" of graph "${shape.workflow}" reads the output of "${name}", which does not precede it; add .after(${name}).`,
        { workflow: shape.workflow, nodes: [node.name, name] },
      );
    return engine.recordOf(name);
  };
  return Object.assign(scope.ctx, {
    idempotencyKey: scope.execution.idempotencyKey,
    output: (step: AnyNode) => {
      const record = read(step);
      if (record?.phase === "completed") return record.output;
      throw new GraphError(
        `Step "${step.name}" was skipped and has no output; use maybeOutput for steps that can be skipped.`,
        {
          workflow: shape.workflow,
          nodes: [step.name],
        },
      );
    },
    maybeOutput: (step: AnyNode) => {
      const record = read(step);
      return record?.phase === "completed" ? record.output : undefined;
    },
  }) as StepContext<any>;
}

export async function runGraph(plan: GraphPlan, engine: StepEngine): Promise<unknown> {
  engine.compensateWith([...plan.steps.values()].map((declare) => declare(engine)));
  const missing = findMissingSteps(engine, new Set(plan.steps.keys()), plan.removed);
  const obstacle = findObstacle(plan, engine, missing.openStep);
  if (obstacle !== null) return engine.pauseWithError(obstacle.error, obstacle.step);
  if (missing.vanished.length > 0) return engine.pauseForMismatch(missing.unrecorded, missing.vanished);
  for (const name of missing.skippable) await engine.skipRemovedStep(name);
  const [failure] = await runDag<ScheduledGraphNode>({
    nodes: plan.scheduled,
    concurrency: plan.concurrency,
    onFailure: "stop",
    recordedState: ({ key }) => engine.recordOf(key)?.phase ?? null,
    shouldSkip: (node, endedOf) => skipIfNotChosen(engine, node, endedOf),
    execute: async ({ key }) => {
      await engine.execute((plan.steps.get(key) as (engine: StepEngine) => DeclaredStep)(engine));
      return engine.recordOf(key)?.phase === "skipped" ? "skipped" : "completed";
    },
  });
  if (failure !== undefined) throw failure.error;
  return outputOf(plan.shape, engine);
}

/** Returns the reason why the run cannot continue with the current code; null if it can continue. */
function findObstacle(
  { shape }: GraphPlan,
  engine: StepEngine,
  missingStep: string | null,
): { readonly error: Error; readonly step?: string } | null {
  const { workflow } = shape;
  if (missingStep !== null)
    return { error: new StepNotDefinedError({ workflow, step: missingStep, inGraph: true }), step: missingStep };
  for (const { name, handle } of shape.nodes) {
    if (handle.kind !== "branch") continue;
    const record = engine.recordOf(name);
    if (record?.phase !== "completed" || Object.hasOwn(handle.cases, String(record.output))) continue;
    const message = `Branch "${name}" of graph "${workflow}" has chosen "${record.output}", which is no longer one of its cases. Restore the case and call resume().`;
    return { error: new GraphError(message, { workflow, nodes: [name] }) };
  }
  return null;
}

/** If the node's case was not chosen, or all its predecessors were skipped, records that it is skipped and returns true. */
function skipIfNotChosen(
  engine: StepEngine,
  { key, after, choice }: ScheduledGraphNode,
  endedOf: (key: string) => NodeEnd | undefined,
): boolean {
  const branch = choice === null ? null : engine.recordOf(choice.branch);
  const isNotChosen = branch?.phase === "completed" && branch.output !== choice?.label;
  if (!isNotChosen && !(after.length > 0 && after.every((name) => endedOf(name) === "skipped"))) return false;
  engine.recordSkipped(key);
  return true;
}

/** Returns the output of the last step; if several steps have no successor, their outputs by name, without skipped steps. */
function outputOf({ lastSteps }: Shape, engine: StepEngine): unknown {
  const outputs = lastSteps.flatMap(({ name }): [string, unknown][] => {
    const record = engine.recordOf(name);
    return record?.phase === "completed" ? [[name, record.output]] : [];
  });
  return lastSteps.length === 1 ? outputs[0]?.[1] : Object.fromEntries(outputs);
}
