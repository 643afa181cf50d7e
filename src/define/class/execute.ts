/** Executes a step of a class once: loads the hero, checks the conditions, calls the hooks and the step. */

import { jobWorkflow } from "../../core/naming/route.js";
import { jobRunName } from "../../core/run/job-runs.js";
import type { JobInput } from "../../core/run/stored-schema.js";
import type { JobDefinition } from "../dynamic/job.js";
import type { StepScope } from "../step-engine.js";
import { type BoundHooks, runWithHooks } from "../step-hooks.js";
import type { ChainStep } from "./chain.js";
import { constructWith } from "./context-members.js";
import type { AnyCondition } from "./declarations.js";
import { StepIterator } from "./iterator.js";
import type { Workflow } from "./workflow.js";
import type { WorkflowClass } from "./workflow-instance.js";

export interface ClassCode {
  readonly workflow: WorkflowClass;
  readonly cancelIf: readonly AnyCondition[];
  readonly loadHero: ((id: string) => unknown) | null;
  readonly mayProceedWithoutHero: boolean;
}

type AnyInstance = Workflow<any, any, any>;

export async function executeStep(
  code: ClassCode,
  step: ChainStep,
  scope: StepScope,
  heroRef: { readonly type: string; readonly id: string } | null,
): Promise<unknown> {
  const hero = await resolveHero(code, heroRef);
  if (hero === missingHero) {
    const reason = `The hero ${heroRef?.type} ${heroRef?.id} is gone.`;
    return scope.leave({ kind: "cancel", reason, outcome: "canceled_by_condition" });
  }
  const w = constructWith(code.workflow, { ctx: scope.ctx, hero, idempotencyKey: scope.execution.idempotencyKey });
  const execution = { id: scope.execution.id, step: step.name, attempt: scope.execution.attempt };
  const hooks: BoundHooks = {
    before: (execution) => w.beforeStepExecution(execution),
    after: (execution) => w.afterStepExecution(execution),
    around: (execution, next) => w.aroundStepExecution(execution, next),
  };
  if (!scope.resumesAfterWait) {
    await scope.withoutRecords("A condition", () => checkConditions(code, step, scope, w));
    await scope.withoutRecords("A hook", async () => scope.inFrame(() => hooks.before(execution)));
  }
  const host = { runId: w.runId, log: w.log, inFrame: scope.inFrame };
  return runWithHooks(hooks, execution, host, () => {
    if (step.options.job !== undefined) return runJob(step, w, scope);
    const iter = scope.checkpoints === null ? undefined : new StepIterator(step.name, scope.checkpoints);
    if (step.fn !== null) return step.fn.call(w, w, iter);
    return (w as unknown as Record<string, (iter?: StepIterator) => unknown>)[step.name]?.(iter);
  });
}

/**
 * Runs the job as a child run, on any worker that has the job. The name of the child contains the number of the job's run,
 * not the number of the attempt: after the worker that executes this step dies, the next attempt must find the child that is
 * open or completed, and only a failed run of the job is followed by a new child.
 */
async function runJob({ name, options }: ChainStep, w: AnyInstance, scope: StepScope): Promise<unknown> {
  const { job, args } = options;
  const jobArgs = typeof args === "function" ? await args.call(w, w) : args;
  const { jobRunNumber } = scope;
  const node = { id: scope.execution.name, name };
  // The key is sent only if the job cannot derive it from the run and the node: a retry has the key of the run it retries.
  const key = w.idempotencyKey === `${w.runId}:${node.id}` ? {} : { key: w.idempotencyKey };
  const input: JobInput = { args: jobArgs, run: w.runId, node, attempt: w.attempt, failures: jobRunNumber - 1, ...key };
  const child = typeof job === "string" ? jobWorkflow(job) : (job as JobDefinition);
  try {
    return await w.run(child as JobDefinition, input, { name: jobRunName(jobRunNumber) });
  } catch (error) {
    scope.markJobFailed();
    throw error;
  }
}

const missingHero = Symbol("gone");

async function resolveHero(
  code: ClassCode,
  ref: { readonly type: string; readonly id: string } | null,
): Promise<unknown> {
  if (ref === null) return null;
  if (code.loadHero === null) return ref;
  const hero = (await code.loadHero.call(code.workflow, ref.id)) ?? null;
  return hero === null && !code.mayProceedWithoutHero ? missingHero : hero;
}

/** Evaluates the conditions when the step runs, because the user's data may have changed since the step was scheduled. */
async function checkConditions(code: ClassCode, step: ChainStep, scope: StepScope, w: AnyInstance): Promise<void> {
  for (const condition of code.cancelIf) {
    if (!(await evaluateCondition(condition, w))) continue;
    const conditionText = typeof condition === "string" ? ` (${condition})` : "";
    scope.leave({
      kind: "cancel",
      reason: `A cancelIf condition${conditionText} is true.`,
      outcome: "canceled_by_condition",
    });
  }
  const { skipIf, if: runIf } = step.options;
  const isSkipped =
    (skipIf !== undefined && (await evaluateCondition(skipIf, w))) ||
    (runIf !== undefined && !(await evaluateCondition(runIf, w)));
  if (isSkipped) scope.leave({ kind: "skip", outcome: "skipped_by_condition" });
}

async function evaluateCondition(condition: AnyCondition, w: AnyInstance): Promise<boolean> {
  if (typeof condition === "boolean") return condition;
  if (typeof condition === "function") return Boolean(await condition.call(w, w));
  const member = (w as unknown as Record<string, unknown>)[condition];
  return Boolean(await (typeof member === "function" ? member.call(w) : member));
}
