/** Errors for code that does not fit the stored runs, or definitions that are not valid. */

import { nameErrors, PawlError } from "./pawl-error.js";

/**
 * The workflow does not define a step of this name. A worker pauses an open run with this error when the run has reached a
 * step that was renamed or removed; a class that refers to an unknown step throws it when the class is first used. The
 * message says how to map the old name to the new name, and which calls resume the run.
 */
export class StepNotDefinedError extends PawlError {
  readonly code = "STEP_NOT_DEFINED";
  /** The name of the workflow. */
  readonly workflow: string;
  /** The name of the step that the workflow does not define. */
  readonly step: string;

  /**
   * @param details `inGraph` is true when the workflow is a graph, whose runs cannot be moved with `resumeAt`. `problem`
   * replaces the whole message, for cases that the default message does not describe.
   */
  constructor(details: {
    workflow: string;
    step: string;
    /** True for workflows whose steps form a graph. */
    inGraph?: boolean;
    /** What is wrong, if the step is not simply missing. */
    problem?: string;
  }) {
    const step = JSON.stringify(details.step);
    const aliases = `aliases: { newName: [${step}] }`;
    const define = details.inGraph
      ? `define the workflow with ${aliases} (in a class: this.options({ aliases: … }))`
      : `add this.options({ ${aliases} })`;
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

/**
 * A run is paused with this error when one of its nodes names a job that no live worker has. Register the job with
 * `worker({ jobs })` and resume the run, name another job with `importDag()`, or skip the node.
 */
export class MissingJobError extends PawlError {
  readonly code = "MISSING_JOB";
  /** The run that is paused. */
  readonly runId: string;
  /** The name of the node. */
  readonly node: string;
  /** The name of the missing job. */
  readonly job: string;
  /** When the graph was frozen, in epoch milliseconds; null when the run's nodes come from its class. */
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

/**
 * A graph is not valid (an unknown or duplicate name, a cycle), or a step reads an output that it does not have. It is
 * thrown when the graph is defined, built or imported, or by `ctx.output()`. Correct the code that the message names.
 */
export class GraphError extends PawlError {
  readonly code = "GRAPH_ERROR";
  /** The name of the workflow; undefined when it is not known. */
  readonly workflow: string | undefined;
  /** The nodes that are not valid. For a cycle they are in the order of the cycle. */
  readonly nodes: readonly string[];

  constructor(message: string, details: { workflow?: string; nodes?: readonly string[] } = {}) {
    super(message);
    this.workflow = details.workflow;
    this.nodes = details.nodes ?? [];
  }
}

/**
 * A run is paused with this error when its code, on replay, makes other calls than the run's log has recorded, usually
 * because the code was changed. No new call is executed. Deploy code that matches the log and call `resume()`.
 */
export class NonDeterminismError extends PawlError {
  readonly code = "NON_DETERMINISM";
  /** The run that is paused. */
  readonly runId: string;
  /** The steps in which the code differs from the log. */
  readonly steps: readonly string[];

  constructor(details: {
    runId: string;
    steps: readonly string[];
    /** How the code differs from the log. */
    problem: string;
    /** What the user can do. */
    remedy?: string;
  }) {
    const {
      remedy = "Deploy code that matches the log and resume(), or end the run with cancel(reason, { force: true }).",
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
