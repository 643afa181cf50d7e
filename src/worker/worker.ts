/** A worker: renews its lease, claims due runs, and passes them to its session, which executes each run in a turn. */

import { hostname } from "node:os";
import { Backoff } from "../concurrency/backoff.js";
import { ExecutionAbortedError, InvalidStateError } from "../core/errors/errors.js";
import { checkOptions, checkWholeNumber } from "../core/naming/check-options.js";
import { parseDuration } from "../core/naming/duration.js";
import { checkName } from "../core/naming/names.js";
import type { WorkflowDefinition } from "../define/definition.js";
import { asSchedules } from "../define/schedule/schedule.js";
import { waitAtMost } from "../runtime/wait.js";
import type { Fence, Hint, NewRun, Route } from "../store/contract/store.js";
import { inCleanContext } from "../telemetry/async-context.js";
import { isUnreachable, warnOfRetry } from "../telemetry/warn-of-retry.js";
import { Claimer } from "./claim/claimer.js";
import { WorkflowRegistry } from "./claim/registry.js";
import { RunClaims } from "./claim/run-claims.js";
import type { StartReceipt } from "./commit/receipt.js";
import { freeLanes, WorkerLimits } from "./limits/worker-limits.js";
import type { WorkerOptions } from "./options.js";
import { checkPort, knownOptions } from "./options.js";
import type { WorkerServices } from "./services.js";
import { Heartbeat, type LeaseEvents } from "./session/heartbeat.js";
import { Housekeeping } from "./session/housekeeping.js";
import { Session } from "./session/session.js";
import { SlowSteps } from "./session/slow-steps.js";
import { StalledCodeDetector } from "./session/stalled-code-detector.js";
import { TimedWork, type TimedWorkService } from "./session/timed-work.js";
import { TestDriver } from "./test-driver.js";
import { type WorkerWatchdog, watchdogFor } from "./watchdog/watchdog.js";

/** In their order; a stopped worker cannot be started again. */
type WorkerPhase = "idle" | "running" | "stopping" | "stopped";

/**
 * Executes runs of its workflows. Create one with `pawl.worker()`.
 *
 * @example
 * ```ts
 * const worker = pawl.worker({ workflows: [order] });
 * await worker.start();
 * process.once("SIGTERM", () => void worker.stop());
 * ```
 */
