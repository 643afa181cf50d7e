/** Takes a run through a class that is more than a chain: steps and tasks side by side, each when its time has come. */
import { StepNotDefinedError } from "../../core/errors/errors.js";
import { type ScheduledNode, workOff } from "../dag-scheduler.js";
import { missingSteps, noneMissing } from "../missing-steps.js";
import type { DeclaredStep, DispatchedNode, Stepping } from "../step-engine.js";

export interface Web {
  readonly workflow: string;
  readonly nodes: readonly { readonly step: DeclaredStep; readonly after: readonly string[] }[];
  /** Steps that are gone and may be passed over. */
  readonly removed: ReadonlySet<string>;
}

interface Node extends ScheduledNode {
  /** What it is: a step of the class, or, in a graph that was imported, perhaps a job. */
  readonly work: { readonly step: DeclaredStep } | { readonly job: DispatchedNode };
}

export async function roam(web: Web, engine: Stepping): Promise<void> {
  const nodes = nodesOf(web, engine);
  const inGraph = new Set(nodes.map(({ key }) => key));
  // An operator who imported a graph has said which nodes there are.
  const missing = engine.dag === null ? missingSteps(engine, inGraph, web.removed) : noneMissing(engine, inGraph);
  if (missing.open !== null)
    return engine.pauseWithError(
      new StepNotDefinedError({ workflow: web.workflow, step: missing.open, inGraph: true }),
      missing.open,
    );
  if (missing.vanished.length > 0) return engine.doesNotFit(missing.unrecorded, missing.vanished);
  for (const name of missing.passable) await engine.passOver(name);
  const { position } = engine;
  if (position !== null && !inGraph.has(position) && engine.known.length === 0)
    return engine.pauseWithError(new StepNotDefinedError({ workflow: web.workflow, step: position }));
  const behind = whatLiesBehind(nodes, engine);
  const [failure] = await workOff<Node>({
    nodes,
    concurrency: Number.POSITIVE_INFINITY,
    onFailure: "stop",
    ended: ({ key }) => engine.recordOf(key)?.phase ?? (behind.has(key) ? "skipped" : null),
    leavesOut: () => false,
    execute: async ({ key, work }) => {
      await ("step" in work ? engine.execute(work.step) : engine.dispatch(work.job));
      return engine.recordOf(key)?.phase === "skipped" ? "skipped" : "completed";
    },
  });
  if (failure !== undefined) throw failure.error;
}

/** A run that was sent to a step while its class was a chain has nothing more to do with what comes before that. */
function whatLiesBehind(nodes: readonly Node[], { position, known }: Stepping): ReadonlySet<string> {
  const behind = new Set<string>();
  if (position === null) return behind;
  const before = new Map(nodes.map(({ key, after }) => [key, after]));
  const open = before.has(position) ? [position] : known.map(({ name }) => name);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const one of before.get(next) ?? []) {
      if (behind.has(one)) continue;
      behind.add(one);
      open.push(one);
    }
  }
  return behind;
}

/**
 * A graph that was imported goes before what the class says. What its nodes do is still the class's, unless they name a job
 * where the class has code, or give it arguments of their own.
 */
function nodesOf(web: Web, engine: Stepping): Node[] {
  const { dag } = engine;
  if (dag === null) return web.nodes.map(({ step, after }) => ({ key: step.name, after, work: { step } }));
  const steps = new Map(web.nodes.map(({ step }) => [step.name, step]));
  return Object.entries(dag.nodes).map(([id, { name, job, args, depends_on }]): Node => {
    const step = ofClass(steps.get(name), job, args);
    if (step === null)
      return {
        key: id,
        after: depends_on,
        work: { job: { id, name, job: job ?? name, args, frozenAt: dag.frozen_at } },
      };
    return { key: id, after: depends_on, work: { step: { ...step, name: id } } };
  });
}

function ofClass(step: DeclaredStep | undefined, job: string | undefined, args: unknown): DeclaredStep | null {
  if (step === undefined || job === undefined) return step ?? null;
  if (step.job === null || args !== undefined) return null;
  return step.job.name === job ? step : step.job.withAnother(job);
}
