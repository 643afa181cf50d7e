/**
 * Group commit: the store commits the writes of many runs of a worker in one transaction, called a flush.
 *
 * Writes that are submitted during a flush are queued for the next flush. There is no timer: an idle worker commits at once,
 * a busy worker commits in batches, and a very busy worker has two flushes in flight at a time.
 */

import { Backoff } from "../../concurrency/backoff.js";
import { Batcher, countFitting } from "../../concurrency/batcher.js";
import { isTransient } from "../../concurrency/retry-until-reachable.js";
import { FencedError } from "../../core/errors/errors.js";
import { hasUniqueKey } from "../../core/naming/start-key.js";
import { mergeMessages } from "../../core/run/message.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { Batch, CommitResult, Fence, NewRun, Store, Transition } from "../../store/contract/store.js";
import { inCleanContext } from "../../telemetry/async-context.js";
import { isUnreachable } from "../../telemetry/warn-of-retry.js";
import type { SlotKeeper } from "../limits/slot-keeper.js";
import { AckScheduler } from "./ack-scheduler.js";
import type { GroupCommitterOptions } from "./committer-options.js";
import { LogConflict } from "./log-conflict.js";
import { mergeInto, toMutable } from "./merge-transitions.js";
import {
  deliverReceipt,
  type QueuedTransition,
  type Receipt,
  type Receiver,
  removeRefused,
  type StartReceipt,
} from "./receipt.js";
import { estimateBytes } from "./transition-size.js";
import { UncertainEnds } from "./uncertain-ends.js";

interface QueuedStart {
  readonly run: NewRun;
  readonly resolve: (receipt: StartReceipt) => void;
  readonly reject: (error: unknown) => void;
}

/** `found`: the connection failed, and the log shows that the commit succeeded. */
type Committed = Extract<CommitResult, { kind: "committed" }> & { readonly found?: true };

/**
 * With two flushes in flight, one is assembled and executed while the other waits for the disk. The second flush starts only
 * if enough writes are queued to be worth a separate commit.
 */
const maxFlushesInFlight = 2;
const minQueuedForSecondFlush = 128;
/** A flush that creates this many child runs takes long, so a single queued write is enough to start a second flush. */
const minChildrenOfLargeFlush = 100;

/** The limits of one flush: larger flushes take longer without writing more per second. */
const maxTransitions = 250;
const maxBytes = 4 * 1024 * 1024;
/** Each commit of starts with unique keys may wait, on its own connection, for an open transaction with the same key. */
const maxKeyedCommits = 2;

export class GroupCommitter {
  readonly runtime: Runtime;
  readonly #store: Store;
  readonly #fence: Fence;
  readonly #options: GroupCommitterOptions;
  readonly #receipts: AckScheduler;
  readonly #slots: SlotKeeper | null;
  readonly #uncertainEnds: UncertainEnds;
  #queue = new Map<string, QueuedTransition>();
  #starts: QueuedStart[] = [];
  /** Starts with a unique key are written separately, because they may wait for another transaction with the same key. */
  readonly #keyedStarts: Batcher<QueuedStart>;
  /** The runs whose writes are part of a flush in flight; their further writes must wait for the next flush. */
  readonly #runsInFlight = new Set<string>();
  /** Of these, the runs that the session has claimed again, which proves that their release was committed. */
  readonly #reclaimedRuns = new Set<string>();
  #flushesInFlight = 0;
  #isLargeFlushInFlight = false;
  #hasGivenUp = false;
  #isFlushScheduled = false;
  #isFenced = false;

