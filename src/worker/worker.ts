/** A worker: keeps its lease, takes runs that are due, and gives each to its session, which takes it through its turn. */

import { hostname } from "node:os";
import { Backoff } from "../concurrency/backoff.js";
import { ExecutionAbortedError, InvalidStateError } from "../core/errors/errors.js";
import { checkOptions, checkWholeNumber } from "../core/naming/check-options.js";
import { parseDuration } from "../core/naming/duration.js";
import { checkName } from "../core/naming/names.js";
import type { Logger } from "../define/context.js";
import type { ErrorReporter, WorkflowDefinition } from "../define/definition.js";
import type { Runtime, Timer } from "../runtime/runtime.js";
import type { Hint, NewRun, Route, Store } from "../store/contract/store.js";
import { inCleanContext } from "../telemetry/async-context.js";
import { isUnreachable, warnOfRetry } from "../telemetry/warn-of-retry.js";
import { Claimer } from "./claim/claimer.js";
import { WorkflowRegistry } from "./claim/registry.js";
import type { StartReceipt } from "./commit/group-committer.js";
import type { WorkerOptions } from "./options.js";
import { checkPort, knownOptions } from "./options.js";
import { Heartbeat, type LeaseEvents } from "./session/heartbeat.js";
import { Housekeeping } from "./session/housekeeping.js";
import { Session } from "./session/session.js";
import { SlowSteps } from "./session/slow-steps.js";
import { StalledCodeDetector } from "./session/stalled-code-detector.js";
import { TestDriver } from "./test-driver.js";
import type { WorkflowSummary } from "./turn/turn-host.js";
import { type StoreAddress, type WorkerWatchdog, watchdogFor } from "./watchdog/watchdog.js";

export interface WorkerServices {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly log: Logger;
  readonly newId: () => string;
  /** Makes the workflows known, and looks up those that are known by name only. */
  register(definitions: readonly WorkflowDefinition[]): Promise<void>;
  findRegistration(name: string): Promise<WorkflowSummary | null>;
  readonly onError: ErrorReporter | null;
  /** When a run that a `PauseError` with a signal has paused is looked at again; null: never. */
  readonly recheckPausedMs: number | null;
  /** Where a thread finds the database, to tell it that this process is blocked; null when it cannot. */
  readonly storeAddress: StoreAddress | null;
  /** Deletes what is older than the retention, if there is one. */
  readonly prune: ((stop: AbortSignal) => Promise<{ readonly runs: number }>) | null;
}

type WorkerPhase = "idle" | "running" | "stopping" | "stopped";

export class Worker {
  readonly id: string;
  readonly name: string;
  readonly #port: number | null;
  readonly #services: WorkerServices;
  readonly #registry: WorkflowRegistry;
  readonly #claimer: Claimer;
  readonly #housekeeping: Housekeeping;
  readonly #leaseMs: number;
  readonly #graceMs: number;
  readonly #maxDeliveries: number;
  readonly #replayGraceMs: number;
  readonly #slowSteps: SlowSteps;
  readonly #stalledCodeDetector: StalledCodeDetector;
  #phase: WorkerPhase = "idle";
  #session: Session | null = null;
  #heartbeat: Heartbeat | null = null;
  #watchdog: WorkerWatchdog | null = null;
  #stopListening: (() => void) | null = null;
  #onEmpty: (() => void) | null = null;
  #stopPromise: Promise<void> | null = null;
  readonly #driver: TestDriver;

