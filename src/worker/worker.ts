/** A worker: keeps its lease, takes runs that are due, and gives each to its session, which takes it through its turn. */

import { hostname } from "node:os";
import { Backoff } from "../concurrency/backoff.js";
import { ExecutionAbortedError, InvalidInputError, InvalidStateError } from "../core/errors/errors.js";
import { checkOptions, checkWholeNumber } from "../core/naming/check-options.js";
import { type Duration, parseDuration } from "../core/naming/duration.js";
import { checkName } from "../core/naming/names.js";
import type { Logger } from "../define/context.js";
import type { ErrorReporter, WorkflowDefinition } from "../define/definition.js";
import type { JobDefinition } from "../define/dynamic/job.js";
import type { AnyWorkflow } from "../define/resolve.js";
import { monotonicMs } from "../runtime/monotonic.js";
import type { Runtime } from "../runtime/runtime.js";
import { maxTimerMs } from "../runtime/runtime.js";
import type { Hint, NewRun, Route, Store } from "../store/contract/store.js";
import { inCleanContext } from "../telemetry/async-context.js";
import { isUnreachable, warnOf } from "../telemetry/warn-of-retry.js";
import { Claiming } from "./claim/claimer.js";
import { Repertoire } from "./claim/registry.js";
import type { StartReceipt } from "./commit/group-committer.js";
import { Lease } from "./session/heartbeat.js";
import { Housekeeping } from "./session/housekeeping.js";
import { Session } from "./session/session.js";
import { SilentCode } from "./session/silent-code.js";
import { SlowSteps } from "./session/slow-steps.js";
import type { Registered, TurnAtHost } from "./turn/host.js";
import { type StoreAddress, type Watch, watchdogFor } from "./watchdog/watchdog.js";

export interface WorkerOptions {
  readonly workflows: readonly AnyWorkflow[];
  /** What the nodes of graphs run here. With any, even none, the worker also takes care of graphs that were built at run time. */
  readonly jobs?: readonly JobDefinition[];
  /** Take only runs that are in one of these queues; default: all queues of its workflows. */
  readonly queues?: readonly string[];
  /** How many runs may be executed at a time; default 100. Runs that wait do not count. */
  readonly concurrency?: number;
  readonly name?: string;
  /** Where its process can be asked how it is (a health check, metrics); others see it in `pawl.workers()`. */
  readonly port?: number;
  /** How long it may be silent before others take its runs; default 10 s. */
  readonly lease?: Duration;
  /** How often it looks for work without being told; default 1 s, `Infinity` never (then wake-ups must do). */
  readonly poll?: Duration;
  /** How long `stop` waits for running steps; default 10 s. */
  readonly grace?: Duration;
  /** How often a run may take its worker down before it is paused; default 5. */
  readonly maxDeliveries?: number;
  /**
   * How long the code of a run may take to come to the steps that its log has, once nothing else moves, before the run is
   * paused because code and log do not fit; default 5 s.
   */
  readonly replayGrace?: Duration;
  /** How often it does its share of the housekeeping (retention, dead workers, stuck runs); default 1 hour, `Infinity` never. */
  readonly housekeeping?: Duration;
}

const knownOptions = new Set<string>([
  "workflows",
  "jobs",
  "queues",
  "concurrency",
  "name",
  "port",
  "lease",
  "poll",
  "grace",
  "maxDeliveries",
  "replayGrace",
  "housekeeping",
] satisfies (keyof WorkerOptions)[]);

export interface WorkerServices {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly log: Logger;
  readonly newId: () => string;
  /** Makes the workflows known, and looks up those that are known by name only. */
  register(definitions: readonly WorkflowDefinition[]): Promise<void>;
  registration(name: string): Promise<Registered | null>;
  readonly onError: ErrorReporter | null;
  /** When a run that a `PauseError` with a signal has paused is looked at again; null: never. */
  readonly recheckPausedMs: number | null;
  /** Where a thread finds the database, to tell it that this process is blocked; null when it cannot. */
  readonly address: StoreAddress | null;
  /** Deletes what is older than the retention, if there is one. */
  readonly prune: ((stop: AbortSignal) => Promise<{ readonly runs: number }>) | null;
}

type Phase = "idle" | "running" | "stopping" | "stopped";

