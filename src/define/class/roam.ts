/** Takes a run through a class that is more than a chain: steps and tasks side by side, each when its time has come. */
import { StepNotDefinedError } from "../../core/errors.js";
import { type ScheduledNode, workOff } from "../schedule.js";
import type { DeclaredStep, DispatchedNode, Stepping } from "../stepping.js";

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
  const known = new Set(nodes.map(({ key }) => key));
  for (const { name, phase } of engine.known) {
    if (phase !== "open" || known.has(name)) continue;
    if (!web.removed.has(name))
      return engine.hold(new StepNotDefinedError({ workflow: web.workflow, step: name, inGraph: true }), name);
    await engine.passOver(name);
  }
  const [failure] = await workOff<Node>({
    nodes,
    concurrency: Number.POSITIVE_INFINITY,
    onFailure: "stop",
    ended: ({ key }) => engine.recordOf(key)?.phase ?? null,
    leavesOut: () => false,
    execute: async ({ key, work }) => {
      await ("step" in work ? engine.execute(work.step) : engine.dispatch(work.job));
      return engine.recordOf(key)?.phase === "skipped" ? "skipped" : "completed";
    },
  });
  if (failure !== undefined) throw failure.error;
  engine.atEnd();
}

/** A graph that was imported goes before what the class says; what its nodes do is still the class's, unless they name a job. */
function nodesOf(web: Web, engine: Stepping): Node[] {
  const { dag } = engine;
  if (dag === null) return web.nodes.map(({ step, after }) => ({ key: step.name, after, work: { step } }));
  const steps = new Map(web.nodes.map(({ step }) => [step.name, step]));
  return Object.entries(dag.nodes).map(([id, { name, job, args, depends_on }]): Node => {
    const step = steps.get(name);
    if (job !== undefined || step === undefined)
      return {
        key: id,
        after: depends_on,
        work: { job: { id, name, job: job ?? name, args, frozenAt: dag.frozen_at } },
      };
    return { key: id, after: depends_on, work: { step: { ...step, name: id } } };
  });
}