  /** @internal */
  constructor(services: WorkerServices, options: WorkerOptions) {
    checkOptions("A worker", options, knownOptions);
    this.#services = services;
    this.id = services.newId();
    this.#slowSteps = new SlowSteps(services.runtime);
    this.name = options.name === undefined ? `${hostname()}:${process.pid}` : checkName("worker", options.name);
    this.#port = options.port === undefined ? null : checkPort(options.port);
    this.#registry = new WorkflowRegistry(options);
    this.#maxDeliveries = checkWholeNumber("A worker's maxDeliveries", options.maxDeliveries ?? 5);
    this.#leaseMs = parseDuration(options.lease ?? "10s", "lease");
    this.#replayGraceMs = parseDuration(options.replayGrace ?? "5s", "replayGrace");
    this.#graceMs = parseDuration(options.grace ?? "10s", "grace");
    const { housekeeping = "1 hour" } = options;
    const never = Number.POSITIVE_INFINITY;
    const everyMs = housekeeping === never ? never : parseDuration(housekeeping, "housekeeping");
    this.#housekeeping = new Housekeeping({ ...services, everyMs });
    this.#stalledCodeDetector = new StalledCodeDetector(
      services.log,
      () => this.#session?.turns.values() ?? [],
      services.runtime,
    );
    const { poll = "1s" } = options;
    this.#claimer = new Claimer({
      ...services,
      workerName: this.name,
      concurrency: checkWholeNumber("A worker's concurrency", options.concurrency ?? 100),
      pollMs: poll === never ? never : parseDuration(poll, "poll"),
      session: () => (this.#takesRuns ? this.#session : null),
      activeCount: () => this.active,
      routes: () => this.#registry.nextRoutes(),
      onLost: (session) => this.#onLeaseLost(session),
    });
    this.#driver = new TestDriver(this.#claimer, services.runtime, () => this.#session);
  }

  /** How many runs it is executing now. */
  get active(): number {
    return this.#session?.size ?? 0;
  }

  /** Queues that are paused, as far as it has heard: it begins nothing there. */
  get pausedQueues(): readonly string[] {
    return this.#registry.pausedQueues.names;
  }

  get phase(): WorkerPhase {
    return this.#phase;
  }

  start(): Promise<this> {
    return inCleanContext(() => this.#start());
  }

  /** @internal Starts, but executes nothing except during `runUntilIdle` and `runOneStep`. For tests. */
  startDriven(clock: () => number): Promise<this> {
    this.#driver.clock = clock;
    return this.start();
  }

  get #takesRuns(): boolean {
    return this.#phase === "running" && this.#driver.takesRuns;
  }

  async #start(): Promise<this> {
    if (this.#phase !== "idle")
      throw new InvalidStateError(`Worker "${this.name}" is ${this.#phase}; make a new one to start again.`);
    this.#phase = "running";
    if (this.#registry.routes.length === 0)
      this.#services.log.warn(
        `Worker "${this.name}" has neither workflows nor jobs, so it executes nothing: give them to worker({ workflows, jobs }).`,
      );
    try {
      await this.#services.register(this.#registry.definitions);
      await this.#registry.rememberQueues(this.#services.findRegistration);
      this.#registry.pausedQueues.update(
        (await this.#services.store.maintenance.pausedQueues()).map(({ name }) => name),
      );
      await this.#startSession();
    } catch (error) {
      this.#phase = "idle";
      throw error;
    }
    this.#stopListening = this.#services.store.watch((hint) => inCleanContext(() => this.#onHint(hint)));
    this.#housekeeping.start();
    this.#stalledCodeDetector.start();
    this.#claimer.start();
    return this;
  }

  /** Takes no new runs; steps that run may finish, then their runs are handed over. After the grace period they are let go of. */
  stop(): Promise<void> {
    this.#stopPromise ??= inCleanContext(() => this.#stop());
    return this.#stopPromise;
  }

  async #stop(): Promise<void> {
    const wasRunning = this.#phase === "running";
    this.#phase = "stopping";
    if (wasRunning) await this.#shutDown();
    this.#phase = "stopped";
  }

  async #shutDown(): Promise<void> {
    this.#stopListening?.();
    const session = this.#session;
    // Before the claim has ended: it may be waiting for a database that is away.
    session?.stop();
    await waitAtMost(
      this.#services.runtime,
      this.#graceMs,
      Promise.all([this.#claimer.stop(), this.#housekeeping.stop()]),
    );
    if (session !== null) {
      await this.#waitUntilEmpty(session);
      this.#session = null;
      session.kill();
      await waitAtMost(this.#services.runtime, deregisterTimeoutMs, this.#deregister(session));
    }
    this.#heartbeat?.stop();
    this.#watchdog?.stop();
    this.#slowSteps.stop();
    this.#stalledCodeDetector.stop();
  }

  async #waitUntilEmpty(session: Session): Promise<void> {
    if (session.size === 0) return;
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    await waitAtMost(this.#services.runtime, this.#graceMs, empty);
    if (session.size > 0)
      this.#services.log.warn(
        `Worker "${this.name}" stops with ${session.size} run(s) whose steps have not ended within ${this.#graceMs} ms; they are tried again elsewhere.`,
      );
    session.abort(new ExecutionAbortedError("The worker stops."));
  }

  async #deregister(session: Session): Promise<void> {
    try {
      await this.#services.store.deregisterWorker(session.committer.fence);
    } catch (error) {
      const message = `Worker "${this.name}" could not sign off; its lease will run out.`;
      this.#services.log.warn(message, ...(isUnreachable(error) ? [] : [error]));
    }
  }

  // ── Sessions ───────────────────────────────────────────────────────────────────────────────────────────────────────

  async #startSession(): Promise<void> {
    const { runtime, store, log, findRegistration } = this.#services;
    const leaseMs = this.#leaseMs;
    const routes = this.#registry.routes.map(({ workflow, version }): Route => ({ workflow, version }));
    const registeredAt = runtime.processMonotonic();
    const fence = await store.registerWorker({
      id: this.id,
      name: this.name,
      host: hostname(),
      pid: process.pid,
      port: this.#port,
      routes,
      leaseMs,
    });
    const { storeAddress } = this.#services;
    const watchedWorker = { name: this.name, fence, leaseMs, renewedAt: registeredAt };
    const watchdog = storeAddress === null ? null : watchdogFor(storeAddress, log, runtime).watch(watchedWorker);
    this.#watchdog?.stop();
    this.#watchdog = watchdog;
    const session = new Session({
      runtime,
      store,
      log,
      watchdog,
      leaseMs,
      findRegistration,
      fence,
      workerName: this.name,
      slowSteps: this.#slowSteps,
      virtualClock: this.#driver.clock,
      maxDeliveries: this.#maxDeliveries,
      replayGraceMs: this.#replayGraceMs,
      graceMs: this.#graceMs,
      onError: this.#services.onError,
      recheckPausedMs: this.#services.recheckPausedMs,
      canExecute: (route, version) => this.#registry.canExecute(route, version),
      allowsInterruptions: () => this.#driver.allowsInterruptions,
      hasWaitingRuns: () => this.#claimer.hasWaitingRuns,
      onStepEnded: this.#driver.clock !== null ? (turn) => this.#driver.onStepEnded(turn) : null,
      definition: (workflow, version) => this.#registry.definitionOf(workflow, version) as WorkflowDefinition,
      jobInfo: (job) => this.#registry.jobInfo(job, store, findRegistration, runtime),
      onLost: (lost) => this.#onLeaseLost(lost),
      onUncertain: () => this.#claimer.reconcileSoon(),
      onRunReleased: (parking) => {
        if (this.active === 0) this.#onEmpty?.();
        this.#claimer.onRunReleased(parking);
      },
    });
    this.#session = session;
    this.#heartbeat?.stop();
    const events: LeaseEvents = {
      onLost: () => this.#onLeaseLost(session),
      onRenewed: (at) => watchdog?.noteLeaseRenewed(at),
      onMessages: (runIds) => this.#checkInboxes(runIds),
      onPausedQueues: (names) => {
        if (this.#registry.pausedQueues.update(names)) this.#claimer.claimSoon();
      },
    };
    this.#heartbeat = new Heartbeat(store, fence, leaseMs, log, events, runtime);
  }

  /** Nothing of this session counts any more: other workers have its runs. Begin anew. */
  #onLeaseLost(session: Session): void {
    if (session.isDead) return;
    const { epoch } = session.committer.fence;
    this.#services.log.warn(
      `Worker "${this.name}" lost its lease (epoch ${epoch}); it drops ${session.size} runs and begins anew.`,
    );
    if (this.#session === session) this.#session = null;
    this.#watchdog?.stop();
    session.kill();
    this.#onEmpty?.();
    void this.#restartSession();
  }

  async #restartSession(): Promise<void> {
    const backoff = new Backoff(this.#services.runtime);
    while (this.#phase === "running" && this.#session === null) {
      try {
        await this.#startSession();
        this.#claimer.claimSoon();
      } catch (error) {
        warnOfRetry(this.#services.log, `Worker "${this.name}" cannot register yet.`, error);
        await backoff.wait();
      }
    }
  }

  #onHint(hint: Hint): void {
    if (hint.kind === "messages") this.#checkInboxes(hint.runIds);
    if (hint.kind === "anything") void this.#heartbeat?.pollNow();
    const concernsThisWorker =
      hint.kind === "ready"
        ? hint.workflows.length === 0 || hint.workflows.some((name) => this.#registry.canExecute(name, null))
        : hint.kind !== "done";
    if (concernsThisWorker) this.#claimer.claimSoon();
  }

  #checkInboxes(runIds: readonly string[]): void {
    for (const runId of runIds) void this.#session?.turns.get(runId)?.checkInbox();
  }

  // ── Runs that are started in this process ──────────────────────────────────────────────────────────────────────────

  /** @internal Whether a run of this workflow could begin here at once. */
  canAdopt(workflow: string, version: string): boolean {
    return (
      this.#phase === "running" &&
      this.#driver.clock === null &&
      this.#session !== null &&
      this.#claimer.freeSlots > 0 &&
      this.#registry.definitionOf(workflow, version) !== undefined &&
      this.#registry.canExecute(workflow, version)
    );
  }

  /** @internal Starts a run that is this worker's from birth: no claim, no wake-up. */
  adopt(run: NewRun): Promise<StartReceipt> {
    const session = this.#session as Session;
    return inCleanContext(() => session.adopt(run));
  }

  /** @internal Executes everything that is due, as long as there is anything; returns when the next run becomes due. For tests. */
  runUntilIdle(): Promise<number | null> {
    return this.#driver.runUntilIdle();
  }

  /**
   * @internal The same, but goes no further than the next step of this run that ends, and lets nothing interrupt it
   * meanwhile. The worker then takes no more runs until it is asked to. For tests.
   */
  runOneStep(runId: string): Promise<{ readonly ended: boolean; readonly nextDueAt: number | null }> {
    return this.#driver.runOneStep(runId);
  }

  /** @internal Tells the runs that wait for a job that no live worker has. For tests, whose time does not pass by itself. */
  checkVanishedJobs(): Promise<void> {
    return this.#housekeeping.vanishedJobs.check(0);
  }
}

const deregisterTimeoutMs = 2_000;

/** Comes back when the work is done, or when it has taken too long: a database that is away must not keep us here. */
async function waitAtMost(runtime: Runtime, ms: number, work: Promise<unknown>): Promise<void> {
  let timer: Timer | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = runtime.setTimeout(resolve, ms);
  });
  await Promise.race([work, timeout]);
  runtime.clearTimeout(timer);
}
