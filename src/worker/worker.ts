/** A worker: keeps its lease, takes runs that are due, and gives each to its session, which takes it through its turn. */
import { hostname } from "node:os";
import { type Duration, parseDuration } from "../core/duration.js";
import { InvalidInputError, InvalidStateError } from "../core/errors.js";
import { checkName } from "../core/names.js";
import { nextLookIn } from "../core/pace.js";
import { frozenVersion, graphRoute, jobWorkflow } from "../core/route.js";
import { type AnyWorkflow, asDefinition } from "../define/as-definition.js";
import type { Logger } from "../define/context.js";
import type { ErrorReporter, WorkflowDefinition } from "../define/definition.js";
import { coordinator } from "../define/dynamic/coordinator.js";
import { isJob, type JobDefinition } from "../define/dynamic/job.js";
import { heardOf } from "../store/serving.js";
import type { Hint, NewRun, Route, Store } from "../store/store.js";
import { Backoff } from "./backoff.js";
import type { StartReceipt } from "./committer.js";
import type { JobInfo } from "./dispatch.js";
import { maxTimerMs } from "./execution.js";
import { Housekeeping } from "./housekeeping.js";
import { Lease } from "./lease.js";
import { PausedQueues } from "./paused-queues.js";
import { type QueuedRoute, routesOf } from "./routes.js";
import { Session } from "./session.js";
import { SlowSteps } from "./slow-steps.js";
import type { Turn } from "./turn.js";
import type { Registered } from "./turn-host.js";

export interface WorkerOptions {
  readonly workflows: readonly AnyWorkflow[];
  /** What the nodes of graphs run here. With any, even none, the worker also takes care of graphs that were built at run time. */
  readonly jobs?: readonly JobDefinition[];
  /** Take only runs that are in one of these queues; default: all queues of its workflows. */
  readonly queues?: readonly string[];
  /** How many runs may be executed at a time; default 100. Runs that wait do not count. */
  readonly concurrency?: number;
  readonly name?: string;
  /** How long it may be silent before others take its runs; default 10 s. */
  readonly lease?: Duration;
  /** How often it looks for work without being told; default 1 s, `Infinity` never (then wake-ups must do). */
  readonly poll?: Duration;
  /** How long `stop` waits for running steps; default 10 s. */
  readonly grace?: Duration;
  /** How often a run may take its worker down before it is paused; default 5. */
  readonly maxDeliveries?: number;
  /** How often it does its share of the housekeeping (retention, dead workers, stuck runs); default 1 hour, `Infinity` never. */
  readonly housekeeping?: Duration;
}

export interface WorkerServices {
  readonly store: Store;
  readonly log: Logger;
  readonly newId: () => string;
  /** Makes the workflows known, and looks up those that are known by name only. */
  register(definitions: readonly WorkflowDefinition[]): Promise<void>;
  registration(name: string): Promise<Registered | null>;
  readonly onError: ErrorReporter | null;
  /** Deletes what is older than the retention, if there is one. */
  readonly prune: ((stop: AbortSignal) => Promise<{ readonly runs: number }>) | null;
}

type Phase = "idle" | "running" | "stopping" | "stopped";

export class Worker {
  readonly id: string;
  readonly name: string;
  readonly #services: WorkerServices;
  readonly #definitions = new Map<string, WorkflowDefinition>();
  readonly #queues: ReadonlySet<string> | null;
  #routes: QueuedRoute[];
  readonly #pausedQueues = new PausedQueues();
  readonly #housekeeping: Housekeeping;
  readonly #concurrency: number;
  readonly #leaseMs: number;
  readonly #pollMs: number;
  readonly #graceMs: number;
  readonly #maxDeliveries: number;
  readonly #slowSteps = new SlowSteps();
  /** When it last had something to do; our own monotonic clock. */
  #busyAt = Number.NEGATIVE_INFINITY;
  #phase: Phase = "idle";
  #session: Session | null = null;
  #lease: Lease | null = null;
  #unwatch: (() => void) | null = null;
  #pollTimer: NodeJS.Timeout | null = null;
  #dueTimer: NodeJS.Timeout | null = null;
  #fillTimer: NodeJS.Timeout | null = null;
  /** When the earliest parked run that we know of becomes due. */
  #nextDueAt: number | null = null;
  #claiming: Promise<void> | null = null;
  #claimAgain = false;
  /** How many of our workflows the last claim found runs of. */
  #busyRoutes = 1;
  #claimed = 0;
  /** The answer to a claim or commit was lost: there may be runs that are ours without our knowing. */
  #uncertain = false;
  /** The earliest due time of runs that were parked while a claim was under way: its answer does not know of them. */
  #parkedMeanwhile: number | null = null;
  /** The last claim came back full: there is probably more. */
  #backlog = false;
  /** Slots that a claim under way may fill. */
  #reserved = 0;
  #emptied: (() => void) | null = null;
  #stopped: Promise<void> | null = null;
  /** It takes runs of frozen graphs. */
  #coordinates = false;
  #oneStep: { readonly runId: string; ended: boolean } | null = null;