  constructor(options: GroupCommitterOptions) {
    this.#options = options;
    this.runtime = options.runtime;
    this.#receipts = new AckScheduler(options.runtime);
    this.#store = options.store;
    this.#fence = options.fence;
    this.#slots = options.slots;
    this.#uncertainEnds = new UncertainEnds(options.runtime, options.lateCallMs);
    const write = (starts: readonly QueuedStart[]) => inCleanContext(() => this.#write([], starts));
    this.#keyedStarts = new Batcher({ write, batchSizeOf: countStartsThatFit, maxConcurrentWrites: maxKeyedCommits });
  }

  get fence(): Fence {
    return this.#fence;
  }

  /** Resolves when the transition is durable or refused; rejects with `FencedError` if the worker has lost its fence. */
  submit(transition: Transition): Promise<Receipt> {
    return new Promise((resolve, reject) => {
      this.post(transition, (receipt) => (receipt === null ? reject(this.#fencedError()) : resolve(receipt)));
    });
  }

  /** Like `submit`, without a promise: it is called for every step, and promises were most of the garbage to collect. */
  post(transition: Transition, receiver: Receiver): void {
    if (this.#isFenced) return receiver(null);
    if (this.#slots !== null) transition = this.#slots.withRelease(transition);
    const entry = this.#queue.get(transition.runId);
    if (entry === undefined) {
      this.#queue.set(transition.runId, { transition, merged: null, receiver, laterReceivers: null });
    } else {
      if (entry.merged === null) entry.transition = entry.merged = toMutable(entry.transition);
      mergeInto(entry.merged, transition);
      if (entry.laterReceivers === null) entry.laterReceivers = [receiver];
      else entry.laterReceivers.push(receiver);
    }
    this.#scheduleFlush();
  }

  /** Creates a run that this worker owns from the start. */
  start(run: NewRun): Promise<StartReceipt> {
    return new Promise((resolve, reject) => {
      if (this.#isFenced) return reject(this.#fencedError());
      const start = { run, resolve, reject };
      if (hasUniqueKey(run)) return this.#keyedStarts.add(start);
      this.#starts.push(start);
      this.#scheduleFlush();
    });
  }

  /** Called when a claim has returned this run: what an earlier turn of it has submitted must not be written any more. */
  noteReclaimed(runId: string): void {
    if (this.#runsInFlight.has(runId)) this.#reclaimedRuns.add(runId);
    const entry = this.#queue.get(runId);
    this.#queue.delete(runId);
    if (entry !== undefined) deliverReceipt(entry, null);
  }

  /** Whether a commit of this run is on its way. */
  isInFlight(runId: string): boolean {
    return this.#runsInFlight.has(runId);
  }

  /** Stops retrying failed commits: no turn waits for them any more, and the next owners of the runs repeat the work. */
  giveUp(): void {
    this.#hasGivenUp = true;
    this.#uncertainEnds.close();
  }

  #scheduleFlush(): void {
    if (this.#isFlushScheduled || this.#flushesInFlight >= maxFlushesInFlight) return;
    const minQueued = this.#isLargeFlushInFlight ? 1 : minQueuedForSecondFlush;
    if (this.#flushesInFlight > 0 && this.#queue.size + this.#starts.length < minQueued) return;
    this.#isFlushScheduled = true;
    // The flush starts a microtask later, so that all writes submitted in the same tick are part of it.
    queueMicrotask(() => {
      this.#isFlushScheduled = false;
      // A flush resumes many runs through its receipts, so it must not run in the async context of one of these runs.
      void inCleanContext(() => this.#flush());
    });
  }

  async #flush(): Promise<void> {
    if (this.#isFenced) return;
    const entries = this.#takeTransitions();
    const starts = this.#takeStarts();
    if (entries.length + starts.length === 0) return;
    this.#flushesInFlight += 1;
    for (const { transition } of entries) this.#runsInFlight.add(transition.runId);
    const isLarge = entries.some(({ transition }) => transition.newChildren.length >= minChildrenOfLargeFlush);
    if (isLarge) this.#isLargeFlushInFlight = true;
    try {
      await this.#write(entries, starts);
    } finally {
      this.#flushesInFlight -= 1;
      if (isLarge) this.#isLargeFlushInFlight = false;
      for (const { transition } of entries) {
        this.#runsInFlight.delete(transition.runId);
        this.#reclaimedRuns.delete(transition.runId);
      }
      if (this.#isFenced) this.#rejectQueue();
      else if (this.#queue.size > 0 || this.#starts.length > 0) this.#scheduleFlush();
    }
  }

  /**
   * Removes the oldest entries that fit into a flush from the queue. A run that is parked, finished or drains its inbox in a
   * flush must not receive a message in the same flush, so the later of two such transitions waits for the next flush.
   */
  #takeTransitions(): QueuedTransition[] {
    const takenEntries: QueuedTransition[] = [];
    const movingRuns = new Set<string>();
    const receivingRuns = new Set<string>();
    let bytes = 0;
    for (const [runId, entry] of this.#queue) {
      if (takenEntries.length >= maxTransitions || bytes >= maxBytes) break;
      if (this.#runsInFlight.has(runId)) continue;
      const { transition } = entry;
      const isMoving = transition.next.kind !== "keep" || transition.drainedInboxIds.length > 0;
      if (isMoving && receivingRuns.has(runId)) continue;
      if (
        transition.messages.some((message) => movingRuns.has(message.to)) ||
        transition.releasedChildIds.some((id) => movingRuns.has(id))
      )
        continue;
      if (isMoving) movingRuns.add(runId);
      for (const message of transition.messages) receivingRuns.add(message.to);
      for (const id of transition.releasedChildIds) receivingRuns.add(id);
      bytes += estimateBytes(transition);
      takenEntries.push(entry);
      this.#queue.delete(runId);
    }
    return takenEntries;
  }

  #takeStarts(): QueuedStart[] {
    return this.#starts.splice(0, countStartsThatFit(this.#starts));
  }

  async #write(entries: QueuedTransition[], starts: readonly QueuedStart[]): Promise<void> {
    const backoff = new Backoff(this.runtime);
    let [isUncertain, hasFailed] = [false, false];
    while (entries.length > 0 || starts.length > 0) {
      const batch = this.#createBatch(entries, starts);
      let result: CommitResult & { readonly found?: true };
      try {
        const ownCommit = isUncertain ? await this.#findOwnCommit(batch) : null;
        const reclaimed = hasFailed && ownCommit === null ? this.#findReclaimed(entries) : undefined;
        if (reclaimed !== undefined) {
          entries = removeRefused(entries, reclaimed, () => null);
          continue;
        }
        result = ownCommit ?? (await this.#store.commit(batch));
        // The server may execute a commit long after its connection has failed, also between the check and the next try.
        if (result.kind === "conflict" && hasFailed) result = (await this.#findOwnCommit(batch)) ?? result;
      } catch (error) {
        if (this.#hasGivenUp) return this.#rejectAll(entries, starts);
        if (isTransient(error)) {
          // The connection may have failed after the commit succeeded, so the log is checked before writing again.
          isUncertain = hasFailed = true;
          this.#options.onTransientError("commit", error);
          if (isUnreachable(error)) this.#noteUncertain(entries);
          await backoff.wait();
          continue;
        }
        return this.#isolate(entries, starts, error);
      }
      if (result.kind === "fenced") return this.#onFenceLost(entries, starts);
      if (result.kind === "committed" && result.found && starts.length > 0) {
        // The log does not show which starts were refused, so all are sent again; the store recognises existing runs by
        // id.
        this.#acknowledge(entries, [], result);
        entries = [];
        continue;
      }
      if (result.kind === "committed") return this.#acknowledge(entries, starts, result);
      const { runId, hasUnreadMessages } = result;
      const evictedFor = ({ afterSeq }: Transition) =>
        ({ kind: "evicted", error: new LogConflict(runId, afterSeq) }) as const;
      entries = hasUnreadMessages
        ? this.#uncertainEnds.refuse(entries, runId)
        : removeRefused(entries, runId, evictedFor);
      isUncertain = false;
    }
  }

  /** A run whose earlier turn has submitted an entry that was not written, and must not be written beside the newer turn. */
  #findReclaimed(entries: readonly QueuedTransition[]): string | undefined {
    return entries.find(({ transition }) => this.#reclaimedRuns.has(transition.runId))?.transition.runId;
  }

  #noteUncertain(entries: readonly QueuedTransition[]): void {
    this.#uncertainEnds.note(entries);
    const parks = entries.filter(({ transition: { events, next } }) => next.kind === "park" && events.length === 0);
    for (const { transition } of parks) this.#options.onUncertainPark(transition.runId);
  }

  #acknowledge(entries: readonly QueuedTransition[], starts: readonly QueuedStart[], committed: Committed): void {
    const { at, notParked, ownedWithMessages, refused, found } = committed;
    const defaultReceipt: Receipt = { kind: "committed", at, isStillOwned: false, hasMessages: false };
    for (const { transition, receiver, laterReceivers } of entries) {
      const isStillOwned = notParked.length > 0 && notParked.includes(transition.runId);
      const hasMessages = ownedWithMessages.length > 0 && ownedWithMessages.includes(transition.runId);
      if (this.#slots !== null && transition.next.kind !== "keep" && !isStillOwned)
        this.#slots.onReleased(transition.runId, transition.next.kind === "finish");
      const receipt = isStillOwned || hasMessages ? { ...defaultReceipt, isStillOwned, hasMessages } : defaultReceipt;
      this.#receipts.add(receiver, receipt);
      if (laterReceivers !== null)
        for (const laterReceiver of laterReceivers) this.#receipts.add(laterReceiver, receipt);
    }
    for (const { run, resolve } of starts) {
      const refusal = refused.length === 0 ? null : (refused.find(({ runId }) => runId === run.id) ?? null);
      this.#receipts.add(resolve, { at, refusal });
    }
    // The worker may still own runs that should have been parked. Only when their turns have ended, the session notices that.
    if (found === true) this.#receipts.add(this.#options.onUncertain, undefined);
    this.#receipts.deliver(this.#queue.size > 0 || this.#starts.length > 0);
  }

  #createBatch(entries: readonly QueuedTransition[], starts: readonly QueuedStart[]): Batch {
    return {
      fence: this.#fence,
      transitions: mergeMessages(entries.map((entry) => entry.transition)),
      starts: starts.map((start) => start.run),
    };
  }

  /**
   * Finds out whether a commit succeeded although its connection failed. A batch is written as a whole or not at all, so one
   * transition that releases its run shows whether it was written, as long as the fence is valid, and so do the events in the
   * logs. All logs are read: a run that this worker has lost meanwhile may have the same event of its next owner, which says
   * nothing about the other runs. A batch without such a transition is safe to repeat: the store recognises existing runs by
   * id and overwrites cursors.
   */
  async #findOwnCommit({ transitions }: Batch): Promise<(CommitResult & { readonly found?: true }) | null> {
    const written = transitions.filter(({ events }) => events.length > 0);
    const released =
      transitions.find(({ runId, next }) => next.kind === "park" && this.#reclaimedRuns.has(runId)) ??
      transitions.find(({ next }) => next.kind !== "keep");
    if (written.length === 0 && released === undefined) return null;
    const { isAlive } = await this.#store.heartbeat(this.#fence);
    if (!isAlive) return { kind: "fenced" };
    let at = written.length === 0 && released !== undefined ? await this.#readReleasedAt(released) : null;
    for (const transition of written) {
      at = await this.#readWrittenAt(transition);
      if (at === null) break;
    }
    if (at === null) return null;
    return { kind: "committed", at, notParked: [], ownedWithMessages: [], refused: [], found: true };
  }

  /** An event of another writer, which came first, is no proof of the own commit. */
  async #readWrittenAt({ runId, afterSeq, events }: Transition): Promise<number | null> {
    const [found] = await this.#store.log(runId, { after: afterSeq, limit: 1 });
    const isOwn = found?.type === events[0]?.type && found?.node === events[0]?.node;
    return found !== undefined && isOwn ? found.at : null;
  }

  /**
   * Null if this worker still owns the run. Otherwise the commit released the run, because only the owner can. If messages
   * kept the run from being parked, null leads to a second commit, which is harmless.
   */
  async #readReleasedAt({ runId }: Transition): Promise<number | null> {
    const [task] = this.#reclaimedRuns.has(runId) ? [] : await this.#store.tasks([runId]);
    const { workerId, epoch } = this.#fence;
    const isOwned = task?.owner === workerId && task.epoch === epoch;
    // A claim may have returned the run during the read: then it is owned for its next turn.
    return isOwned && !this.#reclaimedRuns.has(runId) ? null : this.#store.now();
  }

  /** Finds the run whose data cannot be written (it exceeds a packet, for example) by halving the batch repeatedly. */
  async #isolate(entries: QueuedTransition[], starts: readonly QueuedStart[], error: unknown): Promise<void> {
    if (entries.length + starts.length === 1) {
      for (const entry of entries) deliverReceipt(entry, { kind: "evicted", error });
      for (const start of starts) start.reject(error);
      return;
    }
    const middle = entries.length >> 1;
    if (entries.length > 1) {
      await this.#write(entries.slice(0, middle), []);
      await this.#write(entries.slice(middle), starts);
    } else {
      await this.#write(entries, []);
      for (const start of starts) await this.#write([], [start]);
    }
  }

  #onFenceLost(entries: readonly QueuedTransition[], starts: readonly QueuedStart[]): void {
    this.#isFenced = true;
    this.#uncertainEnds.close();
    this.#rejectAll(entries, starts);
    this.#options.onFenced();
  }

  #rejectQueue(): void {
    const entries = [...this.#queue.values()];
    this.#queue = new Map();
    this.#rejectAll(entries, this.#starts.splice(0));
  }

  #rejectAll(entries: readonly QueuedTransition[], starts: readonly QueuedStart[]): void {
    const error = this.#fencedError();
    for (const entry of entries) deliverReceipt(entry, null);
    for (const start of starts) start.reject(error);
  }

  #fencedError(): FencedError {
    return new FencedError(this.#fence.workerId, this.#fence.epoch);
  }
}

const countStartsThatFit = (starts: readonly QueuedStart[]) =>
  countFitting(starts, ({ run }) => 200 + run.input.length, { count: maxTransitions, bytes: maxBytes });
