/**
 * A worker: claims runs that are due, takes each through its turn, and keeps its lease.
 *
 * A session is one epoch of the worker. When the store says that its fence is gone (it was silent for too long, and
 * somebody else has its runs), everything of that session is dropped and a new one begins under a higher epoch.
 */
import { hostname } from "node:os";
import { type Duration, parseDuration } from "../core/duration.js";
import { InvalidInputError, InvalidStateError, WorkflowNotFoundError } from "../core/errors.js";
import { event } from "../core/event.js";
import { toFailure } from "../core/failure.js";
import { checkName } from "../core/names.js";
import type { Logger } from "../define/context.js";
import { isDefinition, type WorkflowDefinition } from "../define/definition.js";
import type { Claimed, Hint, InboxRow, NewRun, Route, RunRecord, Store, StoredEvent } from "../store/store.js";
import { Backoff } from "./backoff.js";
import { Committer, type StartReceipt } from "./committer.js";
import { maxTimerMs } from "./execution.js";
import { insist } from "./insist.js";
import type { Parting } from "./journal.js";
import { Lease } from "./lease.js";
import { SlowSteps } from "./slow-steps.js";
import { Turn, type TurnHost } from "./turn.js";

export interface WorkerOptions {
  readonly workflows: readonly WorkflowDefinition[];
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
}

export interface WorkerServices {
  readonly store: Store;
  readonly log: Logger;
  readonly newId: () => string;
  /** Makes the workflows known, and looks up those that are known by name only. */
  register(definitions: readonly WorkflowDefinition[]): Promise<void>;
  registration(name: string): Promise<{ readonly queue: string; readonly version: string } | null>;
}

type Phase = "idle" | "running" | "stopping" | "stopped";

interface Session {
  readonly committer: Committer;
  readonly turns: Map<string, Turn>;
  readonly host: TurnHost;
  dead: boolean;
}

export class Worker {
  readonly id: string;
  readonly name: string;
  readonly #services: WorkerServices;
  readonly #definitions = new Map<string, WorkflowDefinition>();
  readonly #routes: Route[];
  readonly #concurrency: number;
  readonly #leaseMs: number;
  readonly #pollMs: number;
  readonly #graceMs: number;
  readonly #maxDeliveries: number;
  readonly #slowSteps = new SlowSteps();
  #phase: Phase = "idle";
  #session: Session | null = null;
  #lease: Lease | null = null;
  #unwatch: (() => void) | null = null;
  #pollTimer: NodeJS.Timeout | null = null;
  #dueTimer: NodeJS.Timeout | null = null;
  /** When the earliest parked run that we know of becomes due. */
  #nextDueAt: number | null = null;
  #claiming: Promise<void> | null = null;
  #claimAgain = false;
  #claimed = 0;
  /** The last claim came back full: there is probably more. */
  #backlog = false;
  /** Slots of runs that are on their way in. */
  #reserved = 0;
  #emptied: (() => void) | null = null;

  constructor(services: WorkerServices, options: WorkerOptions) {
    this.#services = services;
    this.id = services.newId();
    this.name = options.name === undefined ? `${hostname()}:${process.pid}` : checkName("worker", options.name);
    for (const definition of options.workflows) this.#define(definition);
    this.#routes = [...this.#definitions.values()].map(({ name, version }) => ({ workflow: name, version }));
    this.#concurrency = checkWhole("concurrency", options.concurrency ?? 100);
    this.#maxDeliveries = checkWhole("maxDeliveries", options.maxDeliveries ?? 5);
    this.#leaseMs = parseDuration(options.lease ?? "10s", "lease");
    this.#pollMs =
      options.poll === Number.POSITIVE_INFINITY
        ? Number.POSITIVE_INFINITY
        : parseDuration(options.poll ?? "1s", "poll");
    this.#graceMs = parseDuration(options.grace ?? "10s", "grace");
  }

