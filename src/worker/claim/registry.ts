/** The workflows, jobs and run-time graphs that a worker can execute, and the routes by which it claims their runs. */

import { InvalidInputError } from "../../core/errors/errors.js";
import { checkName } from "../../core/naming/names.js";
import { frozenDagVersion, graphRoute, jobWorkflow } from "../../core/naming/route.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import { coordinator } from "../../define/dynamic/coordinator.js";
import { isJob, type JobDefinition } from "../../define/dynamic/job.js";
import { type AnyWorkflow, asDefinitions } from "../../define/resolve.js";
import type { Runtime } from "../../runtime/runtime.js";
import { findLiveWorkers } from "../../store/contract/live-workers.js";
import type { Route, Store } from "../../store/contract/store.js";
import { hasLimits } from "../limits/limited-workflows.js";
import type { JobInfo, WorkflowSummary } from "../turn/turn-host.js";
import { PausedQueues } from "./paused-queues.js";
import { type QueuedRoute, routesOf } from "./routes.js";

export interface RegistryOptions {
  readonly workflows: readonly AnyWorkflow[];
  readonly jobs?: readonly JobDefinition[];
  readonly queues?: readonly string[];
}

type FindRegistration = (name: string) => Promise<WorkflowSummary | null>;

export class WorkflowRegistry {
  readonly pausedQueues = new PausedQueues();
  readonly #definitions = new Map<string, WorkflowDefinition>();
  readonly #queues: ReadonlySet<string> | null;
  /** Whether the worker executes graphs that were built at run time. */
  #executesGraphs = false;
  #routes: QueuedRoute[];
  #unlimitedRoutes: QueuedRoute[] = [];
  #limitedRoutes: QueuedRoute[] = [];
  #rememberedQueues: ReadonlyMap<string, readonly string[]> = new Map();

  constructor({ workflows, jobs, queues }: RegistryOptions) {
    if (!Array.isArray(workflows)) throw new InvalidInputError("A worker needs a list of `workflows`.");
    const definitions = asDefinitions(workflows);
    for (const definition of definitions) if (!isJob(definition)) this.#addDefinition(definition);
    // `workflows` may contain jobs, so that a program can pass all exports of a module.
    const jobsAmongWorkflows = definitions.filter(isJob);
    if (jobs !== undefined || jobsAmongWorkflows.length > 0) this.#addJobs(jobs ?? [], jobsAmongWorkflows);
    this.#queues = queues === undefined ? null : new Set(queues.map((queue) => checkName("queue", queue)));
    this.#routes = this.#createRoutes(new Map());
    this.#divideRoutes();
  }

  #divideRoutes(): void {
    const limitedRoutes = new Set(
      this.limitedDefinitions
        .flatMap((definition) => routesOf([definition], this.#queues, this.#rememberedQueues))
        .map(routeKeyOf),
    );
    this.#unlimitedRoutes = this.#routes.filter((route) => !limitedRoutes.has(routeKeyOf(route)));
    this.#limitedRoutes = this.#routes.filter((route) => limitedRoutes.has(routeKeyOf(route)));
  }

  #addDefinition(definition: WorkflowDefinition): void {
    const key = definitionKeyOf(definition.name, definition.version);
    const existing = this.#definitions.get(key);
    if (existing !== undefined && existing !== definition) {
      throw new InvalidInputError(
        `Two different workflows are called "${definition.name}"; give one another name, or both a version.`,
      );
    }
    this.#definitions.set(key, definition);
  }

