/** Runs a class whose steps and tasks form a graph: each step or task starts when all its predecessors have ended. */
import { StepNotDefinedError } from "../../core/errors/errors.js";
import { runDag, type ScheduledNode } from "../dag-scheduler.js";
import { findMissingSteps, skipStepsOutsideDag } from "../missing-steps.js";
import type { DeclaredStep, DispatchedNode, StepEngine } from "../step-engine.js";

export interface ClassGraph {
  readonly workflow: string;
  readonly nodes: readonly { readonly step: DeclaredStep; readonly after: readonly string[] }[];
  /** The names of steps that the class lists in `removedSteps`. */
  readonly removedSteps: ReadonlySet<string>;
}

interface Node extends ScheduledNode {
  /** What the node runs: a step of the class, or a job that an imported graph names. */
  readonly work: { readonly step: DeclaredStep } | { readonly job: DispatchedNode };
}

export async function runClassGraph(classGraph: ClassGraph, engine: StepEngine): Promise<void> {
  const nodes = nodesOf(classGraph, engine);
  const nodeKeys = new Set(nodes.map(({ key }) => key));
  // An operator who imports a graph lists all nodes, so recorded steps that the imported graph lacks were removed on purpose.
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

/**
 * Returns the steps that precede the step of `resumeAt`, which are treated as skipped. `resumeAt` works for chains only, so
 * the run was moved while the steps of its class were a chain.
 */
function stepsBeforePosition(nodes: readonly Node[], { resumeAtStep, recordedSteps }: StepEngine): ReadonlySet<string> {
  const stepsBefore = new Set<string>();
  if (resumeAtStep === null) return stepsBefore;
  const dependencies = new Map(nodes.map(({ key, after }) => [key, after]));
  const toVisit = dependencies.has(resumeAtStep) ? [resumeAtStep] : recordedSteps.map(({ name }) => name);
  for (let next = toVisit.pop(); next !== undefined; next = toVisit.pop()) {
    for (const predecessor of dependencies.get(next) ?? []) {
      if (stepsBefore.has(predecessor)) continue;
      stepsBefore.add(predecessor);
      toVisit.push(predecessor);
    }
  }
  return stepsBefore;
}

/**
 * Returns the nodes of the class or of an imported graph, which replaces the dependencies of the class. A node of an imported
 * graph runs the step of the class with its name, unless the class has no such step, or the node names a job and either has
 * arguments of its own or stands for a step without a job.
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
