/** Compiles a class into a definition when the class is first used, because only then all its declarations are known. */

import { InvalidInputError, StepNotDefinedError } from "../../core/errors/errors.js";
import { shapeSignature } from "../../core/graph/signature.js";
import { parseDuration } from "../../core/naming/duration.js";
import { checkName } from "../../core/naming/names.js";
import { resolveRetry } from "../../core/naming/retry-policy.js";
import type { DeclaredNode } from "../../core/run/stored-schema.js";
import { checkAliases } from "../aliases.js";
import { type BatchOptions, checkBatch } from "../batch.js";
import type { WorkflowContext } from "../context.js";
import type { WorkflowDefinition } from "../definition.js";
import type { JobDefinition } from "../dynamic/job.js";
import { checkKey, checkLimits, checkStepLimit } from "../limit.js";
import { suggestNames } from "../name-suggestions.js";
import { definitionBrand } from "../runnable.js";
import { parseStartBy } from "../start-by.js";
import { type DeclaredStep, type StepEngine, type StepJob, stepEngineKey } from "../step-engine.js";
import { type ChainStep, resolveChain } from "./chain.js";
import { reservedNames } from "./context-members.js";
import { type AnyCondition, type Declarations, declarationsOf } from "./declarations.js";
import { resolveDependencies } from "./dependencies.js";
import { type PolicyLevel, reactTo } from "./exceptions.js";
import { type ClassCode, executeStep } from "./execute.js";
import { markIfMinified } from "./minified-name.js";
import type { ClassOptions } from "./options.js";
import { type Chain, runChain } from "./run-chain.js";
import { type ClassGraph, runClassGraph } from "./run-class-graph.js";
import { Workflow } from "./workflow.js";
import type { WorkflowClass } from "./workflow-instance.js";

const definitions = new WeakMap<WorkflowClass, WorkflowDefinition>();

export function definitionOf(workflow: WorkflowClass): WorkflowDefinition {
  let definition = definitions.get(workflow);
  if (definition === undefined) {
    definitions.set(workflow, (definition = compile(workflow)));
    markIfMinified(definition, declarationsOf(workflow).options.name);
  }
  return definition;
}

/** Static members of user classes. `Workflow` cannot declare them, because the type of `loadHero` depends on the class. */
interface Statics {
  readonly batch?: BatchOptions;
  readonly heroType?: unknown;
  readonly loadHero?: unknown;
}

