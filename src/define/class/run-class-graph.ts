/** Takes a run through a class that is more than a chain: steps and tasks side by side, each when its time has come. */
import { StepNotDefinedError } from "../../core/errors/errors.js";
import { runDag, type ScheduledNode } from "../dag-scheduler.js";
import { findMissingSteps, skipStepsOutsideDag } from "../missing-steps.js";
import type { DeclaredStep, DispatchedNode, StepEngine } from "../step-engine.js";

export interface ClassGraph {
  readonly workflow: string;
  readonly nodes: readonly { readonly step: DeclaredStep; readonly after: readonly string[] }[];
  /** Steps that are gone and may be passed over. */
  readonly removedSteps: ReadonlySet<string>;
}

interface Node extends ScheduledNode {
  /** What it is: a step of the class, or, in a graph that was imported, perhaps a job. */
  readonly work: { readonly step: DeclaredStep } | { readonly job: DispatchedNode };
}

export async function runClassGraph(classGraph: ClassGraph, engine: StepEngine): Promise<void> {
  const nodes = nodesOf(classGraph, engine);
  const nodeKeys = new Set(nodes.map(({ key }) => key));
  // An operator who imported a graph has said which nodes there are.
  const missing =
    engine.dag === null
      ? findMissingSteps(engine, nodeKeys, classGraph.removedSteps)
      : skipStepsOutsideDag(engine, nodeKeys);
  if (missing.openStep !== null)
    return engine.pauseWithError(
      new StepNotDefinedError({ workflow: classGraph.workflow, step: missing.openStep, inGraph: true }),
      missing.openStep,
    );
  if (missing.vanished.length > 0) return engine.pauseForMismatch(missing.unrecorded, missing.vanished);
  for (const name of missing.skippable) await engine.skipRemovedStep(name);
  const { resumeAtStep } = engine;
  if (resumeAtStep !== null && !nodeKeys.has(resumeAtStep) && engine.recordedSteps.length === 0)
    return engine.pauseWithError(new StepNotDefinedError({ workflow: classGraph.workflow, step: resumeAtStep }));
  const stepsBefore = stepsBeforePosition(nodes, engine);
  const [failure] = await runDag<Node>({
    nodes,
    concurrency: Number.POSITIVE_INFINITY,
    onFailure: "stop",
    recordedState: ({ key }) => engine.recordOf(key)?.phase ?? (stepsBefore.has(key) ? "skipped" : null),
    shouldSkip: () => false,
    execute: async ({ key, work }) => {
      await ("step" in work ? engine.execute(work.step) : engine.dispatch(work.job));
      return engine.recordOf(key)?.phase === "skipped" ? "skipped" : "completed";
    },
  });
  if (failure !== undefined) throw failure.error;
}

/** A run that was sent to a step while its class was a chain has nothing more to do with what comes before that. */
function stepsBeforePosition(nodes: readonly Node[], { resumeAtStep, recordedSteps }: StepEngine): ReadonlySet<string> {
  const stepsBefore = new Set<string>();
  if (resumeAtStep === null) return stepsBefore;
  const dependencies = new Map(nodes.map(({ key, after }) => [key, after]));
  const toVisit = dependencies.has(resumeAtStep) ? [resumeAtStep] : recordedSteps.map(({ name }) => name);
  for (let next = toVisit.pop(); next !== undefined; next = toVisit.pop()) {
    for (const one of dependencies.get(next) ?? []) {
      if (stepsBefore.has(one)) continue;
      stepsBefore.add(one);
      toVisit.push(one);
    }
  }
  return stepsBefore;
}

/**
 * A graph that was imported goes before what the class says. What its nodes do is still the class's, unless they name a job
 * where the class has code, or give it arguments of their own.
 */
function nodesOf(classGraph: ClassGraph, engine: StepEngine): Node[] {
  const { dag } = engine;
  if (dag === null) return classGraph.nodes.map(({ step, after }) => ({ key: step.name, after, work: { step } }));
  const steps = new Map(classGraph.nodes.map(({ step }) => [step.name, step]));
  return Object.entries(dag.nodes).map(([id, { name, job, args, depends_on }]): Node => {
    const step = stepForNode(steps.get(name), job, args);
    if (step === null)
      return {
        key: id,
        after: depends_on,
        work: { job: { id, name, job: job ?? name, args, frozenAt: dag.frozen_at } },
      };
    return { key: id, after: depends_on, work: { step: { ...step, name: id } } };
  });
}

function stepForNode(step: DeclaredStep | undefined, job: string | undefined, args: unknown): DeclaredStep | null {
  if (step === undefined || job === undefined) return step ?? null;
  if (step.job === null || args !== undefined) return null;
  return step.job.name === job ? step : step.job.withJob(job);
}