  #define(definition: WorkflowDefinition): void {
    if (!isDefinition(definition))
      throw new InvalidInputError("A worker's `workflows` are definitions made by workflow(…).");
    const key = routeKey(definition.name, definition.version);
    const other = this.#definitions.get(key);
    if (other !== undefined && other !== definition) {
      throw new InvalidInputError(
        `Two different workflows are called "${definition.name}"; give one another name, or both a version.`,
      );
    }
    this.#definitions.set(key, definition);
  }

  /** How many runs it is executing now. */
  get active(): number {
    return this.#session?.turns.size ?? 0;
  }

  get phase(): Phase {
    return this.#phase;
  }

  async start(): Promise<this> {
    if (this.#phase !== "idle")
      throw new InvalidStateError(`Worker "${this.name}" is ${this.#phase}; make a new one to start again.`);
    this.#phase = "running";
    await this.#services.register([...this.#definitions.values()]);
    await this.#beginSession();
    this.#unwatch = this.#services.store.watch((hint) => this.#onHint(hint));
    this.#schedulePoll();
    this.#claimSoon();
    return this;
  }

  /** Takes no new runs; steps that run may finish, then their runs are handed over. After the grace period they are let go of. */
  async stop(): Promise<void> {
    if (this.#phase === "idle") this.#phase = "stopped";
    if (this.#phase !== "running") return;
    this.#phase = "stopping";
    this.#unwatch?.();
    if (this.#pollTimer !== null) clearTimeout(this.#pollTimer);
    if (this.#dueTimer !== null) clearTimeout(this.#dueTimer);
    await this.#claiming;
    const session = this.#session;
    if (session !== null) {
      for (const turn of session.turns.values()) turn.stop();
      await this.#untilEmpty(session);
      this.#session = null;
      session.dead = true;
      await this.#retire(session);
    }
    this.#lease?.stop();
    this.#slowSteps.stop();
    this.#phase = "stopped";
  }

  async #untilEmpty(session: Session): Promise<void> {
    if (session.turns.size === 0 && this.#reserved === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const empty = new Promise<void>((resolve) => {
      this.#emptied = resolve;
    });
    const expired = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.min(this.#graceMs, maxTimerMs));
    });
    await Promise.race([empty, expired]);
    clearTimeout(timer);
    for (const turn of session.turns.values()) turn.abort(new Error("The worker stops."));
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
    const { store, log } = this.#services;
    const info = {
      id: this.id,
      name: this.name,
      host: hostname(),
      pid: process.pid,
      routes: this.#routes,
      leaseMs: this.#leaseMs,
    };
    const fence = await store.enlist(info);
    const turns = new Map<string, Turn>();
    const committer: Committer = new Committer({
      store,
      fence,
      onFenced: () => this.#lost(session),
      onTrouble: (what, error) => log.warn(`Worker "${this.name}": ${what} failed, trying again.`, error),
    });
    const session: Session = { committer, turns, host: this.#hostFor(() => session, committer), dead: false };
    this.#session = session;
    this.#lease?.stop();
    this.#lease = new Lease(store, fence, this.#leaseMs, log, {
      onLost: () => this.#lost(session),
      onMail: (runIds) => this.#mailFor(runIds),
    });
  }

  /** Nothing of this session counts any more: its runs are somebody else's. Begin anew. */
  #lost(session: Session): void {
    if (session.dead) return;
    session.dead = true;
    if (this.#session === session) this.#session = null;
    this.#services.log.warn(
      `Worker "${this.name}" lost its lease (epoch ${session.committer.fence.epoch}); it drops ${session.turns.size} runs and begins anew.`,
    );
    for (const turn of session.turns.values()) turn.abandon();
    session.turns.clear();
    this.#notifyIfEmpty();
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

  #hostFor(session: () => Session, committer: Committer): TurnHost {
    const { store, log } = this.#services;
    return {
      store,
      committer,
      log,
      executing: this.#slowSteps.executing,
      maxDeliveries: this.#maxDeliveries,
      cancelGraceMs: this.#graceMs,
      registration: async (name) => {
        const known = await this.#services.registration(name);
        if (known === null) throw new WorkflowNotFoundError(name);
        return known;
      },
      readInbox: async (runId) => (await store.inbox([runId])).get(runId) ?? [],
      parted: (turn, parting) => this.#parted(session(), turn, parting),
    };
  }

  #parted(session: Session, turn: Turn, parting: Parting): void {
    if (parting.how === "again") return void this.#reopen(session, turn);
    if (parting.how === "evicted") return void this.#evict(session, turn, parting.error);
    this.#release(session, turn);
    if (parting.how !== "parked" || parting.dueAt === null) return;
    if (this.#nextDueAt === null || parting.dueAt < this.#nextDueAt) this.#wakeAt(parting.dueAt, parting.at);
  }

  #release(session: Session, turn: Turn): void {
    session.turns.delete(turn.runId);
    this.#notifyIfEmpty();
    if (this.#backlog && this.#free() >= Math.max(1, this.#concurrency >> 2)) this.#claimSoon();
  }

  #notifyIfEmpty(): void {
    if (this.#emptied !== null && this.active === 0 && this.#reserved === 0) this.#emptied();
  }

  // ── Taking runs ────────────────────────────────────────────────────────────────────────────────────────────────────

  #free(): number {
    return this.#concurrency - this.active - this.#reserved;
  }

  #onHint(hint: Hint): void {
    if (hint.kind === "mail") this.#mailFor(hint.runIds);
    if (hint.kind === "anything") void this.#lease?.beatNow();
    const concernsMe =
      hint.kind === "ready"
        ? hint.workflows.length === 0 || hint.workflows.some((name) => this.#serves(name))
        : hint.kind !== "done";
    if (concernsMe) this.#claimSoon();
  }

  #serves(workflow: string): boolean {
    return this.#routes.some((route) => route.workflow === workflow);
  }

  #mailFor(runIds: readonly string[]): void {
    for (const runId of runIds)
      void this.#session?.turns
        .get(runId)
        ?.poke()
        .catch((error) => this.#services.log.warn(`Run ${runId}: its mail could not be read yet.`, error));
  }

  #schedulePoll(): void {
    if (this.#pollMs > maxTimerMs) return;
    this.#pollTimer = setTimeout(() => {
      this.#claimSoon();
      this.#schedulePoll();
    }, this.#pollMs);
  }

  #claimSoon(): void {
    if (this.#phase !== "running" || this.#session === null) return;
    if (this.#free() <= 0) {
      // Whatever we were told of is still there when there is room.
      this.#backlog = true;
      return;
    }
    if (this.#claiming !== null) {
      this.#claimAgain = true;
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
    try {
      const limitPerRoute = Math.max(1, Math.ceil(limit / Math.max(1, this.#routes.length)), Math.min(limit, 20));
      const claim = await this.#services.store.claim({
        fence: session.committer.fence,
        routes: this.#rotatedRoutes(),
        limit,
        limitPerRoute,
      });
      if (claim.kind === "fenced") return this.#lost(session);
      this.#backlog = claim.tasks.length >= Math.min(limit, limitPerRoute);
      if (this.#backlog) this.#claimAgain = true;
      this.#wakeAt(this.#backlog ? this.#nextDueAt : claim.nextDueAt, claim.at);
      this.#claimed += claim.tasks.length;
      await this.#open(session, claim.tasks, claim.at);
    } catch (error) {
      this.#services.log.warn(`Worker "${this.name}" could not claim runs.`, error);
      if (this.#pollMs > maxTimerMs) setTimeout(() => this.#claimSoon(), 1_000).unref();
    } finally {
      this.#reserved -= limit;
      this.#notifyIfEmpty();
    }
  }

  /** No workflow is always the first to be asked for. */
  #rotatedRoutes(): readonly Route[] {
    const first = this.#routes.shift();
    if (first !== undefined) this.#routes.push(first);
    return this.#routes;
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

  /** Reads what is needed to go on with these runs, for all of them at once; fresh ones need nothing. */
  async #open(session: Session, tasks: readonly Claimed[], at: number): Promise<void> {
    const { store } = this.#services;
    const old = tasks.filter((task) => !task.fresh).map((task) => task.run.id);
    const mailed = tasks.filter((task) => task.mail > 0).map((task) => task.run.id);
    for (const task of tasks)
      if (task.fresh && task.mail === 0) this.#begin(session, task.run, task.deliveries, [], [], at);
    if (old.length + mailed.length === 0) return;
    const [logs, inboxes] = await this.#insist(session, () =>
      Promise.all([old.length > 0 ? store.logs(old) : noLogs, mailed.length > 0 ? store.inbox(mailed) : noInboxes]),
    );
    for (const { run, deliveries, fresh, mail } of tasks) {
      if (fresh && mail === 0) continue;
      this.#begin(session, run, deliveries, logs.get(run.id) ?? [], inboxes.get(run.id) ?? [], at);
    }
  }

  /** Runs that were claimed must be begun: reading for them is tried until it works or they are not ours any more. */
  #insist<T>(session: Session, read: () => Promise<T>): Promise<T> {
    return insist(read, () => session.dead);
  }

  #begin(
    session: Session,
    run: RunRecord,
    deliveries: number,
    log: readonly StoredEvent[],
    inbox: readonly InboxRow[],
    at: number,
  ): void {
    if (session.dead) return;
    const definition = this.#definitions.get(routeKey(run.workflow, run.version)) as WorkflowDefinition;
    let turn: Turn;
    try {
      turn = new Turn(session.host, definition, { run, deliveries, log, inbox, at });
    } catch (error) {
      // Its log cannot be folded: that is for a person to look at, and must not take the worker down.
      void this.#hold(session, run, log.at(-1)?.seq ?? 0, error);
      return;
    }
    session.turns.set(run.id, turn);
    turn.begin();
  }

  async #reopen(session: Session, turn: Turn): Promise<void> {
    const { store } = this.#services;
    this.#reserved += 1;
    session.turns.delete(turn.runId);
    try {
      const [run, logs, inboxes, at] = await this.#insist(session, () =>
        Promise.all([store.run(turn.runId), store.logs([turn.runId]), store.inbox([turn.runId]), store.now()]),
      );
      if (run !== null) this.#begin(session, run, 1, logs.get(run.id) ?? [], inboxes.get(run.id) ?? [], at);
    } catch (error) {
      this.#services.log.error(`Run ${turn.runId} could not be taken up again.`, error);
    } finally {
      this.#reserved -= 1;
      this.#notifyIfEmpty();
    }
  }

  /** What the run wanted to write cannot be written. It is still ours: pause it with the reason, so that somebody sees it. */
  async #evict(session: Session, turn: Turn, error: unknown): Promise<void> {
    this.#services.log.error(`Run ${turn.runId} could not be written and is paused.`, error);
    try {
      const log = await this.#insist(session, () => this.#services.store.logs([turn.runId]));
      await this.#hold(session, turn.run, log.get(turn.runId)?.at(-1)?.seq ?? 0, error);
    } catch (second) {
      this.#services.log.error(`Run ${turn.runId} could not be paused either.`, second);
    } finally {
      this.#release(session, turn);
    }
  }

  async #hold(session: Session, run: RunRecord, after: number, error: unknown): Promise<void> {
    const failure = toFailure(error);
    const paused = event("run.paused", {}, { reason: failure.message, error: failure });
    const none: readonly never[] = [];
    const next = {
      kind: "park",
      status: "paused",
      waiting: null,
      startedAt: null,
      wakeAt: null,
      wakeIn: null,
    } as const;
    await session.committer.submit({
      runId: run.id,
      after,
      events: [paused],
      next,
      drained: none,
      starts: none,
      mail: none,
      release: none,
      cursors: none,
    });
  }

  // ── Runs that are started in this process ──────────────────────────────────────────────────────────────────────────

  /** Whether a run of this workflow could begin here at once. */
  canAdopt(workflow: string, version: string): boolean {
    return (
      this.#phase === "running" &&
      this.#session !== null &&
      this.#free() > 0 &&
      this.#definitions.has(routeKey(workflow, version))
    );
  }

  /** Starts a run that is this worker's from birth: no claim, no wake-up. */
  async adopt(run: NewRun): Promise<StartReceipt> {
    const session = this.#session as Session;
    this.#reserved += 1;
    try {
      const receipt = await session.committer.start({ ...run, due: { kind: "owned" } });
      if (receipt.refusal === null) this.#begin(session, newborn(run, receipt.at), 1, [], [], receipt.at);
      return receipt;
    } finally {
      this.#reserved -= 1;
      this.#notifyIfEmpty();
    }
  }

  /** Executes everything that is due, as long as there is anything; returns when the next run becomes due. For tests. */
  async runUntilIdle(): Promise<number | null> {
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
const noLogs: ReadonlyMap<string, readonly StoredEvent[]> = new Map();
const noInboxes: ReadonlyMap<string, readonly InboxRow[]> = new Map();
const routeKey = (workflow: string, version: string) => `${workflow}\u0000${version}`;

function newborn(run: NewRun, at: number): RunRecord {
  const { due: _due, heroKey: _heroKey, ...birth } = run;
  return {
    ...birth,
    status: "running",
    output: null,
    error: null,
    waiting: null,
    createdAt: at,
    startedAt: null,
    finishedAt: null,
  };
}

function checkWhole(name: string, value: number): number {
  if (Number.isInteger(value) && value > 0) return value;
  throw new InvalidInputError(`A worker's ${name} is a whole number above 0, not ${value}.`);
}
