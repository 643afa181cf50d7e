/**
 * One epoch of a worker: its fence, its committer, and the runs it has. When the store says that the fence is gone,
 * everything in here is dropped; the worker begins a new session under a higher epoch.
 */

import { retryUntilReachable } from "../../concurrency/retry-until-reachable.js";
import { toFailure } from "../../core/encoding/error-record.js";
import { FencedError, WorkflowNotFoundError } from "../../core/errors/errors.js";
import { event } from "../../core/run/event.js";
import { predecessorOf } from "../../core/run/lineage.js";
import { writePauseNote } from "../../core/run/parking-note.js";
import { none, transitionOf } from "../../core/run/transition.js";
import type { Logger } from "../../define/context.js";
import type { ErrorReporter, WorkflowDefinition } from "../../define/definition.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { Claimed, Fence, InboxRow, NewRun, RunRecord, Store, TaskRecord } from "../../store/contract/store.js";
import { tellOfCommit, tellOfRun } from "../../telemetry/tell.js";
import { warnOf } from "../../telemetry/warn-of-retry.js";
import { GroupCommitter, type StartReceipt } from "../commit/group-committer.js";
import { LogConflict } from "../commit/log-conflict.js";
import type { Parting } from "../commit/run-writer.js";
import { damagedRun } from "../turn/damaged-run.js";
import type { JobInfo, Opening, Registered, TurnAtHost, TurnHost } from "../turn/host.js";
import { inherit, isHeir } from "../turn/inheritance.js";
import { Trials } from "../turn/trial.js";
import { Turn } from "../turn/turn.js";
import { pauseIfItFails } from "../turn/user-code.js";
import type { Watch } from "../watchdog/watchdog.js";
import type { SlowSteps } from "./slow-steps.js";

export interface SessionOptions {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly log: Logger;
  readonly workerName: string;
  readonly fence: Fence;
  readonly slowSteps: SlowSteps;
  readonly watch: Watch | null;
  readonly leaseMs: number;
  readonly virtualClock: (() => number) | null;
  readonly maxDeliveries: number;
  readonly replayGraceMs: number;
  readonly graceMs: number;
  readonly recheckPausedMs: number | null;
  definition(workflow: string, version: string): WorkflowDefinition;
  serves(route: string, version: string): boolean;
  interruptions(): boolean;
  crowded(): boolean;
  /** A step outside of others' bodies has its result; null when nothing wants to know. */
  readonly stepEnded: ((turn: TurnAtHost) => void) | null;
  readonly onError: ErrorReporter | null;
  registration(name: string): Promise<Registered | null>;
  jobInfo(job: string): Promise<JobInfo>;
  /** An answer was lost: it is not certain which runs are ours. */
  onUncertain(): void;
  /** The fence is gone. */
  onLost(session: Session): void;
  /** There is room for another run; it was parked and is due again then, if that is known. */
  onRoom(parking: { readonly dueAt: number; readonly now: number } | null): void;
}

export class Session {
  readonly committer: GroupCommitter;
  readonly turns = new Map<string, Turn>();
  readonly #options: SessionOptions;
  readonly #host: TurnHost;
  /** Runs that are ours, or about to be, and whose turn has not begun yet. */
  readonly #arriving = new Set<string>();
  #dead = false;
  #stopping = false;

  constructor(options: SessionOptions) {
    const { runtime, store, log, workerName, fence } = options;
    this.#options = options;
    this.committer = new GroupCommitter({
      runtime,
      store,
      fence,
      onFenced: () => options.onLost(this),
      onUncertain: () => options.onUncertain(),
      onTrouble: (what, error) => warnOf(log, `Worker "${workerName}": ${what} failed, trying again.`, error),
    });
    this.#host = {
      runtime,
      workerName,
      store,
      log,
      committer: this.committer,
      executing: options.slowSteps.executing,
      watch: options.watch,
      trials: new Trials(options.watch, options.leaseMs, options.runtime),
      virtualClock: options.virtualClock,
      maxDeliveries: options.maxDeliveries,
      replayGraceMs: options.replayGraceMs,
      cancelGraceMs: options.graceMs,
      recheckPausedMs: options.recheckPausedMs,
      onError: options.onError,
      serves: (route, version) => options.serves(route, version),
      interruptions: () => options.interruptions(),
      crowded: () => options.crowded(),
      stepEnded: options.stepEnded,
      registration: async (name) => {
        const known = await options.registration(name);
        if (known === null) throw new WorkflowNotFoundError(name);
        return known;
      },
      jobInfo: (job) => options.jobInfo(job),
      readInbox: async (runId) => (await store.inbox([runId])).get(runId) ?? [],
      parted: (turn, parting) => this.#parted(turn, parting),
    };
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** How many runs it has. */
  get size(): number {
    return this.turns.size + this.#arriving.size;
  }

  /** Drops everything: other workers have the runs. */
  kill(): void {
    this.#dead = true;
    this.committer.giveUp();
    for (const turn of this.turns.values()) turn.abandon();
    this.turns.clear();
  }

