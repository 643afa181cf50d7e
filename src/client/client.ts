/** Triggers: start runs, find runs, look at them. Needs no workflow code, only names. */
import { randomFillSync } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { decode, encode } from "../core/codec.js";
import { type Duration, parseDuration } from "../core/duration.js";
import {
  AlreadyActiveError,
  FencedError,
  InvalidInputError,
  RunNotFoundError,
  WorkflowNotFoundError,
} from "../core/errors.js";
import { isUuid, uuidv7 } from "../core/ids.js";
import { checkName } from "../core/names.js";
import type { Logger } from "../define/context.js";
import { isDefinition, type WorkflowDefinition } from "../define/definition.js";
import { checkPriority } from "../define/function.js";
import { validate } from "../define/standard-schema.js";
import type { NewRun, Refusal, RunStatus, Store, WorkerRecord } from "../store/store.js";
import { RunHandle } from "./handle.js";
import { type RunInfo, runInfo } from "./info.js";
import { Results } from "./results.js";
import { Starter } from "./starter.js";
import { type Verification, verify } from "./verify.js";

export interface Hero {
  readonly type: string;
  readonly id: string;
}

export interface StartOptions {
  /** The same key starts a workflow once; later starts with it get the first run. */
  readonly idempotencyKey?: string;
  /** Who the run is about. One active run per workflow and hero, unless `allowMultiple`. */
  readonly hero?: Hero;
  readonly allowMultiple?: boolean;
  readonly delay?: Duration;
  readonly startAt?: Date | number;
  readonly priority?: number;
  readonly tags?: readonly string[];
  /** The caller's own open transaction: the run exists if and when it commits. */
  readonly tx?: unknown;
}

export interface RunsFilter {
  readonly workflow?: WorkflowDefinition | string;
  readonly status?: RunStatus;
  /** Not completed, failed or canceled. */
  readonly active?: boolean;
  readonly hero?: Hero;
  readonly tag?: string;
  readonly createdAfter?: Date | number;
  readonly createdBefore?: Date | number;
  readonly limit?: number;
  /** `next` of the page before. */
  readonly cursor?: string;
}

/** A way to start a run that begins in this very process, when a worker of it has room. */
export interface Adopter {
  canAdopt(workflow: string, version: string): boolean;
  adopt(run: NewRun): Promise<{ readonly at: number; readonly refusal: Refusal | null }>;
}

/** What the registry knows of a workflow. */
interface Registration {
  readonly queue: string;
  readonly version: string;
  readonly priority: number;
  readonly tags: readonly string[];
}

type InputArgs<Input> = [Input] extends [void]
  ? [input?: Input, options?: StartOptions]
  : [input: Input, options?: StartOptions];

const maxPage = 1_000;
const servedForMs = 10_000;

export class Client {
  protected readonly store: Store;
  protected readonly log: Logger;
  protected readonly adopters = new Set<Adopter>();
  readonly #starter: Starter;
  readonly #results: Results;
  readonly #definitions = new Set<WorkflowDefinition>();
  /** Routes that have a live worker, as of a moment ago (or were warned about). */
  #served = new Set<string>();
  #servedUntil = 0;
  #asked: Promise<void> | null = null;

  constructor(store: Store, log: Logger) {
    this.store = store;
    this.log = log;
    this.#starter = new Starter(store);
    this.#results = new Results(store);
  }

  /** Starts a run. When this returns, the run survives whatever happens. */
  async start<Input, Output>(
    definition: WorkflowDefinition<Input, Output>,
    ...[input, options]: InputArgs<Input>
  ): Promise<RunHandle<Input, Output>> {
    checkDefinition(definition);
    await this.#registerFor(definition, options);
    return this.#launch(await this.#born(definition, input, options), options);
  }