function compile(workflow: WorkflowClass): WorkflowDefinition {
  const hierarchy = classHierarchy(workflow);
  const declarations = hierarchy.map(declarationsOf);
  const ownDeclarations = declarations.at(-1) as Declarations;
  const options = Object.assign({}, ...declarations.map((declaration) => declaration.options), {
    name: ownDeclarations.options.name,
  }) as ClassOptions<any>;
  const name = nameOf(workflow, ownDeclarations);
  const cancelIf = declarations.flatMap(({ cancelConditions }) => cancelConditions);
  const { chain: chainSteps, tasks } = resolveChain(name, declarations);
  const orderedSteps = resolveDependencies(name, chainSteps, tasks);
  const steps = orderedSteps.map(({ step }) => step);
  const isChain = orderedSteps.every(
    ({ step, after }, index) => step.kind !== "task" && followsOnly(after, orderedSteps[index - 1]?.step.name),
  );
  if (!isChain) checkNoStepRouting(name, steps);
  checkNoReservedMembers(name, hierarchy);
  for (const step of steps) checkStep(name, step, workflow);
  if (options.onFailure !== undefined && steps.some((step) => step.name === "on_failure"))
    throw new InvalidInputError(
      `Workflow ${name} has a step "on_failure", the name under which onFailure is recorded; rename the step.`,
    );
  for (const condition of cancelIf) checkMember(name, condition, workflow);
  for (const declaration of declarations) declaration.isSealed = true;

  const { heroType = null, loadHero = null, batch } = workflow as Statics;
  if (loadHero !== null && typeof loadHero !== "function")
    throw new InvalidInputError(`loadHero of workflow ${name} must be a function.`);
  const mayProceedWithoutHero = options.mayProceedWithoutHero ?? false;
  const code: ClassCode = { workflow, cancelIf, loadHero: loadHero as ClassCode["loadHero"], mayProceedWithoutHero };
  const chain: Chain = {
    workflow: name,
    steps: steps.map((step) => compileStep(code, step, declarations)),
    removedSteps: new Set(declarations.flatMap(({ removedSteps }) => removedSteps)),
  };
  const nodes = orderedSteps.map(({ step, after }, index): DeclaredNode => {
    const job = jobNameOf(step);
    const waitMs = chain.steps[index]?.waitMs ?? 0;
    return {
      name: step.name,
      kind: "step",
      ...(job === null ? {} : { job }),
      after,
      ...(waitMs === 0 ? {} : { waitMs }),
    };
  });
  const classGraph: ClassGraph = {
    ...chain,
    nodes: chain.steps.map((step, index) => ({ step, after: nodes[index]?.after ?? [] })),
  };
  return Object.freeze({
    [definitionBrand]: true as const,
    name,
    style: "class" as const,
    version: options.version ?? "",
    queue: options.queue ?? null,
    priority: options.priority ?? 0,
    retry: resolveRetry(options.retry),
    timeoutMs: options.timeout === undefined ? null : parseDuration(options.timeout, `timeout of workflow ${name}`),
    startByMs: options.startBy === undefined ? null : parseStartBy(options.startBy, `startBy of workflow ${name}`),
    tags: options.tags ?? [],
    inputSchema: options.input ?? null,
    outputSchema: options.output ?? null,
    onFailure: options.onFailure ?? null,
    onError: options.onError ?? null,
    hooks: null,
    hero: {
      type: heroType === null ? null : checkName("hero type", heroType),
      required: loadHero !== null && !mayProceedWithoutHero,
      allowMultiple: options.allowMultiple ?? false,
    },
    aliases: checkAliases(`workflow ${name}`, options.aliases),
    limits: checkLimits(`workflow ${name}`, options.limits),
    fairBy: options.fairBy === undefined ? null : checkKey(`fairBy of workflow ${name}`, options.fairBy),
    batch: checkBatch(`workflow ${name}`, batch),
    declared: {
      kind: isChain ? ("chain" as const) : ("graph" as const),
      signature: shapeSignature(nodes),
      nodes,
      queues: [...new Set(steps.flatMap((step) => step.options.queue ?? []))],
      hasStepRouting: steps.some((step) => step.options.queue !== undefined || step.options.priority !== undefined),
    },
    nodeRetryDelayMs: null,
    handler: (ctx: WorkflowContext<any>) => {
      const engine = engineOf(ctx);
      // A run that was executed as a graph may be at several steps at once, so it is executed as a graph even if the steps of
      // the class are a chain by now.
      const runsAsChain = isChain && engine.executedAs !== "graph" && engine.dag === null;
      return runsAsChain ? runChain(chain, engine) : runClassGraph(classGraph, engine);
    },
  });
}

const followsOnly = (after: readonly string[], previous: string | undefined) =>
  after.length === (previous === undefined ? 0 : 1) && after[0] === previous;

/** A run is in one queue and has one priority, so steps that run at the same time cannot have queues or priorities. */
function checkNoStepRouting(workflow: string, steps: readonly ChainStep[]): void {
  const step = steps.find(({ options }) => options.queue !== undefined || options.priority !== undefined);
  if (step === undefined) return;
  throw new InvalidInputError(
    `Step "${step.name}" of workflow ${workflow} has a queue or priority of its own, which only works in a plain chain of steps. Set it on the class, or use a job to run the step on other workers.`,
  );
}

const engineOf = (ctx: WorkflowContext<any>) =>
  (ctx as unknown as { readonly [stepEngineKey]: StepEngine })[stepEngineKey];

/** Returns the class and its parent classes, without `Workflow`; the class that directly extends `Workflow` comes first. */
function classHierarchy(workflow: WorkflowClass): WorkflowClass[] {
  const hierarchy: WorkflowClass[] = [];
  for (
    let type: WorkflowClass = workflow;
    typeof type === "function" && type.prototype instanceof Workflow;
    type = Object.getPrototypeOf(type)
  )
    hierarchy.unshift(type);
  if (hierarchy.length === 0)
    throw new InvalidInputError("Workflow itself cannot be run; pass a class that extends it.");
  return hierarchy;
}

function nameOf(workflow: WorkflowClass, declarations: Declarations): string {
  const name = declarations.options.name ?? workflow.name;
  if (name !== "") return checkName("workflow", name);
  throw new InvalidInputError('This workflow class has no name; give it one with this.options({ name: "…" }).');
}

