/** Takes a run through its graph: whatever has all that it depends on is executed, side by side. */

import { Semaphore } from "../../concurrency/semaphore.js";
import { GraphError, PermanentError, StepNotDefinedError } from "../../core/errors/errors.js";
import { parseDuration } from "../../core/naming/duration.js";
import { type Ended, type ScheduledNode, workOff } from "../dag-scheduler.js";
import type { WorkflowDefinition } from "../definition.js";
import { missingSteps } from "../missing-steps.js";
import { byRetryPolicy } from "../retry-reaction.js";
import type { DeclaredStep, Stepping, StepScope } from "../step-engine.js";
import { bindHooks, runWithHooks, type StepHooks } from "../step-hooks.js";
import { type AnyNode, type GraphStepOptions, retryOf, type StepContext } from "./node.js";
import { isAncestor, type Shape, type ShapeNode } from "./shape.js";

interface Scheduled extends ScheduledNode {
  readonly choice: ShapeNode["choice"];
}

export interface GraphPlan {
  readonly shape: Shape;
  readonly concurrency: number;
  readonly scheduled: readonly Scheduled[];
  readonly steps: ReadonlyMap<string, (engine: Stepping) => DeclaredStep>;
  /** Steps that are gone and may be passed over. */
  readonly removed: ReadonlySet<string>;
}

export function planOf(
  shape: Shape,
  { retry, hooks }: Defaults,
  { concurrency, removed }: Pick<GraphPlan, "concurrency" | "removed">,
): GraphPlan {
  const scheduled = shape.nodes.map(({ name, after, choice }) => ({ key: name, after, choice }));
  const steps = new Map(
    shape.nodes.map((node) => {
      const places = placesOf(node);
      return [node.name, (engine: Stepping) => ({ ...declare(shape, node, { retry, hooks }, engine), places })];
    }),
  );
  return { shape, concurrency, scheduled, steps, removed };
}

/** One line for all runs of the process. */
function placesOf({ handle }: ShapeNode): Semaphore | null {
  const limit = handle.kind === "step" ? handle.options.concurrency : undefined;
  return limit === undefined ? null : new Semaphore(limit);
}

type Defaults = Pick<WorkflowDefinition, "retry" | "hooks">;
type Unplaced = Omit<DeclaredStep, "places">;

function declare(shape: Shape, node: ShapeNode, { retry, hooks }: Defaults, engine: Stepping): Unplaced {
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
    checkpoints: null,
    job: null,
    retry: policy,
    compensate: undo === undefined ? null : (scope, output) => undo(contextOf(shape, node, engine, scope), output),
    body: (scope) => {
      const ctx = contextOf(shape, node, engine, scope);
      const body = () => (handle.kind === "step" ? handle.fn(ctx) : choose(handle, ctx));
      return hooks === null ? body() : hooked(hooks, ctx, scope, body);
    },
    react: (error, history, random) => byRetryPolicy(policy, error, history, random),
  };
}

async function hooked(
  given: StepHooks,
  ctx: StepContext<any>,
  scope: StepScope,
  body: () => unknown,
): Promise<unknown> {
  const hooks = bindHooks(given, ctx);
  const { id, name, attempt } = scope.execution;
  const about = { id, step: name, attempt };
  if (!scope.wakes) await scope.withoutRecords("A hook", async () => scope.inFrame(() => hooks.before(about)));
  return runWithHooks(hooks, about, { runId: ctx.runId, log: ctx.log, inFrame: scope.inFrame }, body);
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

export async function runGraph(plan: GraphPlan, engine: Stepping): Promise<unknown> {
  engine.compensateWith([...plan.steps.values()].map((declare) => declare(engine)));
  const missing = missingSteps(engine, new Set(plan.steps.keys()), plan.removed);
  const obstacle = obstacleOf(plan, engine, missing.open);
  if (obstacle !== null) return engine.pauseWithError(obstacle.error, obstacle.step);
  if (missing.vanished.length > 0) return engine.doesNotFit(missing.unrecorded, missing.vanished);
  for (const name of missing.passable) await engine.passOver(name);
  const [failure] = await workOff<Scheduled>({
    nodes: plan.scheduled,
    concurrency: plan.concurrency,
    onFailure: "stop",
    ended: ({ key }) => engine.recordOf(key)?.phase ?? null,
    leavesOut: (node, endedOf) => isLeftOut(engine, node, endedOf),
    execute: async ({ key }) => {
      await engine.execute((plan.steps.get(key) as (engine: Stepping) => DeclaredStep)(engine));
      return engine.recordOf(key)?.phase === "skipped" ? "skipped" : "completed";
    },
  });
  if (failure !== undefined) throw failure.error;
  return outputOf(plan.shape, engine);
}

/** What the code of today cannot go on with. */
function obstacleOf(
  { shape }: GraphPlan,
  engine: Stepping,
  lost: string | null,
): { readonly error: Error; readonly step?: string } | null {
  const { workflow } = shape;
  if (lost !== null) return { error: new StepNotDefinedError({ workflow, step: lost, inGraph: true }), step: lost };
  for (const { name, handle } of shape.nodes) {
    if (handle.kind !== "branch") continue;
    const record = engine.recordOf(name);
    if (record?.phase !== "completed" || Object.hasOwn(handle.cases, String(record.output))) continue;
    const message = `Branch "${name}" of graph "${workflow}" has chosen "${record.output}", which is not one of its cases any more. Bring the case back and resume().`;
    return { error: new GraphError(message, { workflow, nodes: [name] }) };
  }
  return null;
}

/** Of a case that was not chosen; or everything before it was skipped. */
function isLeftOut(
  engine: Stepping,
  { key, after, choice }: Scheduled,
  endedOf: (key: string) => Ended | undefined,
): boolean {
  const branch = choice === null ? null : engine.recordOf(choice.branch);
  const notChosen = branch?.phase === "completed" && branch.output !== choice?.label;
  if (!notChosen && !(after.length > 0 && after.every((name) => endedOf(name) === "skipped"))) return false;
  engine.leaveOut(key);
  return true;
}

/** That of the last step; of several, an object by name. Steps that were skipped have none. */
function outputOf({ last }: Shape, engine: Stepping): unknown {
  const outputs = last.flatMap(({ name }): [string, unknown][] => {
    const record = engine.recordOf(name);
    return record?.phase === "completed" ? [[name, record.output]] : [];
  });
  return last.length === 1 ? outputs[0]?.[1] : Object.fromEntries(outputs);
}