  /** Starts many runs of one workflow, all in few commits. */
  async startMany<Input, Output>(
    definition: WorkflowDefinition<Input, Output>,
    inputs: readonly Input[],
    options?: Omit<StartOptions, "idempotencyKey" | "hero">,
  ): Promise<RunHandle<Input, Output>[]> {
    checkDefinition(definition);
    await this.#registerFor(definition, options);
    const runs = await Promise.all(inputs.map((input) => this.#born(definition, input, options)));
    return Promise.all(runs.map((run) => this.#launch<Input, Output>(run, options)));
  }

  /** A workflow that is known by its name only. */
  workflow<Input = unknown, Output = unknown>(name: string) {
    checkName("workflow", name);
    return {
      name,
      /** Starts a run; WorkflowNotFoundError when nobody ever registered this name. */
      trigger: async (...[input, options]: InputArgs<Input>): Promise<RunHandle<Input, Output>> => {
        const known = await this.registration(name);
        if (known === null) throw new WorkflowNotFoundError(name);
        // Its schema is where its code is: the worker checks, and fails the run.
        return this.#launch(await this.#born({ name, ...known, inputSchema: null }, input, options), options);
      },
      run: (id: string): RunHandle<Input, Output> => this.#handle(id),
    };
  }

  /** Makes a workflow known by name, for triggers that run before any of its workers. Idempotent. */
  async createWorkflow(name: string, options: { readonly queue?: string } = {}): Promise<void> {
    checkName("workflow", name);
    const queue = options.queue === undefined ? null : checkName("queue", options.queue);
    await this.store.registerWorkflows([{ name, queue, version: null, signature: null, graph: null }]);
  }

  /** A run's handle. Its existence is found out when it is used. */
  run<Input = unknown, Output = unknown>(id: string): RunHandle<Input, Output>;
  run<Input, Output>(definition: WorkflowDefinition<Input, Output>, id: string): RunHandle<Input, Output>;
  run(first: string | WorkflowDefinition, second?: string): RunHandle<any, any> {
    return this.#handle(typeof first === "string" ? first : (second as string));
  }

  /** Runs, newest first, a page at a time. */
  async runs(filter: RunsFilter = {}): Promise<{ readonly runs: RunInfo[]; readonly next: string | null }> {
    const limit = filter.limit ?? 50;
    if (!Number.isInteger(limit) || limit < 1 || limit > maxPage)
      throw new InvalidInputError(`runs({ limit }) is between 1 and ${maxPage}, not ${limit}.`);
    const { workflow, hero, cursor } = filter;
    const found = await this.store.runs({
      limit: limit + 1,
      ...(workflow === undefined ? {} : { workflow: typeof workflow === "string" ? workflow : workflow.name }),
      ...(filter.status === undefined ? {} : { status: checkStatus(filter.status) }),
      ...(filter.active === undefined ? {} : { active: filter.active }),
      ...(hero === undefined ? {} : { heroType: hero.type, heroId: hero.id }),
      ...(filter.tag === undefined ? {} : { tag: filter.tag }),
      ...(filter.createdAfter === undefined ? {} : { createdAfter: instant("createdAfter", filter.createdAfter) }),
      ...(filter.createdBefore === undefined ? {} : { createdBefore: instant("createdBefore", filter.createdBefore) }),
      ...(cursor === undefined ? {} : { after: readCursor(cursor) }),
    });
    const page = found.slice(0, limit);
    const last = page.at(-1);
    return { runs: page.map(runInfo), next: found.length > limit && last !== undefined ? writeCursor(last) : null };
  }

  workers(): Promise<readonly WorkerRecord[]> {
    return this.store.workers();
  }

  /** Folds every log (or one) and compares with the tables. */
  async verify(runId?: string): Promise<Verification> {
    if (runId !== undefined && !isUuid(runId)) throw new RunNotFoundError(runId);
    return verify(this.store, runId);
  }

  protected closeClient(): void {
    this.#results.close();
  }

  /** Makes definitions known to those who know only names. Once per process and definition. */
  async register(definitions: readonly WorkflowDefinition[]): Promise<void> {
    const fresh = definitions.filter((definition) => !this.#definitions.has(definition));
    if (fresh.length === 0) return;
    await this.store.registerWorkflows(
      fresh.map(({ name, queue, version, priority, tags }) => {
        const graph = JSON.stringify({ priority, tags });
        return { name, queue, version, signature: null, graph };
      }),
    );
    for (const definition of fresh) this.#definitions.add(definition);
  }

  /** In the caller's own transaction we cannot wait for ours: on SQLite it could not commit before the caller does. */
  async #registerFor(definition: WorkflowDefinition, options: StartOptions | undefined): Promise<void> {
    const registered = this.register([definition]);
    if (options?.tx === undefined) return registered;
    registered.catch((error) => this.log.warn(`Workflow "${definition.name}" could not be registered yet.`, error));
  }

  async registration(name: string): Promise<Registration | null> {
    const known = await this.store.workflow(name);
    if (known === null) return null;
    const defaults = known.graph === null ? {} : (JSON.parse(known.graph) as Partial<Registration>);
    return { queue: known.queue, version: known.version, priority: defaults.priority ?? 0, tags: defaults.tags ?? [] };
  }

  #handle(id: string): RunHandle<any, any> {
    if (typeof id !== "string" || !isUuid(id)) throw new RunNotFoundError(String(id));
    return new RunHandle(id, this.store, this.#results);
  }

  async #born(
    definition: Pick<WorkflowDefinition, "name" | "version" | "queue" | "priority" | "tags" | "inputSchema">,
    input: unknown,
    options: StartOptions = {},
  ): Promise<NewRun> {
    const { name, inputSchema } = definition;
    if (inputSchema !== null) await validate(inputSchema, input, `input of workflow "${name}"`);
    const hero =
      options.hero === undefined
        ? null
        : { type: checkName("hero type", options.hero.type), id: checkName("hero id", options.hero.id) };
    return {
      id: uuidv7(Date.now(), randomBytes()),
      workflow: name,
      version: definition.version,
      queue: definition.queue ?? name,
      priority: checkPriority(options.priority ?? definition.priority),
      input: encode(input, { what: `the input of workflow "${name}"` }),
      heroType: hero?.type ?? null,
      heroId: hero?.id ?? null,
      heroKey: hero === null || options.allowMultiple === true ? null : JSON.stringify([name, hero.type, hero.id]),
      tags: [...definition.tags, ...(options.tags ?? []).map((tag) => checkName("tag", tag))],
      startKey: options.idempotencyKey === undefined ? null : checkName("idempotency key", options.idempotencyKey),
      parentId: null,
      parentNode: null,
      parentIndex: null,
      due: dueOf(options),
    };
  }

  async #launch<Input, Output>(run: NewRun, options: StartOptions = {}): Promise<RunHandle<Input, Output>> {
    const refusal =
      options.tx === undefined
        ? await this.#commit(run)
        : ((await this.store.startInTransaction(options.tx, [run])).refused[0] ?? null);
    return this.#handle(refusal === null ? run.id : existing(run, refusal));
  }

  /** A worker of this process that has room takes the run from birth; otherwise it waits for whoever claims it. */
  async #commit(run: NewRun): Promise<Refusal | null> {
    if (run.due.kind === "now") {
      for (const adopter of this.adopters) {
        if (!adopter.canAdopt(run.workflow, run.version)) continue;
        try {
          return (await adopter.adopt(run)).refusal;
        } catch (error) {
          // The worker lost its lease: nothing was written, anybody may have the run.
          if (!(error instanceof FencedError)) throw error;
        }
      }
    }
    const { refusal } = await this.#starter.start(run);
    await this.#warnIfUnserved(run.workflow, run.version);
    return refusal;
  }

  /** When the database does not say, that is no reason to let a start fail that has been made. */
  async #readServed(): Promise<void> {
    try {
      const live = (await this.store.workers()).filter((worker) => worker.live);
      this.#served = new Set(live.flatMap(({ routes }) => routes.map((route) => `${route.workflow}@${route.version}`)));
      this.#servedUntil = Date.now() + servedForMs;
    } catch {
      this.#servedUntil = 0;
    }
  }