function checkNoReservedMembers(name: string, hierarchy: readonly WorkflowClass[]): void {
  const methods = hierarchy.flatMap((type) => Object.getOwnPropertyNames(type.prototype));
  for (const member of [...methods, ...fieldsOf(hierarchy.at(-1) as WorkflowClass)]) {
    if (!reservedNames.has(member)) continue;
    throw new InvalidInputError(
      `Workflow ${name} has a member "${member}", which would hide that of its context; rename it.`,
    );
  }
}

/** Returns the names of an instance's fields; none if the constructor throws, for example because it needs a hero. */
function fieldsOf(type: WorkflowClass): readonly string[] {
  try {
    return Object.getOwnPropertyNames(new type());
  } catch {
    return [];
  }
}

function checkStep(workflow: string, step: ChainStep, type: WorkflowClass): void {
  for (const condition of [step.options.skipIf, step.options.if])
    if (condition !== undefined) checkMember(workflow, condition, type);
  if (step.fn !== null || step.options.job !== undefined || hasMember(type, step.name, true)) return;
  const problem = `Step "${step.name}" of workflow ${workflow} has no function, and the class has no method of that name`;
  const suggestion = suggestNames(step.name, "methods", membersOf(type, true));
  throw new StepNotDefinedError({ workflow, step: step.name, problem: problem + suggestion });
}

function checkMember(workflow: string, condition: AnyCondition, type: WorkflowClass): void {
  if (typeof condition !== "string" || hasMember(type, condition, false)) return;
  const suggestion = suggestNames(condition, "members", membersOf(type, false));
  throw new InvalidInputError(
    `Workflow ${workflow} has a condition "${condition}", but no member of that name${suggestion}`,
  );
}

/** Whether the class or its parents have this member; members of `Object` and `Workflow` are ignored. */
function hasMember(type: WorkflowClass, name: string, callable: boolean): boolean {
  return declaredMembers(type, callable).has(name) || fieldsOf(type).includes(name);
}

const membersOf = (type: WorkflowClass, callable: boolean) => [...declaredMembers(type, callable), ...fieldsOf(type)];

function declaredMembers(type: WorkflowClass, callable: boolean): Set<string> {
  const names = new Set<string>();
  for (const { prototype } of classHierarchy(type)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
      if (name in Workflow.prototype) continue;
      if (!callable || typeof value === "function") names.add(name);
    }
  }
  return names;
}

function jobNameOf({ options: { job } }: ChainStep): string | null {
  if (job === undefined) return null;
  return typeof job === "string" ? job : (job as JobDefinition).job;
}

function jobOf(step: ChainStep, withJob: StepJob["withJob"]): StepJob | null {
  const name = jobNameOf(step);
  return name === null ? null : { name, withJob };
}

function compileStep(code: ClassCode, step: ChainStep, declarations: readonly Declarations[]): DeclaredStep {
  const { options, name } = step;
  const levels: PolicyLevel[] = [options, ...declarations.map((declaration) => declaration.options).reverse()];
  const backoff = declarations.reduce(
    (policy, declaration) => resolveRetry(declaration.options.retry, policy),
    resolveRetry(),
  );
  const retry = resolveRetry(options.retry, backoff);
  return {
    name,
    waitMs: options.wait === undefined ? 0 : parseDuration(options.wait, `wait of step "${name}"`),
    timeoutMs: options.timeout === undefined ? null : parseDuration(options.timeout, `timeout of step "${name}"`),
    onCrash: options.onCrash ?? "rerun",
    queue: options.queue ?? null,
    priority: options.priority ?? null,
    semaphore: null,
    limit: checkStepLimit(`Step "${name}"`, options.limit, options.units),
    checkpoints:
      step.kind !== "resumable"
        ? null
        : {
            maxRuntimeMs: options.maxRuntime === undefined ? null : parseDuration(options.maxRuntime, "maxRuntime"),
            maxIterations: options.maxIterations ?? null,
            relaxed: options.checkpoint === "relaxed",
          },
    job: jobOf(step, (job) => compileStep(code, { ...step, options: { ...options, job } }, declarations)),
    compensate: null,
    retry,
    body: (scope) => executeStep(code, step, scope, scope.hero),
    react: (error, history, random) => reactTo(error, levels, retry, history, random),
  };
}