  /** What runs may finish; then each run is handed over. */
  stop(): void {
    this.#stopping = true;
    for (const turn of this.turns.values()) turn.stop();
  }

  abort(reason: Error): void {
    for (const turn of this.turns.values()) turn.abort(reason);
  }

  /** Reads what is needed to go on with claimed runs, for all of them at once; fresh ones need nothing. */
  async open(tasks: readonly Claimed[], at: number): Promise<void> {
    const isNew = (task: Claimed) => task.fresh && task.mail === 0 && predecessorOf(task.run) === null;
    for (const task of tasks) {
      if (isNew(task)) void this.#beginTurn({ run: task.run, deliveries: task.deliveries, log: none, inbox: none, at });
    }
    const old = tasks.filter((task) => !isNew(task));
    if (old.length === 0) return;
    const { store } = this.#options;
    const ids = old.map((task) => task.run.id);
    await this.#arrive(ids, async () => {
      const mailed = old.filter((task) => task.mail > 0).map((task) => task.run.id);
      const [logs, inboxes] = await this.#retryUntilReachable(() =>
        Promise.all([store.logs(ids), mailed.length > 0 ? store.inbox(mailed) : noInboxes]),
      );
      const begun = old.map((task) => {
        const { id } = task.run;
        return this.#begin({ ...task, log: logs.get(id) ?? none, inbox: inboxes.get(id) ?? none, at });
      });
      await Promise.all(begun);
    });
  }

  /** Starts a run that is this worker's from birth: no claim, no wake-up. */
  adopt(run: NewRun): Promise<StartReceipt> {
    return this.#arrive([run.id], async () => {
      const receipt = await this.committer.start({ ...run, due: { kind: "owned" } });
      if (receipt.refusal === null) {
        tellOfRun(this.#options.log, run, "pending", receipt.at);
        void this.#beginTurn({ run: newborn(run, receipt.at), deliveries: 1, log: none, inbox: none, at: receipt.at });
      }
      return receipt;
    });
  }

  /**
   * After an answer was lost: runs that the store says are ours and that this session does not know of are begun. What was known
   * before the question is left alone: it may have been let go of since.
   */
  async reconcile(): Promise<void> {
    const { store, fence } = this.#options;
    const known = new Set([...this.turns.keys(), ...this.#arriving]);
    const isForgotten = (id: string) => !known.has(id) && !this.turns.has(id) && !this.#arriving.has(id);
    const owned = await this.#retryUntilReachable(() => store.owned(fence));
    const forgotten = owned.filter((task) => isForgotten(task.runId));
    if (forgotten.length === 0) return;
    const ids = forgotten.map((task) => task.runId);
    const [runs, at] = await this.#retryUntilReachable(() => Promise.all([store.runsById(ids), store.now()]));
    const tasks = new Map(forgotten.map((task) => [task.runId, task]));
    const claimed = runs.map((run): Claimed => {
      const { deliveries, mail } = tasks.get(run.id) as TaskRecord;
      return { run, deliveries, mail, fresh: false };
    });
    await this.open(claimed, at);
  }

  async #arrive<T>(ids: readonly string[], work: () => Promise<T>): Promise<T> {
    for (const id of ids) this.#arriving.add(id);
    try {
      return await work();
    } finally {
      for (const id of ids) this.#arriving.delete(id);
      if (this.size === 0) this.#options.onRoom(null);
    }
  }

  /** What is ours must be begun: reading for it is tried until it works, it is not ours any more, or others are to have it. */
  #retryUntilReachable<T>(read: () => Promise<T>): Promise<T> {
    return retryUntilReachable(this.#options.runtime, read, () => this.#dead || this.#stopping);
  }

  #begin(opening: Opening): void | Promise<void> {
    return isHeir(opening) ? this.#beginHeir(opening) : this.#beginTurn(opening);
  }

  /** It goes on for another run, and has to know first what that one has done. */
  async #beginHeir(opening: Opening): Promise<void> {
    const { store, onRoom } = this.#options;
    const { run } = opening;
    try {
      const { onFailure } = this.#options.definition(run.workflow, run.version);
      const inherited = await inherit(opening, {
        store,
        committer: this.committer,
        hasOnFailure: onFailure !== null,
        retryUntilReachable: (read) => this.#retryUntilReachable(read),
      });
      if (inherited.kind === "inherited") await this.#beginTurn({ ...opening, log: inherited.log });
      else if (inherited.kind === "again") await this.#reopen(run.id);
      else onRoom(inherited.kind === "parked" ? inherited : null);
    } catch (error) {
      if (this.#dead || error instanceof FencedError) return;
      const why = writePauseNote(toFailure(error).message);
      await this.#pauseUnwritable(run.id, opening.log.length, error, why);
    }
  }

  #beginTurn(opening: Opening): void | Promise<void> {
    if (this.#dead) return;
    const { run } = opening;
    let turn: Turn;
    try {
      turn = new Turn(this.#host, this.#options.definition(run.workflow, run.version), opening);
    } catch (error) {
      // Its log cannot be folded: that is for a person to look at, and must not take the worker down.
      return this.#holdDamaged(opening, error);
    }
    this.turns.set(run.id, turn);
    pauseIfItFails(turn, () => turn.begin());
    if (this.#stopping) turn.stop();
  }

  #parted(turn: TurnAtHost, parting: Parting): void {
    // Claimed again before we heard that it was parked, perhaps: then another turn has it.
    if (this.turns.get(turn.runId) === turn) this.turns.delete(turn.runId);
    if (this.turns.has(turn.runId)) return;
    if (parting.how === "again") void this.#reopen(turn.runId);
    else if (parting.how === "evicted") void this.#evict(turn.runId, parting.error);
    else if (parting.how === "parked" && parting.dueAt !== null) {
      this.#options.onRoom({ dueAt: parting.dueAt, now: parting.at });
    } else this.#options.onRoom(null);
  }

  /** Mail came while the run was being parked: it is still ours, and is taken up where its log now ends. */
  #reopen(runId: string): Promise<void> {
    const { store, log } = this.#options;
    return this.#arrive([runId], async () => {
      try {
        const [run, logs, inboxes, at] = await this.#retryUntilReachable(() =>
          Promise.all([store.run(runId), store.logs([runId]), store.inbox([runId]), store.now()]),
        );
        if (run === null) return;
        await this.#begin({ run, deliveries: 1, log: logs.get(runId) ?? none, inbox: inboxes.get(runId) ?? none, at });
      } catch (error) {
        log.error(`Run ${runId} could not be taken up again.`, error);
      }
    });
  }

  /**
   * What the run wanted to write cannot be written. If the database has less of the run than this worker wrote (it went back in
   * time, as a standby that takes over may), the run is taken up as it is there, or left to its owner. Otherwise it is
   * paused with the reason.
   */
  #evict(runId: string, error: unknown): Promise<void> {
    const { store, log, fence } = this.#options;
    return this.#arrive([runId], async () => {
      try {
        const [logs, [task]] = await this.#retryUntilReachable(() =>
          Promise.all([store.logs([runId]), store.tasks([runId])]),
        );
        const written = logs.get(runId)?.at(-1)?.seq ?? 0;
        if (error instanceof LogConflict) {
          if (task?.owner !== fence.workerId || task.epoch !== fence.epoch) {
            return log.warn(`Run ${runId} does not belong to this worker any more, and is left to its owner.`);
          }
          if (written < error.after) {
            log.warn(
              `The log of run ${runId} ends at ${written}, not at ${error.after}: the run is replayed from there.`,
            );
            return await this.#reopen(runId);
          }
        }
        log.error(`Run ${runId} could not be written and is paused.`, error);
        await this.#pauseUnwritable(runId, written, error);
      } catch (second) {
        log.error(`Run ${runId} could not be paused either.`, second);
      }
    });
  }

  async #holdDamaged(opening: Opening, error: unknown): Promise<void> {
    const { store, log } = this.#options;
    const { id, workflow } = opening.run;
    try {
      const [row] = await this.#retryUntilReachable(() => store.upkeep.audit.runsById([id]));
      const { transition, reason } = damagedRun(opening, row?.lastEvent ?? 0, error);
      const receipt = await this.committer.submit(transition);
      if (receipt.kind === "unread" || (receipt.kind === "committed" && receipt.kept)) return await this.#reopen(id);
      if (receipt.kind === "evicted") throw receipt.error;
      tellOfCommit(log, opening.run, { ...transition, at: receipt.at });
      const became = transition.next.kind === "finish" ? "canceled" : "paused";
      log.warn(`Run ${id} (${workflow}) is ${became}: ${reason}`);
    } catch (second) {
      if (!this.#dead) log.error(`Run ${id} cannot be read, and could not be paused either.`, second);
    }
  }

  async #pauseUnwritable(runId: string, after: number, error: unknown, waiting: string | null = null): Promise<void> {
    const failure = toFailure(error);
    // If it had not begun yet: a worker had it, so its time has come.
    const events = [event("run.paused", {}, { reason: failure.message, error: failure }), event("run.became_due", {})];
    const parked = { status: "paused", waiting, startedAt: null, wakeAt: null, wakeIn: null } as const;
    const next = { kind: "park", ...parked } as const;
    await this.committer.submit(transitionOf(runId, after, { events, next }));
  }
}

const noInboxes: ReadonlyMap<string, readonly InboxRow[]> = new Map();

/** Field by field: copies by spreading were 2 % of the time of one-step runs. */
function newborn(run: NewRun, at: number): RunRecord {
  return {
    id: run.id,
    workflow: run.workflow,
    version: run.version,
    queue: run.queue,
    priority: run.priority,
    input: run.input,
    heroType: run.heroType,
    heroId: run.heroId,
    tags: run.tags,
    startKey: run.startKey,
    parentId: run.parentId,
    parentNode: run.parentNode,
    parentIndex: run.parentIndex,
    parentAttempt: run.parentAttempt,
    status: "running",
    output: null,
    error: null,
    waiting: null,
    createdAt: at,
    startedAt: null,
    finishedAt: null,
  };
}