  #addJobs(jobs: readonly JobDefinition[], jobsAmongWorkflows: readonly JobDefinition[]): void {
    if (!Array.isArray(jobs) || !jobs.every(isJob))
      throw new InvalidInputError(
        "`jobs` of a worker must be a list of jobs made by job(…): for a module, pass Object.values(module); if it also exports other things, pass discoverWorkflows(module) as `workflows`.",
      );
    for (const job of [...jobs, ...jobsAmongWorkflows]) this.#addDefinition(job);
    this.#executesGraphs = true;
  }

  #createRoutes(rememberedQueues: ReadonlyMap<string, readonly string[]>): QueuedRoute[] {
    const routes = routesOf(this.#definitions.values(), this.#queues, rememberedQueues);
    return this.#executesGraphs
      ? [...routes, { workflow: graphRoute, version: frozenDagVersion, queue: null }]
      : routes;
  }

  get definitions(): readonly WorkflowDefinition[] {
    return [...this.#definitions.values()];
  }

  get routes(): readonly QueuedRoute[] {
    return this.#routes;
  }

  /**
   * Adds routes for the queues that steps used in earlier versions of the code, because runs may still be parked in
   * them.
   */
  async rememberQueues(findRegistration: FindRegistration): Promise<void> {
    const rememberedQueues = new Map<string, readonly string[]>();
    for (const { name, declared } of this.#definitions.values()) {
      if (declared !== null) rememberedQueues.set(name, (await findRegistration(name))?.stepQueues ?? []);
    }
    this.#rememberedQueues = rememberedQueues;
    this.#routes = this.#createRoutes(rememberedQueues);
    this.#divideRoutes();
  }

  definitionOf(workflow: string, version: string): WorkflowDefinition | undefined {
    if (version === frozenDagVersion && this.#executesGraphs) return coordinator;
    return this.#definitions.get(definitionKeyOf(workflow, version));
  }

  /** @param version the version of the workflow; null: any version */
  canExecute(route: string, version: string | null): boolean {
    const isMatching = (candidate: QueuedRoute) =>
      candidate.workflow === route && (version === null || candidate.version === version);
    return this.#routes.some((candidate) => isMatching(candidate) && this.pausedQueues.isOpen(candidate));
  }

  /** Whether a workflow has limits, or shares its turns fairly. */
  get hasLimits(): boolean {
    return this.limitedDefinitions.length > 0;
  }

  get limitedDefinitions(): readonly WorkflowDefinition[] {
    return [...this.#definitions.values()].filter(hasLimits);
  }

  /** Whether a run may be executed from its birth, without a claim; with limits it needs an admission. */
  canAdopt(workflow: string, version: string): boolean {
    const definition = this.definitionOf(workflow, version);
    return definition !== undefined && !hasLimits(definition) && this.canExecute(workflow, version);
  }

  /** The routes of workflows with limits whose queues are not paused. */
  limitedRoutes(): readonly QueuedRoute[] {
    return this.pausedQueues.filterOpen(this.#limitedRoutes);
  }

  /** The routes of workflows without limits. */
  get unlimitedRoutes(): readonly Route[] {
    return this.#unlimitedRoutes;
  }

  /**
   * Returns the routes without limits whose queues are not paused, rotated by one at each call, so that no workflow is always claimed
   * first.
   */
  nextRoutes(): readonly QueuedRoute[] {
    const first = this.#unlimitedRoutes.shift();
    if (first !== undefined) this.#unlimitedRoutes.push(first);
    return this.pausedQueues.filterOpen(this.#unlimitedRoutes);
  }

  /** Returns the queue, priority and tags of a job; null if neither this worker nor any other live worker has the job. */
  async jobInfo(job: string, store: Store, findRegistration: FindRegistration, runtime: Runtime): Promise<JobInfo> {
    const name = jobWorkflow(job);
    const ownJob = this.#definitions.get(definitionKeyOf(name, ""));
    if (ownJob !== undefined) return { queue: ownJob.queue ?? name, priority: ownJob.priority, tags: ownJob.tags };
    const liveWorkers = await findLiveWorkers(store, runtime);
    const hasLiveWorker = liveWorkers.some(({ routes }) => routes.some(({ workflow }) => workflow === name));
    const registration = hasLiveWorker ? await findRegistration(name) : null;
    return registration === null
      ? null
      : { queue: registration.queue, priority: registration.priority, tags: registration.tags };
  }
}

const routeKeyOf = ({ workflow, version }: QueuedRoute) => `${workflow}\u0000${version}`;
const definitionKeyOf = (workflow: string, version: string) => `${workflow}\u0000${version}`;