  constructor(services: WorkerServices, options: WorkerOptions) {
    this.#services = services;
    this.id = services.newId();
    this.name = options.name === undefined ? `${hostname()}:${process.pid}` : checkName("worker", options.name);
    const { workflows, jobs } = options;
    if (!Array.isArray(workflows)) throw new InvalidInputError("A worker needs a list of `workflows`.");
    for (const workflow of workflows) if (!isJob(workflow)) this.#define(asDefinition(workflow));
    // A module's exports may be given as they are.
    const among = workflows.filter(isJob);
    if (jobs !== undefined || among.length > 0) this.#takeJobs([...(jobs ?? []), ...among]);
    this.#queues =
      options.queues === undefined ? null : new Set(options.queues.map((queue) => checkName("queue", queue)));
    this.#routes = this.#allRoutes(new Map());
    this.#concurrency = checkWhole("concurrency", options.concurrency ?? 100);
    this.#maxDeliveries = checkWhole("maxDeliveries", options.maxDeliveries ?? 5);
    this.#leaseMs = parseDuration(options.lease ?? "10s", "lease");
    this.#pollMs =
      options.poll === Number.POSITIVE_INFINITY
        ? Number.POSITIVE_INFINITY
        : parseDuration(options.poll ?? "1s", "poll");
    this.#graceMs = parseDuration(options.grace ?? "10s", "grace");
    const { housekeeping = "1 hour" } = options;
    const never = Number.POSITIVE_INFINITY;
    const everyMs = housekeeping === never ? never : parseDuration(housekeeping, "housekeeping");
    this.#housekeeping = new Housekeeping({ ...services, everyMs });
  }

  #allRoutes(remembered: ReadonlyMap<string, readonly string[]>): QueuedRoute[] {
    const routes = routesOf(this.#definitions.values(), this.#queues, remembered);
    return this.#coordinates ? [...routes, { workflow: graphRoute, version: frozenVersion, queue: null }] : routes;
  }

