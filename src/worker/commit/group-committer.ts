/**
 * Group commit: what a worker's runs have to write goes to the store in one transaction for many runs.
 *
 * While a flush is under way, what is submitted is gathered, and written by the next one. There is no timer: an idle
 * worker commits at once, a busy one in batches, and a very busy one has a second batch under way beside the first.
 */

import { Backoff } from "../../concurrency/backoff.js";
import { Batcher, countFitting } from "../../concurrency/batcher.js";
import { isTransient } from "../../concurrency/retry-until-reachable.js";
import { FencedError } from "../../core/errors/errors.js";
import { hasUniqueKey } from "../../core/naming/start-key.js";
import { mergeMessages } from "../../core/run/message.js";
import type { Runtime } from "../../runtime/runtime.js";
import type {
  Batch,
  CommitResult,
  Fence,
  NewRun,
  RefusedStart,
  Store,
  Transition,
} from "../../store/contract/store.js";
import { inCleanContext } from "../../telemetry/async-context.js";
import { AckScheduler } from "./ack-scheduler.js";
import { LogConflict } from "./log-conflict.js";

export type Receipt =
  /** `hasMessages`: the run stays here, and messages wait in its inbox. */
  | { readonly kind: "committed"; readonly at: number; readonly isStillOwned: boolean; readonly hasMessages: boolean }
  /** It was to end, but has messages that were acknowledged before: nothing of it was written. */
  | { readonly kind: "unread" }
  /** Another process has written to this run, or it cannot be written at all: its turn must let go of it. */
  | { readonly kind: "evicted"; readonly error: unknown };

/** What is known of the fate of a start. */
export type StartReceipt = { readonly at: number; readonly refusal: RefusedStart | null };

/** Is told what became of a transition; null when the fence is gone and nothing of this worker counts any more. */
export type Receiver = (receipt: Receipt | null) => void;

interface QueuedTransition {
  transition: Transition;
  /** The same, once it is ours to add to. */
  merged: MutableTransition | null;
  readonly receiver: Receiver;
  /** Of what was added since. */
  laterReceivers: Receiver[] | null;
}

type MutableTransition = {
  -readonly [Key in keyof Transition]: Transition[Key] extends readonly (infer Item)[] ? Item[] : Transition[Key];
};

interface QueuedStart {
  readonly run: NewRun;
  readonly resolve: (receipt: StartReceipt) => void;
  readonly reject: (error: unknown) => void;
}

type Committed = Extract<CommitResult, { kind: "committed" }>;

/**
 * A second flush sets out while one is under way only if it is worth its while: then the one is assembled and executed
 * while the other waits for the disk.
 */
const maxFlushesInFlight = 2;
const minQueuedForSecondFlush = 128;
/** A flush that makes this many runs takes long: the others' steps do not wait for it. */
const minChildrenOfLargeFlush = 100;

/** Above this a flush takes longer without getting more done per second. */
const maxTransitions = 250;
const maxBytes = 4 * 1024 * 1024;
/** Each has a connection of the store to itself while it waits for a caller's open transaction. */
const maxKeyedCommits = 2;

export interface GroupCommitterOptions {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly fence: Fence;
  /** Called once, when the store says that this fence is gone. */
  readonly onFenced: () => void;
  readonly onTransientError: (operation: string, error: unknown) => void;
  /** A commit was found in the log after its answer was lost: it is not known which runs it left with this worker. */
  readonly onUncertain: () => void;
}

export class GroupCommitter {
  readonly runtime: Runtime;
  readonly #store: Store;
  readonly #fence: Fence;
  readonly #options: GroupCommitterOptions;
  readonly #receipts: AckScheduler;
  #queue = new Map<string, QueuedTransition>();
  #starts: QueuedStart[] = [];
  /** Apart from everything else, for they may have to wait. */
  readonly #keyedStarts: Batcher<QueuedStart>;
  /** Runs in flushes that are under way: what else they have to write must come after. */
  readonly #runsInFlight = new Set<string>();
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
    const write = (starts: readonly QueuedStart[]) => inCleanContext(() => this.#write([], starts));
    this.#keyedStarts = new Batcher({ write, batchSizeOf: countStartsThatFit, maxConcurrentWrites: maxKeyedCommits });
  }

  get fence(): Fence {
    return this.#fence;
  }

