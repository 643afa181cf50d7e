/**
 * One epoch of a worker: its fence, its committer, and the runs that it owns. When the store reports that the fence is no
 * longer valid, the worker drops the session and starts a new one with a higher epoch.
 */

import { retryUntilReachable } from "../../concurrency/retry-until-reachable.js";
import { toFailure } from "../../core/encoding/error-record.js";
import { FencedError, WorkflowNotFoundError } from "../../core/errors/errors.js";
import { retriedRunIdOf } from "../../core/run/lineage.js";
import { writePauseNote } from "../../core/run/parking-note.js";
import { emptyList } from "../../core/run/transition.js";
import type { AdmittedTask } from "../../store/contract/limits.js";
import type { ClaimedTask, ExecutingCount, NewRun } from "../../store/contract/store.js";
import { publishCommit, publishStatus } from "../../telemetry/publish.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";
import { GroupCommitter } from "../commit/group-committer.js";
import { LogConflict } from "../commit/log-conflict.js";
import type { StartReceipt } from "../commit/receipt.js";
import type { TurnEnd } from "../commit/run-writer.js";
import { StepSlots } from "../limits/step-slots.js";
import { damagedRun, unwritableRun } from "../turn/damaged-run.js";
import { inheritFromPredecessor, mustInherit } from "../turn/inherited-log.js";
import { SuspectRunQueue } from "../turn/suspect-run-queue.js";
import { Turn } from "../turn/turn.js";
import type { HostedTurn, TurnHost, TurnSnapshot } from "../turn/turn-host.js";
import { pauseRunOnError } from "../turn/user-code.js";
import { toRunRecord } from "./adopted-run.js";
import { mustBegin } from "./begin-gathered.js";
import { toAdmittedTasks } from "./forgotten-tasks.js";
import { LateParks } from "./late-parks.js";
import { deliveriesAfterLoss } from "./late-releases.js";
import { type Opening, OpeningRuns } from "./opening-runs.js";
import { readClaimed } from "./read-claimed.js";
import type { SessionOptions } from "./session-options.js";

export class Session {
  readonly committer: GroupCommitter;
  readonly turns = new Map<string, Turn>();
  readonly #options: SessionOptions;
  readonly #host: TurnHost;
  readonly #openingRuns = new OpeningRuns();
  readonly #lateParks: LateParks;
  /** By run: where its log ended when the store refused a write of it. */
  readonly #conflicts = new Map<string, number>();
  #stepSlots: StepSlots | null = null;
  #isDead = false;
  #isStopping = false;