export class Worker {
  /** The unique id of the worker, the same as in `pawl.workers()`. */
  readonly id: string;
  /** The name from the options; default: the host name and process id, `"host:1234"`. */
  readonly name: string;
  readonly #port: number | null;
  readonly #services: WorkerServices;
  readonly #registry: WorkflowRegistry;
  /** null if no workflow has limits. */
  readonly #limits: WorkerLimits | null;
  readonly #claimer: Claimer;
  readonly #schedules: TimedWorkService;
  readonly #timedWork: TimedWork;
  readonly #scheduledWorkflows: readonly WorkflowDefinition[];
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
    this.#limits = this.#registry.hasLimits ? new WorkerLimits(services, this.#registry) : null;
    this.#maxDeliveries = checkWholeNumber("A worker's maxDeliveries", options.maxDeliveries ?? 5);
    this.#leaseMs = parseDuration(options.lease ?? "10s", "lease");
    this.#replayGraceMs = parseDuration(options.replayGrace ?? "5s", "replayGrace");
    this.#graceMs = parseDuration(options.grace ?? "10s", "grace");
    const { housekeeping = "1 hour", poll = "1s" } = options;
    const never = Number.POSITIVE_INFINITY;
    const everyMs = housekeeping === never ? never : parseDuration(housekeeping, "housekeeping");
    this.#housekeeping = new Housekeeping({ ...services, everyMs, registry: this.#registry });
    this.#stalledCodeDetector = new StalledCodeDetector(
      services.log,
      () => this.#session?.turns.values() ?? [],
      services.runtime,
    );
    this.#claimer = new Claimer({
      ...services,
      workerName: this.name,
      concurrency: checkWholeNumber("A worker's concurrency", options.concurrency ?? 100),
      pollMs: poll === never ? never : parseDuration(poll, "poll"),
      lateClaimMs: this.#leaseMs,
      session: () => (this.#takesRuns ? this.#session : null),
      activeCount: () => this.active,
      claims: new RunClaims(services.store, this.#registry, this.#limits?.claims ?? null),
      onLost: (session) => this.#onLeaseLost(session),
    });
    const schedules = options.schedules === undefined ? null : asSchedules(options.schedules);
    this.#scheduledWorkflows = (schedules ?? []).flatMap(({ definition }) => definition ?? []);
    this.#schedules = services.createSchedules(schedules);
    const isDriven = () => this.#driver.clock !== null;
    this.#timedWork = new TimedWork({ ...services, service: this.#schedules, isDriven });
    this.#driver = new TestDriver(this.#claimer, this.#timedWork, services.runtime, () => this.#session);
  }

  /** How many runs the worker is executing now. */
  get active(): number {
    return this.#session?.size ?? 0;
  }

  /** The paused queues as of the last heartbeat. The worker claims no runs from them. */
  get pausedQueues(): readonly string[] {
    return this.#registry.pausedQueues.names;
  }

  /** The phase of the worker: `"idle"` before `start()`, then `"running"`, `"stopping"` and `"stopped"`. */
  get phase(): WorkerPhase {
    return this.#phase;
  }

  /**
   * Registers the worker and its workflows, and starts to execute runs. Resolves to the worker when it is registered; throws
   * `InvalidStateError` if the worker was started before.
   */
  start(): Promise<this> {
    return inCleanContext(() => this.#start());
  }

  /** @internal Starts the worker for a test: it executes runs only during `runUntilIdle` and `runOneStep`. */
  startDriven(clock: () => number): Promise<this> {
    this.#driver.clock = clock;
    return this.start();
  }

  get #takesRuns(): boolean {
    return this.#phase === "running" && this.#driver.takesRuns;
  }

  async #start(): Promise<this> {
    if (this.#phase !== "idle")
      throw new InvalidStateError(`Worker "${this.name}" is ${this.#phase}; create a new one to start again.`);
    this.#phase = "running";
    if (this.#registry.routes.length === 0)
      this.#services.log.warn(
        `Worker "${this.name}" has neither workflows nor jobs, so it executes nothing: give them to worker({ workflows, jobs }).`,
      );
    try {
      await this.#services.register([...this.#registry.definitions, ...this.#scheduledWorkflows]);
      await this.#registry.rememberQueues(this.#services.findRegistration);
      this.#registry.pausedQueues.update(
        (await this.#services.store.maintenance.pausedQueues()).map(({ name }) => name),
      );
      await this.#startSession();
    } catch (error) {
      if (this.#phase === "running") this.#phase = "idle";
      throw error;
    }
    // When it was stopped meanwhile, nothing would end what is started from here on.
    if (this.#session !== null) await this.#timedWork.start();
    if (this.#session === null || this.#stopPromise !== null) return this;
    this.#stopListening = this.#services.store.watch((hint) => inCleanContext(() => this.#onHint(hint)));
    this.#housekeeping.start();
    this.#limits?.start(() => this.#claimer.claimSoon());
    this.#stalledCodeDetector.start();
    this.#claimer.start();
    return this;
  }

  /**
   * Stops the worker: it takes no new runs, lets running steps finish for up to `grace` (default: 10 seconds), and releases
   * its runs to other workers. If a step is still running after `grace`, another worker runs it again.
   */
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
    // Stop the session before waiting for the current claim, which may be waiting for an unreachable database.
    session?.stop();
    await waitAtMost(
      this.#services.runtime,
      this.#graceMs,
      Promise.all([this.#claimer.stop(), this.#housekeeping.stop(), this.#timedWork.stop()]),
    );
    if (session !== null) {
      await this.#waitUntilEmpty(session);
      this.#session = null;
      session.kill();
      await waitAtMost(this.#services.runtime, deregisterTimeoutMs, this.#deregister(session.committer.fence));
    }
    this.#heartbeat?.stop();
    this.#watchdog?.stop();
    await this.#limits?.stop();
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
        `Worker "${this.name}" stops with ${session.size} run(s) whose steps did not end within ${this.#graceMs} ms; another worker runs those steps again.`,
      );
    session.abort(new ExecutionAbortedError("The worker stops."));
  }

  async #deregister(fence: Fence): Promise<void> {
    try {
      await this.#services.store.deregisterWorker(fence);
    } catch (error) {
      const message = `Worker "${this.name}" could not deregister; other workers take its runs when its lease expires.`;
      this.#services.log.warn(message, ...(isUnreachable(error) ? [] : [error]));
    }
  }

  // ── Sessions ───────────────────────────────────────────────────────────────────────────────────────────────────────

  async #startSession(): Promise<void> {
    const { runtime, store, log, findRegistration } = this.#services;
    const leaseMs = this.#leaseMs;
    const routes = this.#registry.routes.map(({ workflow, version }): Route => ({ workflow, version }));
    await this.#limits?.register();
    const registeredAt = runtime.processMonotonic();
    const fence = await store.registerWorker({
      id: this.id,
      name: this.name,
      host: hostname(),
      pid: process.pid,
      port: this.#port,
      routes,
      leaseMs,
      ...(this.#schedules.interest.app === null ? {} : { scheduleSet: this.#schedules.interest.setKey }),
    });
    // Otherwise a worker that is stopped while it registers would stay alive in the database.
    if (this.#phase !== "running") return this.#deregister(fence);
    const { storeAddress } = this.#services;
    const watchedWorker = { name: this.name, fence, leaseMs, renewedAt: registeredAt };
    const watchdog = storeAddress === null ? null : watchdogFor(storeAddress, log, runtime).watch(watchedWorker);
    this.#watchdog?.stop();
    this.#watchdog = watchdog;
    const session: Session = new Session({
      ...{ runtime, store, log, watchdog },
      leaseMs,
      findRegistration,
      fence,
      tally: this.#services.tally,
      workerName: this.name,
      slowSteps: this.#slowSteps,
      virtualClock: this.#driver.clock,
      maxDeliveries: this.#maxDeliveries,
      replayGraceMs: this.#replayGraceMs,
      graceMs: this.#graceMs,
      onError: this.#services.onError,
      recheckPausedMs: this.#services.recheckPausedMs,
      slots: this.#limits?.newSlotKeeper() ?? null,
      onSlotsFreed: freeLanes(this.#limits, this.#services),
      onOfferDue: (inMs) => this.#timedWork.onOfferDue(inMs),
      canExecute: (route, version) => this.#registry.canExecute(route, version),
      allowsInterruptions: () => this.#driver.allowsInterruptions,
      hasWaitingRuns: () => this.#claimer.hasWaitingRuns,
      onStepEnded: this.#driver.clock !== null ? (turn) => this.#driver.onStepEnded(turn) : null,
      definition: (workflow, version) => this.#registry.definitionOf(workflow, version) as WorkflowDefinition,
      jobInfo: (job) => this.#registry.jobInfo(job, store, findRegistration, runtime),
      onLost: () => this.#onLeaseLost(session),
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
      onResult: (result) => this.#timedWork.onHeartbeat(result),
      onPausedQueues: (names) => void (this.#registry.pausedQueues.update(names) && this.#claimer.claimSoon()),
    };
    const countExecuting = () => session.countExecuting();
    const schedules = this.#schedules.interest;
    this.#heartbeat = new Heartbeat({ store, fence, leaseMs, log, runtime, countExecuting, schedules }, events);
  }

  /** Drops the session, because other workers may own its runs now, and registers again under a new epoch. */
  #onLeaseLost(session: Session): void {
    if (session.isDead) return;
    const { epoch } = session.committer.fence;
    this.#services.log.warn(
      `Worker "${this.name}" lost its lease (epoch ${epoch}); it drops ${session.size} run(s) and registers again.`,
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
        warnOfRetry(this.#services.log, `Worker "${this.name}" could not register; it tries again.`, error);
        await backoff.wait();
      }
    }
  }

  #onHint(hint: Hint): void {
    this.#timedWork.onHint(hint);
    if (hint.kind === "slots" || hint.kind === "anything") this.#session?.stepSlots?.onHint();
    if (hint.kind === "messages") this.#checkInboxes(hint.runIds);
    if (hint.kind === "anything") void this.#heartbeat?.pollNow();
    const concernsThisWorker =
      hint.kind === "ready"
        ? hint.workflows.length === 0 || hint.workflows.some((name) => this.#registry.canExecute(name, null))
        : hint.kind === "messages" || hint.kind === "anything";
    if (concernsThisWorker) this.#claimer.claimSoon();
  }

  #checkInboxes(runIds: readonly string[]): void {
    for (const runId of runIds) void this.#session?.turns.get(runId)?.checkInbox();
  }

  // ── Runs that are started in this process ──────────────────────────────────────────────────────────────────────────

  /** @internal Whether this worker could start a run of this workflow at once. */
  canAdopt(workflow: string, version: string): boolean {
    return (
      this.#phase === "running" &&
      this.#driver.clock === null &&
      this.#session !== null &&
      this.#claimer.freeSlots > 0 &&
      this.#registry.canAdopt(workflow, version)
    );
  }

  /** @internal Creates a run that this worker owns from the start, without a claim. */
  adopt(run: NewRun): Promise<StartReceipt> {
    const session = this.#session as Session;
    return inCleanContext(() => session.adopt(run));
  }

  /** @internal For tests: executes due runs until none is left; resolves to the due time of the next run, or null. */
  runUntilIdle(): Promise<number | null> {
    return this.#driver.runUntilIdle();
  }

  /** @internal For tests: when this worker must look at schedules or start deadlines next; null: no instant is known. */
  nextScheduleAt(): Promise<number | null> {
    return this.#timedWork.nextAt();
  }

  /** @internal Like `runUntilIdle`, but stops when the next step of this run has ended, and does not interrupt that step. */
  runOneStep(runId: string): Promise<{ readonly ended: boolean; readonly nextDueAt: number | null }> {
    return this.#driver.runOneStep(runId);
  }

  /** @internal For tests, whose clock does not advance by itself: notifies the runs that wait for a job without a live worker. */
  checkVanishedJobs(): Promise<void> {
    return this.#housekeeping.vanishedJobs.check(0);
  }

  /** @internal When this worker deletes old data next; null if that is not planned. */
  get nextHousekeepingAt(): number | null {
    return this.#housekeeping.nextCleaningAt;
  }
}

/** An unreachable database must not delay the stop for ever. */
const deregisterTimeoutMs = 2_000;