  /** Resolves when the transition is durable (or the run must be let go of); rejects with FencedError when nothing of this worker counts any more. */
  submit(transition: Transition): Promise<Receipt> {
    return new Promise((resolve, reject) => {
      this.post(transition, (receipt) => (receipt === null ? reject(this.#fencedError()) : resolve(receipt)));
    });
  }

  /** The same without a promise: this is once per step, and promises are what the garbage collector is busy with. */
  post(transition: Transition, receiver: Receiver): void {
    if (this.#isFenced) return receiver(null);
    const entry = this.#queue.get(transition.runId);
    if (entry === undefined) {
      this.#queue.set(transition.runId, { transition, merged: null, receiver, laterReceivers: null });
    } else {
      coalesce(entry, transition);
      if (entry.laterReceivers === null) entry.laterReceivers = [receiver];
      else entry.laterReceivers.push(receiver);
    }
    this.#scheduleFlush();
  }

  /** Makes a run that this worker owns from birth. */
  start(run: NewRun): Promise<StartReceipt> {
    return new Promise((resolve, reject) => {
      if (this.#isFenced) return reject(this.#fencedError());
      const start = { run, resolve, reject };
      if (hasUniqueKey(run)) return this.#keyedStarts.add(start);
      this.#starts.push(start);
      this.#scheduleFlush();
    });
  }

  /** No turn waits for what is still to be written: it is tried once more, and then left to the next owners of the runs. */
  giveUp(): void {
    this.#hasGivenUp = true;
  }

  #scheduleFlush(): void {
    if (this.#isFlushScheduled || this.#flushesInFlight >= maxFlushesInFlight) return;
    const minQueued = this.#isLargeFlushInFlight ? 1 : minQueuedForSecondFlush;
    if (this.#flushesInFlight > 0 && this.#queue.size + this.#starts.length < minQueued) return;
    this.#isFlushScheduled = true;
    // Everything that is submitted in this same tick joins the flush.
    queueMicrotask(() => {
      this.#isFlushScheduled = false;
      // A flush is for many runs, and its receipts set them going again.
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
      for (const { transition } of entries) this.#runsInFlight.delete(transition.runId);
      if (this.#isFenced) this.#rejectQueue();
      else if (this.#queue.size > 0 || this.#starts.length > 0) this.#scheduleFlush();
    }
  }

  /** The oldest entries that fit. A run that moves in this flush must not be written to by another's message, and the other way round. */
  #takeTransitions(): QueuedTransition[] {
    const taken: QueuedTransition[] = [];
    const movingRuns = new Set<string>();
    const receivingRuns = new Set<string>();
    let bytes = 0;
    for (const [runId, entry] of this.#queue) {
      if (taken.length >= maxTransitions || bytes >= maxBytes) break;
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
      taken.push(entry);
      this.#queue.delete(runId);
    }
    return taken;
  }

  #takeStarts(): QueuedStart[] {
    return this.#starts.splice(0, countStartsThatFit(this.#starts));
  }

  async #write(entries: QueuedTransition[], starts: readonly QueuedStart[]): Promise<void> {
    const backoff = new Backoff(this.runtime);
    let isUncertain = false;
    while (entries.length > 0 || starts.length > 0) {
      const batch = this.#createBatch(entries, starts);
      let result: CommitResult & { readonly found?: true };
      try {
        const ownCommit = isUncertain ? await this.#findOwnCommit(batch) : null;
        result = ownCommit ?? (await this.#store.commit(batch));
      } catch (error) {
        if (this.#hasGivenUp) return this.#rejectAll(entries, starts);
        if (isTransient(error)) {
          // The answer was lost, perhaps after the commit: look before writing again.
          isUncertain = true;
          this.#options.onTransientError("commit", error);
          await backoff.wait();
          continue;
        }
        return this.#isolate(entries, starts, error);
      }
      if (result.kind === "fenced") return this.#onFenceLost(entries, starts);
      if (result.kind === "committed" && result.found && starts.length > 0) {
        // What became of the starts is asked again: those that were made are known by their ids.
        this.#acknowledge(entries, [], result);
        entries = [];
        continue;
      }
      if (result.kind === "committed") return this.#acknowledge(entries, starts, result);
      const { runId, hasUnreadMessages } = result;
      entries = removeRefused(entries, runId, ({ afterSeq }) =>
        hasUnreadMessages ? { kind: "unread" } : { kind: "evicted", error: new LogConflict(runId, afterSeq) },
      );
      isUncertain = false;
    }
  }

  #acknowledge(entries: readonly QueuedTransition[], starts: readonly QueuedStart[], committed: Committed): void {
    const { at, notParked, ownedWithMessages, refused } = committed;
    const defaultReceipt: Receipt = { kind: "committed", at, isStillOwned: false, hasMessages: false };
    for (const { transition, receiver, laterReceivers } of entries) {
      const isStillOwned = notParked.length > 0 && notParked.includes(transition.runId);
      const hasMessages = ownedWithMessages.length > 0 && ownedWithMessages.includes(transition.runId);
      const receipt = isStillOwned || hasMessages ? { ...defaultReceipt, isStillOwned, hasMessages } : defaultReceipt;
      this.#receipts.add(receiver, receipt);
      if (laterReceivers !== null)
        for (const laterReceiver of laterReceivers) this.#receipts.add(laterReceiver, receipt);
    }
    for (const { run, resolve } of starts) {
      const refusal = refused.length === 0 ? null : (refused.find(({ runId }) => runId === run.id) ?? null);
      this.#receipts.add(resolve, { at, refusal });
    }
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
   * After a lost answer: a batch is written whole or not at all, so one run of it tells, as long as the fence holds. A
   * batch of which nothing can be told is safe to repeat (starts are known by their id, cursors overwrite).
   */
  async #findOwnCommit(batch: Batch): Promise<(CommitResult & { readonly found?: true }) | null> {
    const probe =
      batch.transitions.find(({ events }) => events.length > 0) ??
      batch.transitions.find(({ next }) => next.kind !== "keep");
    if (probe === undefined) return null;
    const { isAlive } = await this.#store.heartbeat(this.#fence);
    if (!isAlive) return { kind: "fenced" };
    const at = probe.events.length > 0 ? await this.#readWrittenAt(probe) : await this.#readReleasedAt(probe);
    if (at === null) return null;
    this.#options.onUncertain();
    return { kind: "committed", at, notParked: [], ownedWithMessages: [], refused: [], found: true };
  }

  async #readWrittenAt({ runId, afterSeq }: Transition): Promise<number | null> {
    const [event] = await this.#store.log(runId, { after: afterSeq, limit: 1 });
    return event?.at ?? null;
  }

  /** Only its owner lets go of a run. (If mail kept it here, repeating the commit does no harm.) */
  async #readReleasedAt({ runId }: Transition): Promise<number | null> {
    const [task] = await this.#store.tasks([runId]);
    const { workerId, epoch } = this.#fence;
    return task?.owner === workerId && task.epoch === epoch ? null : this.#store.now();
  }

  /** One run's data cannot be written (too large for a packet, say): the others must not suffer for it. */
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

/** Adds in place: of a thousand steps that finish together, each would otherwise copy all before it. */
function coalesce(entry: QueuedTransition, second: Transition): void {
  if (entry.merged === null) entry.transition = entry.merged = toMutable(entry.transition);
  const first = entry.merged;
  for (const event of second.events) first.events.push(event);
  for (const id of second.drainedInboxIds) first.drainedInboxIds.push(id);
  for (const run of second.newChildren) first.newChildren.push(run);
  for (const message of second.messages) first.messages.push(message);
  for (const id of second.releasedChildIds) first.releasedChildIds.push(id);
  if (second.cursors.length > 0) first.cursors = mergeCursors(first.cursors, second.cursors);
  first.next = second.next;
}

function toMutable({
  runId,
  afterSeq,
  events,
  next,
  drainedInboxIds,
  newChildren,
  messages,
  releasedChildIds,
  cursors,
}: Transition): MutableTransition {
  return {
    runId,
    afterSeq,
    events: [...events],
    next,
    drainedInboxIds: [...drainedInboxIds],
    newChildren: [...newChildren],
    messages: [...messages],
    releasedChildIds: [...releasedChildIds],
    cursors: [...cursors],
  };
}

/** One write per node, the latest value of each column: the same row must not be written twice in a statement. */
function mergeCursors(first: Transition["cursors"], second: Transition["cursors"]): MutableTransition["cursors"] {
  const merged = new Map(first.map((write) => [write.node, write]));
  for (const write of second) merged.set(write.node, { ...merged.get(write.node), ...write });
  return [...merged.values()];
}

function deliverReceipt({ receiver, laterReceivers }: QueuedTransition, receipt: Receipt | null): void {
  receiver(receipt);
  if (laterReceivers !== null) for (const laterReceiver of laterReceivers) laterReceiver(receipt);
}

/** Tells the run why it was not written; the others are tried again without it. */
function removeRefused(
  entries: readonly QueuedTransition[],
  runId: string,
  receiptOf: (transition: Transition) => Receipt,
): QueuedTransition[] {
  for (const entry of entries) if (entry.transition.runId === runId) deliverReceipt(entry, receiptOf(entry.transition));
  return entries.filter((entry) => entry.transition.runId !== runId);
}

function estimateBytes(transition: Transition): number {
  let bytes = 100;
  for (const event of transition.events) bytes += 50 + (event.data?.length ?? 0);
  for (const run of transition.newChildren) bytes += 200 + run.input.length;
  for (const message of transition.messages) bytes += 50 + message.data.length;
  return bytes;
}
