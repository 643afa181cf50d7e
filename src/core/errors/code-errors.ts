/** The code and the stored runs disagree. */

import { nameErrors, PawlError } from "./pawl-error.js";

/** A run stands at a step that the code no longer has, or code names a step that there is not. */
export class StepNotDefinedError extends PawlError {
  readonly code = "STEP_NOT_DEFINED";
  readonly workflow: string;
  readonly step: string;

  /** @param details `problem`: the code itself is wrong, and this sentence says how; no open run is concerned */
  constructor(details: { workflow: string; step: string; inGraph?: boolean; problem?: string }) {
    const step = JSON.stringify(details.step);
    const aliases = `aliases: { newName: [${step}] }`;
    const define = details.inGraph
      ? `define the workflow with ${aliases} (in a class: this.options({ aliases: … }))`
      : `say this.options({ ${aliases} })`;
    const renamed = `If it has another name now, ${define} and resume(), or resume({ renamed: { ${step}: "newName" } }).`;
    const ways = details.inGraph
      ? "Otherwise bring the step back and resume(), or pass over it with skip()."
      : "Otherwise bring the step back and resume(), continue elsewhere with resumeAt(step), or list it in removedSteps.";
    super(
      details.problem ??
        `Workflow ${JSON.stringify(details.workflow)} has no step ${step} (any more). ${renamed} ${ways}`,
    );
    this.workflow = details.workflow;
    this.step = details.step;
  }
}

/** A node of a stored graph names a job that this worker does not have. */
export class MissingJobError extends PawlError {
  readonly code = "MISSING_JOB";
  readonly runId: string;
  readonly node: string;
  readonly job: string;
  /** When the graph was frozen, in epoch milliseconds; null: the run goes by its class. */
  readonly frozenAt: number | null;

  constructor(details: { runId: string; node: string; job: string; frozenAt: number | null }) {
    const { runId, node, job, frozenAt } = details;
    const graph =
      frozenAt === null ? "" : `; the graph was frozen at ${isoTime(frozenAt)} and does not change with the code`;
    super(
      `Node ${JSON.stringify(node)} of run ${runId} needs the job ${JSON.stringify(job)}, which no live worker ` +
        `has${graph}. Give the job to worker({ jobs }) and resume(), name another job with importDag(), pass over ` +
        "the node with skip(), or cancel the run.",
    );
    this.runId = runId;
    this.node = node;
    this.job = job;
    this.frozenAt = frozenAt;
  }
}

/** A graph is not valid: an unknown or doubled name, a cycle, an output that cannot be read from there. */
export class GraphError extends PawlError {
  readonly code = "GRAPH_ERROR";
  readonly workflow: string | undefined;
  /** The nodes it is about; for a cycle, in order. */
  readonly nodes: readonly string[];

  constructor(message: string, details: { workflow?: string; nodes?: readonly string[] } = {}) {
    super(message);
    this.workflow = details.workflow;
    this.nodes = details.nodes ?? [];
  }
}

/** On replay the code did something else than what is recorded. */
export class NonDeterminismError extends PawlError {
  readonly code = "NON_DETERMINISM";
  readonly runId: string;
  /** The steps where code and record differ. */
  readonly steps: readonly string[];

  constructor(details: { runId: string; steps: readonly string[]; problem: string; remedy?: string }) {
    const {
      remedy = "Deploy code that does as the log says and resume(), or end the run with cancel(reason, { force: true }).",
    } = details;
    super(`Run ${details.runId} cannot be replayed: ${details.problem}. ${remedy}`);
    this.runId = details.runId;
    this.steps = details.steps;
  }
}

function isoTime(at: number): string {
  return Number.isNaN(new Date(at).getTime()) ? String(at) : new Date(at).toISOString();
}

nameErrors({ StepNotDefinedError, MissingJobError, GraphError, NonDeterminismError });