  /** A start without a worker is accepted and waits; whoever started it should know. Asked at most every few seconds. */
  async #warnIfUnserved(workflow: string, version: string): Promise<void> {
    const route = `${workflow}@${version}`;
    if (this.#served.has(route) && Date.now() < this.#servedUntil) return;
    // Its worker may be new: asked again, but once for all who start it now.
    this.#asked ??= this.#readServed().finally(() => {
      this.#asked = null;
    });
    await this.#asked;
    if (this.#served.has(route)) return;
    this.log.warn(`Workflow "${workflow}" was started, but no live worker has it; the run waits for one.`);
    this.#served.add(route);
  }
}

function checkDefinition(definition: unknown): void {
  if (isDefinition(definition)) return;
  throw new InvalidInputError(
    "This is not a workflow definition; to start by name use pawl.workflow(name).trigger(input).",
  );
}

function existing(run: NewRun, refusal: Refusal): string {
  const { existing: first } = refusal;
  if (refusal.reason === "heroKey") {
    throw new AlreadyActiveError({
      workflow: run.workflow,
      hero: { type: run.heroType as string, id: run.heroId as string },
      runId: first.id,
    });
  }
  if (first.input === run.input || isDeepStrictEqual(decode(first.input), decode(run.input))) return first.id;
  throw new InvalidInputError(
    `Workflow "${run.workflow}" was started with the idempotency key "${run.startKey}" before, as run ${first.id}, but with another input. Use another key for another start.`,
  );
}

function dueOf({ delay, startAt }: StartOptions): NewRun["due"] {
  if (delay !== undefined && startAt !== undefined)
    throw new InvalidInputError("Give either `delay` or `startAt`, not both.");
  if (delay !== undefined) return { kind: "in", ms: parseDuration(delay, "delay") };
  if (startAt !== undefined) return { kind: "at", ms: instant("startAt", startAt) };
  return { kind: "now" };
}

function instant(what: string, value: Date | number): number {
  const ms = Number(value);
  if (Number.isFinite(ms) && Math.abs(ms) <= 8.64e15) return Math.floor(ms);
  throw new InvalidInputError(`${what} is not a valid date.`);
}

const statuses = new Set<RunStatus>(["pending", "running", "waiting", "paused", "completed", "failed", "canceled"]);

function checkStatus(status: RunStatus): RunStatus {
  if (statuses.has(status)) return status;
  throw new InvalidInputError(`There is no status "${String(status)}"; there are ${[...statuses].join(", ")}.`);
}

const writeCursor = (run: { readonly createdAt: number; readonly id: string }) =>
  Buffer.from(`${run.createdAt}:${run.id}`).toString("base64url");

function readCursor(cursor: string): { readonly createdAt: number; readonly id: string } {
  const [createdAt, id] = Buffer.from(cursor, "base64url").toString().split(":");
  if (id !== undefined && isUuid(id) && Number.isFinite(Number(createdAt))) return { createdAt: Number(createdAt), id };
  throw new InvalidInputError("runs({ cursor }) takes the `next` of another page, nothing else.");
}

function randomBytes(): Uint8Array {
  return randomFillSync(new Uint8Array(10));
}