  #define(definition: WorkflowDefinition): void {
    const key = routeKey(definition.name, definition.version);
    const other = this.#definitions.get(key);
    if (other !== undefined && other !== definition) {
      throw new InvalidInputError(
        `Two different workflows are called "${definition.name}"; give one another name, or both a version.`,
      );
    }
    this.#definitions.set(key, definition);
  }

  #takeJobs(jobs: readonly JobDefinition[]): void {
    if (!Array.isArray(jobs) || !jobs.every(isJob))
      throw new InvalidInputError("`jobs` of a worker is a list of what job(…) makes.");
    for (const one of jobs) this.#define(one);
    this.#coordinates = true;
  }

  /** How many runs it is executing now. */
  get active(): number {
    return this.#session?.size ?? 0;
  }

  /** Queues that somebody has paused, as far as it has heard: it begins nothing there. */
  get pausedQueues(): readonly string[] {
    return this.#pausedQueues.names;
  }

  get phase(): Phase {
    return this.#phase;
  }

  async start(): Promise<this> {
    if (this.#phase !== "idle")
      throw new InvalidStateError(`Worker "${this.name}" is ${this.#phase}; make a new one to start again.`);
    this.#phase = "running";
    try {
      await this.#services.register([...this.#definitions.values()]);
      await this.#rememberQueues();
      this.#pausedQueues.learn((await this.#services.store.upkeep.pausedQueues()).map(({ name }) => name));
      await this.#beginSession();
    } catch (error) {
      this.#phase = "idle";
      throw error;
    }
    this.#unwatch = this.#services.store.watch((hint) => this.#onHint(hint));
    this.#housekeeping.start();
    this.#schedulePoll();
    this.#claimSoon();
    return this;
  }

  /** A run may still be parked in a queue that its step had in the code of yesterday. */
  async #rememberQueues(): Promise<void> {
    const remembered = new Map<string, readonly string[]>();
    for (const { name, declared } of this.#definitions.values()) {
      if (declared !== null) remembered.set(name, (await this.#services.registration(name))?.queues ?? []);
    }
    this.#routes = this.#allRoutes(remembered);
  }

  /** Takes no new runs; steps that run may finish, then their runs are handed over. After the grace period they are let go of. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const wasRunning = this.#phase === "running";
    this.#phase = "stopping";
    if (wasRunning) await this.#windDown();
    this.#phase = "stopped";
  }

  async #windDown(): Promise<void> {
    this.#unwatch?.();
    if (this.#pollTimer !== null) clearTimeout(this.#pollTimer);
    if (this.#dueTimer !== null) clearTimeout(this.#dueTimer);
    if (this.#fillTimer !== null) clearTimeout(this.#fillTimer);
    await Promise.all([this.#claiming, this.#housekeeping.stop()]);
    const session = this.#session;
    if (session !== null) {
      session.stop();
      await this.#untilEmpty(session);
      this.#session = null;
      session.kill();
      await this.#retire(session);
    }
    this.#lease?.stop();
    this.#slowSteps.stop();
  }

  async #untilEmpty(session: Session): Promise<void> {
    if (session.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const empty = new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
    const expired = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.min(this.#graceMs, maxTimerMs));
    });
    await Promise.race([empty, expired]);
    clearTimeout(timer);
    session.abort(new Error("The worker stops."));
  }

  async #retire(session: Session): Promise<void> {
    try {
      await this.#services.store.retire(session.committer.fence);
    } catch (error) {
      this.#services.log.warn(`Worker "${this.name}" could not sign off; its lease will run out.`, error);
    }
  }

  // ── Sessions ───────────────────────────────────────────────────────────────────────────────────────────────────────

  async #beginSession(): Promise<void> {
    const { store, log, registration } = this.#services;
    const leaseMs = this.#leaseMs;
    const routes = this.#routes.map(({ workflow, version }): Route => ({ workflow, version }));
    const fence = await store.enlist({
      id: this.id,
      name: this.name,
      host: hostname(),
      pid: process.pid,
      routes,
      leaseMs,
    });
    const session = new Session({
      store,
      log,
      registration,
      fence,
      workerName: this.name,
      slowSteps: this.#slowSteps,
      maxDeliveries: this.#maxDeliveries,
      graceMs: this.#graceMs,
      onError: this.#services.onError,
      serves: (route, version) => this.#serves(route, version),
      interruptions: () => this.#oneStep === null,
      crowded: () => this.#backlog || this.#free() <= 0,
      stepEnded: (turn) => this.#stepEnded(turn),
      definition: (workflow, version) => this.#definitionOf(workflow, version) as WorkflowDefinition,
      jobInfo: (job) => this.#jobInfo(job),
      onLost: (lost) => this.#lost(lost),
      onUncertain: () => {
        this.#uncertain = true;
        this.#claimSoon();
      },
      onRoom: (parking) => this.#onRoom(parking),
    });
    this.#session = session;
    this.#lease?.stop();
    this.#lease = new Lease(store, fence, leaseMs, log, {
      onLost: () => this.#lost(session),
      onMail: (runIds) => this.#mailFor(runIds),
      onPausedQueues: (names) => {
        if (this.#pausedQueues.learn(names)) this.#claimSoon();
      },
    });
  }

  #definitionOf(workflow: string, version: string): WorkflowDefinition | undefined {
    if (version === frozenVersion && this.#coordinates) return coordinator;
    return this.#definitions.get(routeKey(workflow, version));
  }

  async #jobInfo(job: string): Promise<JobInfo> {
    const name = jobWorkflow(job);
    const own = this.#definitions.get(routeKey(name, ""));
    if (own !== undefined) return { queue: own.queue ?? name, priority: own.priority, tags: own.tags };
    const { store, registration } = this.#services;
    const isThere = (await heardOf(store)).some(({ routes }) => routes.some(({ workflow }) => workflow === name));
    const known = isThere ? await registration(name) : null;
    return known === null ? null : { queue: known.queue, priority: known.priority, tags: known.tags };
  }

  /** Nothing of this session counts any more: its runs are somebody else's. Begin anew. */
  #lost(session: Session): void {
    if (session.dead) return;
    const { epoch } = session.committer.fence;
    this.#services.log.warn(
      `Worker "${this.name}" lost its lease (epoch ${epoch}); it drops ${session.size} runs and begins anew.`,
    );
    if (this.#session === session) this.#session = null;
    session.kill();
    this.#emptied?.();
    void this.#revive();
  }

  async #revive(): Promise<void> {
    const backoff = new Backoff();
    while (this.#phase === "running" && this.#session === null) {
      try {
        await this.#beginSession();
        this.#claimSoon();
      } catch (error) {
        this.#services.log.warn(`Worker "${this.name}" cannot register yet.`, error);
        await backoff.wait();
      }
    }
  }

  #onRoom(parking: { readonly dueAt: number; readonly now: number } | null): void {
    if (this.active === 0) this.#emptied?.();
    if (this.#backlog) this.#fillUp();
    if (parking === null) return;
    this.#parkedMeanwhile = Math.min(parking.dueAt, this.#parkedMeanwhile ?? parking.dueAt);
    if (this.#nextDueAt === null || parking.dueAt < this.#nextDueAt) this.#wakeAt(parking.dueAt, parking.now);
  }

  /** At once when there is much room; a moment later when there is little, so that claims take several runs at a time. */
  #fillUp(): void {
    if (this.#free() >= this.#concurrency >> 1) return this.#claimSoon();
    this.#fillTimer ??= setTimeout(() => {
      this.#fillTimer = null;
      this.#claimSoon();
    }, fillAfterMs);
  }

  // ── Taking runs ────────────────────────────────────────────────────────────────────────────────────────────────────

  #free(): number {
    return this.#concurrency - this.active - this.#reserved;
  }

  #onHint(hint: Hint): void {
    if (hint.kind === "mail") this.#mailFor(hint.runIds);
    if (hint.kind === "anything") void this.#lease?.lookNow();
    const concernsMe =
      hint.kind === "ready"
        ? hint.workflows.length === 0 || hint.workflows.some((name) => this.#serves(name, null))
        : hint.kind !== "done";
    if (concernsMe) this.#claimSoon();
  }

  #serves(route: string, version: string | null): boolean {
    const isAsked = (one: Route) => one.workflow === route && (version === null || one.version === version);
    return this.#routes.some((one) => isAsked(one) && this.#pausedQueues.isOpen(one));
  }

  #mailFor(runIds: readonly string[]): void {
    for (const runId of runIds) void this.#session?.turns.get(runId)?.poke();
  }

  #schedulePoll(): void {
    if (this.#pollTimer !== null) clearTimeout(this.#pollTimer);
    if (this.#pollMs > maxTimerMs || this.#phase !== "running") return;
    const delay = this.#services.store.hearsOthers
      ? this.#pollMs
      : nextLookIn(performance.now() - this.#busyAt, this.#pollMs);
    this.#pollTimer = setTimeout(() => {
      this.#claimSoon();
      this.#schedulePoll();
    }, delay);
  }

  /** There was something to do: more may come soon. */
  #noteBusy(): void {
    const now = performance.now();
    const wasQuiet = now - this.#busyAt > 1_000;
    this.#busyAt = now;
    if (wasQuiet && !this.#services.store.hearsOthers) this.#schedulePoll();
  }

  #claimSoon(): void {
    if (this.#phase !== "running" || this.#session === null || this.#oneStep?.ended === true) return;
    if (this.#claiming !== null) {
      // It may have looked before what we are told of was there.
      this.#claimAgain = true;
      return;
    }
    if (this.#free() <= 0) {
      // Whatever we were told of is still there when there is room.
      this.#backlog = true;
      return;
    }
    this.#claiming = this.#claim(this.#session).finally(() => {
      this.#claiming = null;
      if (!this.#claimAgain) return;
      this.#claimAgain = false;
      this.#claimSoon();
    });
  }

  async #claim(session: Session): Promise<void> {
    const limit = Math.min(this.#free(), claimLimit);
    this.#reserved += limit;
    this.#parkedMeanwhile = null;
    try {
      if (this.#uncertain) {
        this.#uncertain = false;
        await session.reconcile();
      }
      // A share for each workflow that had something lately. What is found beyond the limit was locked for nothing.
      const limitPerRoute = Math.max(Math.ceil(limit / this.#busyRoutes), Math.min(limit, 20));
      const claim = await this.#services.store.claim({
        fence: session.committer.fence,
        routes: this.#rotatedRoutes(),
        limit,
        limitPerRoute,
      });
      if (claim.kind === "fenced") return this.#lost(session);
      this.#backlog = claim.tasks.length >= Math.min(limit, limitPerRoute);
      if (this.#backlog) this.#claimAgain = true;
      const dueAt = this.#backlog ? this.#nextDueAt : claim.nextDueAt;
      const meanwhile = this.#parkedMeanwhile;
      this.#wakeAt(dueAt === null ? meanwhile : Math.min(dueAt, meanwhile ?? dueAt), claim.at);
      this.#claimed += claim.tasks.length;
      if (claim.tasks.length > 0) {
        this.#busyRoutes = new Set(claim.tasks.map(({ run }) => routeKey(run.workflow, run.version))).size;
        this.#noteBusy();
      }
      await session.open(claim.tasks, claim.at);
    } catch (error) {
      this.#services.log.warn(`Worker "${this.name}" could not claim runs.`, error);
      this.#uncertain = true;
      if (!session.dead) setTimeout(() => this.#claimSoon(), 200).unref();
    } finally {
      this.#reserved -= limit;
    }
  }

  /** No workflow is always the first to be asked for. */
  #rotatedRoutes(): readonly Route[] {
    const first = this.#routes.shift();
    if (first !== undefined) this.#routes.push(first);
    return this.#pausedQueues.openOnes(this.#routes);
  }

  #wakeAt(dueAt: number | null, now: number): void {
    if (this.#dueTimer !== null) clearTimeout(this.#dueTimer);
    this.#dueTimer = null;
    this.#nextDueAt = dueAt;
    if (dueAt === null || this.#phase !== "running") return;
    this.#dueTimer = setTimeout(
      () => {
        this.#nextDueAt = null;
        this.#claimSoon();
      },
      Math.min(Math.max(0, dueAt - now) + 1, maxTimerMs),
    );
    this.#dueTimer.unref();
  }

  // ── Runs that are started in this process ──────────────────────────────────────────────────────────────────────────

  /** Whether a run of this workflow could begin here at once. */
  canAdopt(workflow: string, version: string): boolean {
    return (
      this.#phase === "running" &&
      this.#session !== null &&
      this.#free() > 0 &&
      this.#definitionOf(workflow, version) !== undefined &&
      this.#serves(workflow, version)
    );
  }

  /** Starts a run that is this worker's from birth: no claim, no wake-up. */
  adopt(run: NewRun): Promise<StartReceipt> {
    return (this.#session as Session).adopt(run);
  }

  /** Executes everything that is due, as long as there is anything; returns when the next run becomes due. For tests. */
  async runUntilIdle(): Promise<number | null> {
    this.#oneStep = null;
    return this.#runUntilIdle();
  }

  /**
   * The same, but goes no further than the next declared step of this run that ends, and lets nothing interrupt it
   * meanwhile. The worker then takes no more runs until it is asked to. For tests.
   */
  async runOneStep(runId: string): Promise<{ readonly ended: boolean; readonly nextDueAt: number | null }> {
    const oneStep = { runId, ended: false };
    this.#oneStep = oneStep;
    const nextDueAt = await this.#runUntilIdle();
    return { ended: oneStep.ended, nextDueAt };
  }

  #stepEnded(turn: Turn): void {
    if (this.#oneStep?.runId !== turn.runId) return;
    this.#oneStep.ended = true;
    turn.stop();
  }

  async #runUntilIdle(): Promise<number | null> {
    for (;;) {
      await this.#settle();
      const before = this.#claimed;
      this.#claimSoon();
      await this.#settle();
      if (this.#claimed === before) return this.#nextDueAt;
    }
  }

  async #settle(): Promise<void> {
    while (this.#claiming !== null || this.active > 0 || this.#reserved > 0) {
      await this.#claiming;
      await Promise.all([...(this.#session?.turns.values() ?? [])].map((turn) => turn.poke()));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

const claimLimit = 256;
const fillAfterMs = 5;
const routeKey = (workflow: string, version: string) => `${workflow}\u0000${version}`;

function checkWhole(name: string, value: number): number {
  if (Number.isInteger(value) && value > 0) return value;
  throw new InvalidInputError(`A worker's ${name} is a whole number above 0, not ${value}.`);
}