export class Worker {
  readonly id: string;
  readonly name: string;
  readonly #port: number | null;
  readonly #services: WorkerServices;
  readonly #repertoire: Repertoire;
  readonly #claiming: Claiming;
  readonly #housekeeping: Housekeeping;
  readonly #leaseMs: number;
  readonly #graceMs: number;
  readonly #maxDeliveries: number;
  readonly #replayGraceMs: number;
  readonly #slowSteps = new SlowSteps();
  readonly #silentCode: SilentCode;
  #phase: Phase = "idle";
  #session: Session | null = null;
  #lease: Lease | null = null;
  #watch: Watch | null = null;
  #unwatch: (() => void) | null = null;
  #emptied: (() => void) | null = null;
  #stopped: Promise<void> | null = null;
  /** In tests: it takes runs only while it is told to, none begins at its birth, and this is the store's clock. */
  #drivenBy: (() => number) | null = null;
  #drives = 0;
  #oneStep: { readonly runId: string; ended: boolean } | null = null;

  /** @internal */
  constructor(services: WorkerServices, options: WorkerOptions) {
    checkOptions("A worker", options, knownOptions);
    this.#services = services;
    this.id = services.newId();
    this.name = options.name === undefined ? `${hostname()}:${process.pid}` : checkName("worker", options.name);
    this.#port = options.port === undefined ? null : checkPort(options.port);
    this.#repertoire = new Repertoire(options);
    this.#maxDeliveries = checkWholeNumber("A worker's maxDeliveries", options.maxDeliveries ?? 5);
    this.#leaseMs = parseDuration(options.lease ?? "10s", "lease");
    this.#replayGraceMs = parseDuration(options.replayGrace ?? "5s", "replayGrace");
    this.#graceMs = parseDuration(options.grace ?? "10s", "grace");
    const { housekeeping = "1 hour" } = options;
    const never = Number.POSITIVE_INFINITY;
    const everyMs = housekeeping === never ? never : parseDuration(housekeeping, "housekeeping");
    this.#housekeeping = new Housekeeping({ ...services, everyMs });
    this.#silentCode = new SilentCode(services.log, () => this.#session?.turns.values() ?? []);
    const { poll = "1s" } = options;
    this.#claiming = new Claiming({
      ...services,
      workerName: this.name,
      concurrency: checkWholeNumber("A worker's concurrency", options.concurrency ?? 100),
      pollMs: poll === never ? never : parseDuration(poll, "poll"),
      session: () => (this.#takesRuns ? this.#session : null),
      active: () => this.active,
      routes: () => this.#repertoire.nextRoutes(),
      onLost: (session) => this.#lost(session),
    });
  }

  /** How many runs it is executing now. */
  get active(): number {
    return this.#session?.size ?? 0;
  }

  /** Queues that somebody has paused, as far as it has heard: it begins nothing there. */
  get pausedQueues(): readonly string[] {
    return this.#repertoire.paused.names;
  }

  get phase(): Phase {
    return this.#phase;
  }

  start(): Promise<this> {
    return inCleanContext(() => this.#start());
  }

  /** @internal Starts, but executes nothing except during `runUntilIdle` and `runOneStep`. For tests. */
  startDriven(clock: () => number): Promise<this> {
    this.#drivenBy = clock;
    return this.start();
  }

  get #takesRuns(): boolean {
    if (this.#phase !== "running" || (this.#drivenBy !== null && this.#drives === 0)) return false;
    return this.#oneStep?.ended !== true;
  }

  async #start(): Promise<this> {
    if (this.#phase !== "idle")
      throw new InvalidStateError(`Worker "${this.name}" is ${this.#phase}; make a new one to start again.`);
    this.#phase = "running";
    if (this.#repertoire.routes.length === 0)
      this.#services.log.warn(
        `Worker "${this.name}" has neither workflows nor jobs, so it executes nothing: give them to worker({ workflows, jobs }).`,
      );
    try {
      await this.#services.register(this.#repertoire.definitions);
      await this.#repertoire.rememberQueues(this.#services.registration);
      this.#repertoire.paused.learn((await this.#services.store.upkeep.pausedQueues()).map(({ name }) => name));
      await this.#beginSession();
    } catch (error) {
      this.#phase = "idle";
      throw error;
    }
    this.#unwatch = this.#services.store.watch((hint) => inCleanContext(() => this.#onHint(hint)));
    this.#housekeeping.start();
    this.#silentCode.start();
    this.#claiming.start();
    return this;
  }

  /** Takes no new runs; steps that run may finish, then their runs are handed over. After the grace period they are let go of. */
  stop(): Promise<void> {
    this.#stopped ??= inCleanContext(() => this.#stop());
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
    const session = this.#session;
    // Before the claim has ended: it may be waiting for a database that is away.
    session?.stop();
    await within(this.#graceMs, Promise.all([this.#claiming.stop(), this.#housekeeping.stop()]));
    if (session !== null) {
      await this.#untilEmpty(session);
      this.#session = null;
      session.kill();
      await within(signOffMs, this.#retire(session));
    }
    this.#lease?.stop();
    this.#watch?.stop();
    this.#slowSteps.stop();
    this.#silentCode.stop();
  }

  async #untilEmpty(session: Session): Promise<void> {
    if (session.size === 0) return;
    const empty = new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
    await within(this.#graceMs, empty);
    if (session.size > 0)
      this.#services.log.warn(
        `Worker "${this.name}" stops with ${session.size} run(s) whose steps have not ended within ${this.#graceMs} ms; they are tried again elsewhere.`,
      );
    session.abort(new ExecutionAbortedError("The worker stops."));
  }

  async #retire(session: Session): Promise<void> {
    try {
      await this.#services.store.retire(session.committer.fence);
    } catch (error) {
      const what = `Worker "${this.name}" could not sign off; its lease will run out.`;
      this.#services.log.warn(what, ...(isUnreachable(error) ? [] : [error]));
    }
  }

  // ── Sessions ───────────────────────────────────────────────────────────────────────────────────────────────────────

  async #beginSession(): Promise<void> {
    const { store, log, registration } = this.#services;
    const leaseMs = this.#leaseMs;
    const routes = this.#repertoire.routes.map(({ workflow, version }): Route => ({ workflow, version }));
    const enlistedAt = monotonicMs();
    const fence = await store.enlist({
      id: this.id,
      name: this.name,
      host: hostname(),
      pid: process.pid,
      port: this.#port,
      routes,
      leaseMs,
    });
    const { address } = this.#services;
    const watched = { name: this.name, fence, leaseMs, renewedAt: enlistedAt };
    const watch = address === null ? null : watchdogFor(address, log).watch(watched);
    this.#watch?.stop();
    this.#watch = watch;
    const session = new Session({
      runtime: this.#services.runtime,
      store,
      log,
      watch,
      leaseMs,
      registration,
      fence,
      workerName: this.name,
      slowSteps: this.#slowSteps,
      virtualClock: this.#drivenBy,
      maxDeliveries: this.#maxDeliveries,
      replayGraceMs: this.#replayGraceMs,
      graceMs: this.#graceMs,
      onError: this.#services.onError,
      recheckPausedMs: this.#services.recheckPausedMs,
      serves: (route, version) => this.#repertoire.serves(route, version),
      interruptions: () => this.#oneStep === null,
      crowded: () => this.#claiming.crowded,
      stepEnded: this.#drivenBy !== null ? (turn) => this.#stepEnded(turn) : null,
      definition: (workflow, version) => this.#repertoire.definitionOf(workflow, version) as WorkflowDefinition,
      jobInfo: (job) => this.#repertoire.jobInfo(job, store, registration),
      onLost: (lost) => this.#lost(lost),
      onUncertain: () => this.#claiming.doubt(),
      onRoom: (parking) => {
        if (this.active === 0) this.#emptied?.();
        this.#claiming.onRoom(parking);
      },
    });
    this.#session = session;
    this.#lease?.stop();
    this.#lease = new Lease(store, fence, leaseMs, log, {
      onLost: () => this.#lost(session),
      onRenewed: (at) => watch?.renewed(at),
      onMail: (runIds) => this.#mailFor(runIds),
      onPausedQueues: (names) => {
        if (this.#repertoire.paused.learn(names)) this.#claiming.soon();
      },
    });
  }

  /** Nothing of this session counts any more: its runs are somebody else's. Begin anew. */
  #lost(session: Session): void {
    if (session.dead) return;
    const { epoch } = session.committer.fence;
    this.#services.log.warn(
      `Worker "${this.name}" lost its lease (epoch ${epoch}); it drops ${session.size} runs and begins anew.`,
    );
    if (this.#session === session) this.#session = null;
    this.#watch?.stop();
    session.kill();
    this.#emptied?.();
    void this.#revive();
  }

  async #revive(): Promise<void> {
    const backoff = new Backoff();
    while (this.#phase === "running" && this.#session === null) {
      try {
        await this.#beginSession();
        this.#claiming.soon();
      } catch (error) {
        warnOf(this.#services.log, `Worker "${this.name}" cannot register yet.`, error);
        await backoff.wait();
      }
    }
  }

  #onHint(hint: Hint): void {
    if (hint.kind === "mail") this.#mailFor(hint.runIds);
    if (hint.kind === "anything") void this.#lease?.lookNow();
    const concernsMe =
      hint.kind === "ready"
        ? hint.workflows.length === 0 || hint.workflows.some((name) => this.#repertoire.serves(name, null))
        : hint.kind !== "done";
    if (concernsMe) this.#claiming.soon();
  }

  #mailFor(runIds: readonly string[]): void {
    for (const runId of runIds) void this.#session?.turns.get(runId)?.poke();
  }

  // ── Runs that are started in this process ──────────────────────────────────────────────────────────────────────────

  /** @internal Whether a run of this workflow could begin here at once. */
  canAdopt(workflow: string, version: string): boolean {
    return (
      this.#phase === "running" &&
      this.#drivenBy === null &&
      this.#session !== null &&
      this.#claiming.free > 0 &&
      this.#repertoire.definitionOf(workflow, version) !== undefined &&
      this.#repertoire.serves(workflow, version)
    );
  }

  /** @internal Starts a run that is this worker's from birth: no claim, no wake-up. */
  adopt(run: NewRun): Promise<StartReceipt> {
    const session = this.#session as Session;
    return inCleanContext(() => session.adopt(run));
  }

  /** @internal Executes everything that is due, as long as there is anything; returns when the next run becomes due. For tests. */
  async runUntilIdle(): Promise<number | null> {
    this.#oneStep = null;
    return this.#drive();
  }

  /**
   * @internal The same, but goes no further than the next step of this run that ends, and lets nothing interrupt it meanwhile. The
   * worker then takes no more runs until it is asked to. For tests.
   */
  async runOneStep(runId: string): Promise<{ readonly ended: boolean; readonly nextDueAt: number | null }> {
    const oneStep = { runId, ended: false };
    this.#oneStep = oneStep;
    const nextDueAt = await this.#drive();
    return { ended: oneStep.ended, nextDueAt };
  }

  async #drive(): Promise<number | null> {
    this.#drives += 1;
    try {
      return await inCleanContext(() => this.#runUntilIdle());
    } finally {
      this.#drives -= 1;
    }
  }

  /** @internal Tells the runs that wait for a job that no live worker has. For tests, whose time does not pass by itself. */
  lookForVanishedJobs(): Promise<void> {
    return this.#housekeeping.vanished.look(0);
  }

  #stepEnded(turn: TurnAtHost): void {
    if (this.#oneStep?.runId !== turn.runId) return;
    this.#oneStep.ended = true;
    turn.stop();
  }

  async #runUntilIdle(): Promise<number | null> {
    for (;;) {
      await this.#settle();
      const before = this.#claiming.claimed;
      this.#claiming.soon();
      await this.#settle();
      if (this.#claiming.claimed === before) return this.#claiming.nextDueAt;
    }
  }

  async #settle(): Promise<void> {
    while (this.#claiming.underWay !== null || this.active > 0 || this.#claiming.reserved > 0) {
      await this.#claiming.underWay;
      await Promise.all([...(this.#session?.turns.values() ?? [])].map((turn) => turn.poke()));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

const signOffMs = 2_000;

/** Comes back when the work is done, or when it has taken too long: a database that is away must not keep us here. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.min(ms, maxTimerMs));
  });
  await Promise.race([work, patience]);
  clearTimeout(timer);
}

function checkPort(port: number): number {
  if (Number.isInteger(port) && port > 0 && port <= 65_535) return port;
  throw new InvalidInputError(`A worker's port is a whole number from 1 to 65535, not ${String(port)}.`);
}
