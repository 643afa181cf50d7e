/** What a worker can execute: its workflows, its jobs, graphs that were built at run time; and by which routes it is asked for them. */

import { InvalidInputError } from "../../core/errors/errors.js";
import { checkName } from "../../core/naming/names.js";
import { frozenVersion, graphRoute, jobWorkflow } from "../../core/naming/route.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import { coordinator } from "../../define/dynamic/coordinator.js";
import { isJob, type JobDefinition } from "../../define/dynamic/job.js";
import { type AnyWorkflow, asDefinitions } from "../../define/resolve.js";
import type { Runtime } from "../../runtime/runtime.js";
import { heardOf } from "../../store/contract/live-workers.js";
import type { Store } from "../../store/contract/store.js";
import type { JobInfo, Registered } from "../turn/host.js";
import { PausedQueues } from "./paused-queues.js";
import { type QueuedRoute, routesOf } from "./routes.js";

export interface Executable {
  readonly workflows: readonly AnyWorkflow[];
  readonly jobs?: readonly JobDefinition[];
  readonly queues?: readonly string[];
}

type Registration = (name: string) => Promise<Registered | null>;

export class WorkflowRegistry {
  readonly paused = new PausedQueues();
  readonly #definitions = new Map<string, WorkflowDefinition>();
  readonly #queues: ReadonlySet<string> | null;
  /** It takes runs of frozen graphs. */
  #coordinates = false;
  #routes: QueuedRoute[];

  constructor({ workflows, jobs, queues }: Executable) {
    if (!Array.isArray(workflows)) throw new InvalidInputError("A worker needs a list of `workflows`.");
    const definitions = asDefinitions(workflows);
    for (const definition of definitions) if (!isJob(definition)) this.#define(definition);
    // Jobs may be among them: a program that collects what a module exports need not tell them apart.
    const among = definitions.filter(isJob);
    if (jobs !== undefined || among.length > 0) this.#takeJobs(jobs ?? [], among);
    this.#queues = queues === undefined ? null : new Set(queues.map((queue) => checkName("queue", queue)));
    this.#routes = this.#routesWith(new Map());
  }

  #define(definition: WorkflowDefinition): void {
    const key = keyOf(definition.name, definition.version);
    const other = this.#definitions.get(key);
    if (other !== undefined && other !== definition) {
      throw new InvalidInputError(
        `Two different workflows are called "${definition.name}"; give one another name, or both a version.`,
      );
    }
    this.#definitions.set(key, definition);
  }

  #takeJobs(jobs: readonly JobDefinition[], others: readonly JobDefinition[]): void {
    if (!Array.isArray(jobs) || !jobs.every(isJob))
      throw new InvalidInputError(
        "`jobs` of a worker is a list of what job(…) makes; of a module that is Object.values(module), or if it exports other things, too, discoverWorkflows(module) as `workflows`.",
      );
    for (const one of [...jobs, ...others]) this.#define(one);
    this.#coordinates = true;
  }

  #routesWith(remembered: ReadonlyMap<string, readonly string[]>): QueuedRoute[] {
    const routes = routesOf(this.#definitions.values(), this.#queues, remembered);
    return this.#coordinates ? [...routes, { workflow: graphRoute, version: frozenVersion, queue: null }] : routes;
  }

  get definitions(): readonly WorkflowDefinition[] {
    return [...this.#definitions.values()];
  }

  get routes(): readonly QueuedRoute[] {
    return this.#routes;
  }

  /** A run may still be parked in a queue that its step had in the code of yesterday. */
  async rememberQueues(registration: Registration): Promise<void> {
    const remembered = new Map<string, readonly string[]>();
    for (const { name, declared } of this.#definitions.values()) {
      if (declared !== null) remembered.set(name, (await registration(name))?.queues ?? []);
    }
    this.#routes = this.#routesWith(remembered);
  }

  definitionOf(workflow: string, version: string): WorkflowDefinition | undefined {
    if (version === frozenVersion && this.#coordinates) return coordinator;
    return this.#definitions.get(keyOf(workflow, version));
  }

  /** @param version null: any */
  serves(route: string, version: string | null): boolean {
    const isAsked = (one: QueuedRoute) => one.workflow === route && (version === null || one.version === version);
    return this.#routes.some((one) => isAsked(one) && this.paused.isOpen(one));
  }

  /** Those that are not paused, each time in another order: no workflow is always the first to be asked for. */
  nextRoutes(): readonly QueuedRoute[] {
    const first = this.#routes.shift();
    if (first !== undefined) this.#routes.push(first);
    return this.paused.openOnes(this.#routes);
  }

  /** What is known of a job that this worker, or some other live one, has. */
  async jobInfo(job: string, store: Store, registration: Registration, runtime: Runtime): Promise<JobInfo> {
    const name = jobWorkflow(job);
    const own = this.#definitions.get(keyOf(name, ""));
    if (own !== undefined) return { queue: own.queue ?? name, priority: own.priority, tags: own.tags };
    const live = await heardOf(store, runtime);
    const isThere = live.some(({ routes }) => routes.some(({ workflow }) => workflow === name));
    const known = isThere ? await registration(name) : null;
    return known === null ? null : { queue: known.queue, priority: known.priority, tags: known.tags };
  }
}

const keyOf = (workflow: string, version: string) => `${workflow}\u0000${version}`;