  constructor(options: SessionOptions) {
    const { runtime, store, log, workerName, fence } = options;
    this.#options = options;
    this.committer = new GroupCommitter({
      runtime,
      store,
      fence,
      slots: options.slots,
      lateCallMs: options.leaseMs,
      onFenced: () => options.onLost(),
      onUncertain: () => options.onUncertain(),
      onUncertainPark: (runId) => this.#lateParks.note(runId),
      onTransientError: (operation, error) =>
        warnOfRetry(log, `Worker "${workerName}": ${operation} failed, trying again.`, error),
    });
    this.#lateParks = new LateParks({ runtime, store, log, committer: this.committer, lateCallMs: options.leaseMs });
    this.#host = {
      ...{ runtime, workerName, store, log },
      tally: options.tally,
      committer: this.committer,
      executing: options.slowSteps.executing,
      watchdog: options.watchdog,
      suspectRuns: new SuspectRunQueue(options.watchdog, options.leaseMs, options.runtime),
      stepSlots: () =>
        (this.#stepSlots ??= new StepSlots({
          ...{ runtime, store, log, fence },
          lateCallMs: options.leaseMs,
          onFreed: options.onSlotsFreed,
          onLookDue: options.onOfferDue,
        })),
      virtualClock: options.virtualClock,
      maxDeliveries: options.maxDeliveries,
      replayGraceMs: options.replayGraceMs,
      cancelGraceMs: options.graceMs,
      recheckPausedMs: options.recheckPausedMs,
      onError: options.onError,
      canExecute: (route, version) => options.canExecute(route, version),
      allowsInterruptions: () => options.allowsInterruptions(),
      hasWaitingRuns: () => options.hasWaitingRuns(),
      onStepEnded: options.onStepEnded,
      findRegistration: async (name) => {
        const registration = await options.findRegistration(name);
        if (registration === null) throw new WorkflowNotFoundError(name);
        return registration;
      },
      jobInfo: (job) => options.jobInfo(job),
      readInbox: async (runId) => (await store.inbox([runId])).get(runId) ?? [],
      onTurnEnd: (turn, turnEnd) => this.#onTurnEnd(turn, turnEnd),
    };
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** How many runs the session owns. */
  get size(): number {
    return this.turns.size + this.#openingRuns.size;
  }

  /** What the session executes, for the heartbeat. */
  countExecuting(): readonly ExecutingCount[] {
    const counts = new Map<string, ExecutingCount>();
    for (const { route, run } of this.turns.values()) {
      const key = `${route}\u0000${run.version}`;
      counts.set(key, { route, version: run.version, count: (counts.get(key)?.count ?? 0) + 1 });
    }
    return [...counts.values()];
  }

  /** Drops all turns, because other workers may own the runs. */
  kill(): void {
    this.#isDead = true;
    this.#stepSlots?.close();
    this.committer.giveUp();
    this.#lateParks.close();
    for (const turn of this.turns.values()) turn.abandon();
    this.turns.clear();
  }

  /** The slots of limits that steps hold or wait for; null if no step has a limit. */
  get stepSlots(): StepSlots | null {
    return this.#stepSlots;
  }

  /** Lets running steps finish; each run is then released to the next worker. */
  stop(): void {
    this.#isStopping = true;
    for (const turn of this.turns.values()) turn.stop();
  }

  abort(reason: Error): void {
    for (const turn of this.turns.values()) turn.abort(reason);
  }

  /** Starts the turns of claimed runs. Logs and inboxes are read for all runs at once; fresh runs have none to read. */
  async openClaimed(
    tasks: readonly (ClaimedTask | AdmittedTask)[],
    claimedAt: number,
    wereUnowned = true,
  ): Promise<void> {
    for (const task of tasks) {
      if ("lanes" in task) this.#options.slots?.hold(task.run.id, task.lanes, task.openLanes);
      this.#endEarlierTurn(task.run.id);
    }
    const needsNoReads = (task: ClaimedTask) =>
      task.isFresh && task.pendingMessages === 0 && retriedRunIdOf(task.run) === null && !mustBegin(task);
    for (const task of tasks) {
      if (needsNoReads(task))
        void this.#startTurn({
          run: task.run,
          route: task.route,
          deliveries: task.deliveries,
          log: emptyList,
          inbox: emptyList,
          claimedAt,
        });
    }
    const tasksToRead = tasks.filter((task) => !needsNoReads(task));
    if (tasksToRead.length === 0) return;
    const { store } = this.#options;
    const ids = tasksToRead.map((task) => task.run.id);
    await this.#whileOpening(ids, async (opening) => {
      const read = () => readClaimed(store, tasksToRead, { claimedAt, wereUnowned });
      const snapshots = await this.#retryUntilReachable(read);
      const latest = snapshots.filter(({ run }) => opening.isLatest(run.id));
      await Promise.all(latest.map((snapshot) => this.#startRun(snapshot, opening)));
    });
  }

  /** Creates a run that this worker owns from the start, without a claim. */
  adopt(run: NewRun): Promise<StartReceipt> {
    return this.#whileOpening([run.id], async () => {
      const receipt = await this.committer.start({ ...run, due: { kind: "owned" } });
      if (receipt.refusal === null) {
        publishStatus(this.#options.log, run, "pending", receipt.at);
        void this.#startTurn({
          run: toRunRecord(run, receipt.at),
          route: run.route ?? run.workflow,
          deliveries: 1,
          log: emptyList,
          inbox: emptyList,
          claimedAt: receipt.at,
        });
      }
      return receipt;
    });
  }

  /**
   * After the connection failed during a claim or commit, opens the runs that this session owns according to the store but
   * does not know. Runs that it knew before the read are skipped, because they may have been released during the read.
   */
  async reconcile(): Promise<void> {
    const { store, fence } = this.#options;
    const knownIds = new Set([...this.turns.keys(), ...this.#openingRuns.ids]);
    const isForgotten = (id: string) => !knownIds.has(id) && !this.turns.has(id) && !this.#openingRuns.has(id);
    const ownedTasks = await this.#retryUntilReachable(() => store.ownedTasks(fence));
    const forgottenTasks = ownedTasks.filter((task) => isForgotten(task.runId));
    if (forgottenTasks.length === 0) return;
    const ids = forgottenTasks.map((task) => task.runId);
    const [runs, at] = await this.#retryUntilReachable(() => Promise.all([store.runsById(ids), store.now()]));
    const readSlots = () => store.limits.slots({ runIds: ids }, Number.MAX_SAFE_INTEGER);
    const slots = this.#options.slots === null ? [] : await this.#retryUntilReachable(readSlots);
    const claimedTasks = toAdmittedTasks(forgottenTasks, runs, slots);
    await this.openClaimed(claimedTasks, at, false);
  }

  /**
   * A claim has returned this run, so the earlier turn of this session does not own it any more, whatever it knows: its last
   * commit has released the run, or one that had failed was executed late. It must write nothing more.
   */
  #endEarlierTurn(runId: string): void {
    this.committer.noteReclaimed(runId);
    const turn = this.turns.get(runId);
    if (turn === undefined || turn.isOver) return;
    this.turns.delete(runId);
    turn.abandon();
  }

  async #whileOpening<T>(ids: readonly string[], work: (opening: Opening) => Promise<T>): Promise<T> {
    const opening = this.#openingRuns.begin(ids);
    try {
      return await work(opening);
    } finally {
      opening.end();
      if (this.size === 0) this.#options.onRunReleased(null);
    }
  }

  /** Retries reads for owned runs until they succeed, the session dies, or the worker stops. */
  #retryUntilReachable<T>(read: () => Promise<T>): Promise<T> {
    return retryUntilReachable(this.#options.runtime, read, () => this.#isDead || this.#isStopping);
  }

  #startRun(snapshot: TurnSnapshot, opening: Opening): void | Promise<void> {
    return mustInherit(snapshot) ? this.#startSuccessor(snapshot, opening) : this.#startTurn(snapshot);
  }

  /** Starts a run that retries another run. The recorded steps of the other run are first copied into its log. */
  async #startSuccessor(snapshot: TurnSnapshot, opening: Opening): Promise<void> {
    const { store, onRunReleased } = this.#options;
    const { run } = snapshot;
    try {
      const { onFailure } = this.#options.definition(run.workflow, run.version);
      const inheritResult = await inheritFromPredecessor(snapshot, {
        store,
        committer: this.committer,
        hasOnFailure: onFailure !== null,
        retryUntilReachable: (read) => this.#retryUntilReachable(read),
      });
      if (!opening.isLatest(run.id)) return;
      if (inheritResult.kind === "inherited") await this.#startTurn({ ...snapshot, log: inheritResult.log });
      else if (inheritResult.kind === "has messages") await this.#reopen(run.id, snapshot.route);
      else onRunReleased(inheritResult.kind === "parked" ? inheritResult : null);
    } catch (error) {
      if (this.#isDead || error instanceof FencedError) return;
      const pauseNote = writePauseNote(toFailure(error).message);
      await this.#pauseUnwritable(run.id, snapshot.log.length, error, pauseNote);
    }
  }

  #startTurn(snapshot: TurnSnapshot): void | Promise<void> {
    if (this.#isDead) return;
    const { run } = snapshot;
    let turn: Turn;
    try {
      turn = new Turn(this.#host, this.#options.definition(run.workflow, run.version), snapshot);
    } catch (error) {
      // The log cannot be folded: the run is paused for an operator, and the worker continues.
      return this.#pauseDamaged(snapshot, error);
    }
    this.turns.set(run.id, turn);
    // The other runs of the same claim may be opening for longer than this turn lasts.
    this.#openingRuns.onTurnStarted(run.id);
    pauseRunOnError(turn, () => turn.start());
    if (this.#isStopping) turn.stop();
  }

  #onTurnEnd(turn: HostedTurn, turnEnd: TurnEnd): void {
    // If this session claimed the run again before the receipt of the last commit arrived, a newer turn executes the run.
    if (this.turns.get(turn.runId) === turn) this.turns.delete(turn.runId);
    if (this.turns.has(turn.runId) || this.#openingRuns.has(turn.runId)) return;
    if (turnEnd.how === "has messages") void this.#reopen(turn.runId, turn.route);
    else if (turnEnd.how === "evicted") void this.#evict(turn.runId, turn.route, turnEnd.error);
    else if (turnEnd.how === "parked" && turnEnd.dueAt !== null) {
      this.#options.onRunReleased({ dueAt: turnEnd.dueAt, now: turnEnd.at });
    } else this.#options.onRunReleased(null);
  }

  /** Starts a new turn for a run that the session still owns, for example because messages kept it from being parked. */
  #reopen(runId: string, route: string, deliveries = 1): Promise<void> {
    const { store, log } = this.#options;
    return this.#whileOpening([runId], async (opening) => {
      try {
        const [run, logs, inboxes, claimedAt] = await this.#retryUntilReachable(() =>
          Promise.all([store.run(runId), store.logs([runId]), store.inbox([runId]), store.now()]),
        );
        if (run === null || !opening.isLatest(runId)) return;
        await this.#startRun(
          {
            run,
            route,
            deliveries,
            log: logs.get(runId) ?? emptyList,
            inbox: inboxes.get(runId) ?? emptyList,
            claimedAt,
          },
          opening,
        );
      } catch (error) {
        log.error(`Run ${runId} could not be reopened; another worker takes it when this one stops.`, error);
      }
    });
  }

  /**
   * Called when the store refused the writes of a run. If the session no longer owns the run, it drops the run. If the log has
   * lost events of this worker (a standby database without the last writes took over), or has events that this worker was
   * told had failed (the server executed a commit after its connection was lost), the run is reopened from that log.
   * Otherwise the run is paused with the error.
   */
  #evict(runId: string, route: string, error: unknown): Promise<void> {
    const { store, log, fence } = this.#options;
    return this.#whileOpening([runId], async (opening) => {
      try {
        const [logs, [task]] = await this.#retryUntilReachable(() =>
          Promise.all([store.logs([runId]), store.tasks([runId])]),
        );
        // A claim has returned the run meanwhile: its turn is not the one that was refused.
        if (!opening.isLatest(runId) || this.turns.has(runId)) return;
        const lastSeq = logs.get(runId)?.at(-1)?.seq ?? 0;
        if (error instanceof LogConflict) {
          if (task?.owner !== fence.workerId || task.epoch !== fence.epoch) {
            this.#options.slots?.forget(runId);
            if (task?.state === "parked") void this.#lateParks.wake(runId);
            return log.warn(`Run ${runId} is no longer owned by this worker, which drops it.`);
          }
          // Between the refusal and this read, a claim may have made the session the owner again.
          const isFirst = this.#conflicts.get(runId) !== lastSeq;
          this.#conflicts.set(runId, lastSeq);
          if (lastSeq !== error.after || isFirst) {
            log.warn(
              `The log of run ${runId} ends at event ${lastSeq}, not at ${error.after}: the run is replayed from there.`,
            );
            // As after the death of a worker: what the earlier turn had begun is abandoned, and the code is called again.
            return await this.#reopen(runId, route, deliveriesAfterLoss);
          }
        }
        log.error(`Run ${runId} could not be written and is paused.`, error);
        await this.#pauseUnwritable(runId, lastSeq, error);
      } catch (pauseError) {
        log.error(`Run ${runId} could not be written, and could not be paused either.`, pauseError);
      }
    });
  }

  async #pauseDamaged(snapshot: TurnSnapshot, error: unknown): Promise<void> {
    const { store, log } = this.#options;
    const { id, workflow } = snapshot.run;
    try {
      const [row] = await this.#retryUntilReachable(() => store.maintenance.audit.runsById([id]));
      const { transition, reason } = damagedRun(snapshot, row?.lastEventSeq ?? 0, error);
      const receipt = await this.committer.submit(transition);
      if (receipt.kind === "unread" || (receipt.kind === "committed" && receipt.isStillOwned))
        return await this.#reopen(id, snapshot.route);
      if (receipt.kind === "evicted") throw receipt.error;
      publishCommit(log, snapshot.run, { ...transition, at: receipt.at });
      this.#options.tally.record(workflow, { ...transition, at: receipt.at });
      const newStatus = transition.next.kind === "finish" ? "canceled" : "paused";
      log.warn(`Run ${id} (${workflow}) is ${newStatus}: ${reason}`);
    } catch (pauseError) {
      if (!this.#isDead) log.error(`Run ${id} cannot be read, and could not be paused either.`, pauseError);
    }
  }

  async #pauseUnwritable(runId: string, after: number, error: unknown, waiting: string | null = null): Promise<void> {
    await this.committer.submit(unwritableRun(runId, after, error, waiting));
  }
}
