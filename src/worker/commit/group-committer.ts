/**
 * Group commit: what a worker's runs have to write goes to the store in one transaction for many runs.
 *
 * While a flush is under way, what is submitted is gathered, and written by the next one. There is no timer: an idle
 * worker commits at once, a busy one in batches, and a very busy one has a second batch under way beside the first.
 */

import { Backoff } from "../../concurrency/backoff.js";
import { Batcher, howManyFit } from "../../concurrency/batcher.js";
import { isTransient } from "../../concurrency/retry-until-reachable.js";
import { FencedError } from "../../core/errors/errors.js";
import { isKeyed } from "../../core/naming/start-key.js";
import { gatherMail } from "../../core/run/message.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { Batch, CommitResult, Fence, NewRun, Refusal, Store, Transition } from "../../store/contract/store.js";
import { inCleanContext } from "../../telemetry/async-context.js";
import { AckScheduler } from "./ack-scheduler.js";
import { LogConflict } from "./log-conflict.js";

export type Receipt =
  /** `mailed`: it stays here, and messages wait in its inbox. */
  | { readonly kind: "committed"; readonly at: number; readonly kept: boolean; readonly mailed: boolean }
  /** It was to end, but has messages that were acknowledged before: nothing of it was written. */
  | { readonly kind: "unread" }
  /** Another process has written to this run, or it cannot be written at all: its turn must let go of it. */
  | { readonly kind: "evicted"; readonly error: unknown };

/** What is known of the fate of a start. */
export type StartReceipt = { readonly at: number; readonly refusal: Refusal | null };

/** Is told what became of a transition; null when the fence is gone and nothing of this worker counts any more. */
export type Receiver = (receipt: Receipt | null) => void;

interface Entry {
  transition: Transition;
  /** The same, once it is ours to add to. */
  gathered: Gathered | null;
  readonly receiver: Receiver;
  /** Of what was added since. */
  others: Receiver[] | null;
}

type Gathered = {
  -readonly [Key in keyof Transition]: Transition[Key] extends readonly (infer Item)[] ? Item[] : Transition[Key];
};

interface Start {
  readonly run: NewRun;
  readonly resolve: (receipt: StartReceipt) => void;
  readonly reject: (error: unknown) => void;
}

type Committed = Extract<CommitResult, { kind: "committed" }>;

/**
 * A second flush sets out while one is under way only if it is worth its while: then the one is assembled and executed
 * while the other waits for the disk.
 */
const mostInFlight = 2;
const worthAnother = 128;
/** A flush that makes this many runs takes long: the others' steps do not wait for it. */
const many = 100;

/** Above this a flush takes longer without getting more done per second. */
const maxTransitions = 250;
const maxBytes = 4 * 1024 * 1024;
/** Each has a connection of the store to itself while it waits for a caller's open transaction. */
const mostKeyedCommits = 2;

export interface GroupCommitterOptions {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly fence: Fence;
  /** Called once, when the store says that this fence is gone. */
  readonly onFenced: () => void;
  readonly onTrouble: (what: string, error: unknown) => void;
  /** A commit was found in the log after its answer was lost: it is not known which runs it left with this worker. */
  readonly onUncertain: () => void;
}

export class GroupCommitter {
  readonly runtime: Runtime;
  readonly #store: Store;
  readonly #fence: Fence;
  readonly #options: GroupCommitterOptions;
  readonly #receipts: AckScheduler;
  #queue = new Map<string, Entry>();
  #starts: Start[] = [];
  /** Apart from everything else, for they may have to wait. */
  readonly #keyedStarts: Batcher<Start>;
  /** Runs in flushes that are under way: what else they have to write must come after. */
  readonly #writing = new Set<string>();
  #inFlight = 0;
  #makesMany = false;
  #givenUp = false;
  #kicked = false;
  #fenced = false;

  constructor(options: GroupCommitterOptions) {
    this.#options = options;
    this.runtime = options.runtime;
    this.#receipts = new AckScheduler(options.runtime);
    this.#store = options.store;
    this.#fence = options.fence;
    const write = (starts: readonly Start[]) => inCleanContext(() => this.#write([], starts));
    this.#keyedStarts = new Batcher({ write, fits: startsThatFit, mostAtOnce: mostKeyedCommits });
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
    if (this.#fenced) return receiver(null);
    const entry = this.#queue.get(transition.runId);
    if (entry === undefined) {
      this.#queue.set(transition.runId, { transition, gathered: null, receiver, others: null });
    } else {
      coalesce(entry, transition);
      if (entry.others === null) entry.others = [receiver];
      else entry.others.push(receiver);
    }
    this.#kick();
  }

  /** Makes a run that this worker owns from birth. */
  start(run: NewRun): Promise<StartReceipt> {
    return new Promise((resolve, reject) => {
      if (this.#fenced) return reject(this.#fencedError());
      const start = { run, resolve, reject };
      if (isKeyed(run)) return this.#keyedStarts.add(start);
      this.#starts.push(start);
      this.#kick();
    });
  }

  /** No turn waits for what is still to be written: it is tried once more, and then left to the next owners of the runs. */
  giveUp(): void {
    this.#givenUp = true;
  }

  #kick(): void {
    if (this.#kicked || this.#inFlight >= mostInFlight) return;
    const enough = this.#makesMany ? 1 : worthAnother;
    if (this.#inFlight > 0 && this.#queue.size + this.#starts.length < enough) return;
    this.#kicked = true;
    // Everything that is submitted in this same tick joins the flush.
    queueMicrotask(() => {
      this.#kicked = false;
      // A flush is for many runs, and its receipts set them going again.
      void inCleanContext(() => this.#flush());
    });
  }

  async #flush(): Promise<void> {
    if (this.#fenced) return;
    const entries = this.#take();
    const starts = this.#takeStarts();
    if (entries.length + starts.length === 0) return;
    this.#inFlight += 1;
    for (const { transition } of entries) this.#writing.add(transition.runId);
    const makesMany = entries.some(({ transition }) => transition.starts.length >= many);
    if (makesMany) this.#makesMany = true;
    try {
      await this.#write(entries, starts);
    } finally {
      this.#inFlight -= 1;
      if (makesMany) this.#makesMany = false;
      for (const { transition } of entries) this.#writing.delete(transition.runId);
      if (this.#fenced) this.#rejectQueue();
      else if (this.#queue.size > 0 || this.#starts.length > 0) this.#kick();
    }
  }

  /** The oldest entries that fit. A run that moves in this flush must not be written to by another's message, and the other way round. */
  #take(): Entry[] {
    const taken: Entry[] = [];
    const moved = new Set<string>();
    const addressed = new Set<string>();
    let bytes = 0;
    for (const [runId, entry] of this.#queue) {
      if (taken.length >= maxTransitions || bytes >= maxBytes) break;
      if (this.#writing.has(runId)) continue;
      const { transition } = entry;
      const moves = transition.next.kind !== "keep" || transition.drained.length > 0;
      if (moves && addressed.has(runId)) continue;
      if (transition.mail.some((mail) => moved.has(mail.to)) || transition.release.some((id) => moved.has(id)))
        continue;
      if (moves) moved.add(runId);
      for (const mail of transition.mail) addressed.add(mail.to);
      for (const id of transition.release) addressed.add(id);
      bytes += sizeOf(transition);
      taken.push(entry);
      this.#queue.delete(runId);
    }
    return taken;
  }

  #takeStarts(): Start[] {
    return this.#starts.splice(0, startsThatFit(this.#starts));
  }

  async #write(entries: Entry[], starts: readonly Start[]): Promise<void> {
    const backoff = new Backoff(this.runtime);
    let uncertain = false;
    while (entries.length > 0 || starts.length > 0) {
      const batch = this.#batch(entries, starts);
      let result: CommitResult & { readonly found?: true };
      try {
        const known = uncertain ? await this.#findOwnCommit(batch) : null;
        result = known ?? (await this.#store.commit(batch));
      } catch (error) {
        if (this.#givenUp) return this.#rejectAll(entries, starts);
        if (isTransient(error)) {
          // The answer was lost, perhaps after the commit: look before writing again.
          uncertain = true;
          this.#options.onTrouble("commit", error);
          await backoff.wait();
          continue;
        }
        return this.#isolate(entries, starts, error);
      }
      if (result.kind === "fenced") return this.#lose(entries, starts);
      if (result.kind === "committed" && result.found && starts.length > 0) {
        // What became of the starts is asked again: those that were made are known by their ids.
        this.#acknowledge(entries, [], result);
        entries = [];
        continue;
      }
      if (result.kind === "committed") return this.#acknowledge(entries, starts, result);
      const { runId, unread } = result;
      entries = leaveOut(entries, runId, ({ after }) =>
        unread ? { kind: "unread" } : { kind: "evicted", error: new LogConflict(runId, after) },
      );
      uncertain = false;
    }
  }

  #acknowledge(entries: readonly Entry[], starts: readonly Start[], committed: Committed): void {
    const { at, kept, mailed, refused } = committed;
    const usual: Receipt = { kind: "committed", at, kept: false, mailed: false };
    for (const { transition, receiver, others } of entries) {
      const isKept = kept.length > 0 && kept.includes(transition.runId);
      const isMailed = mailed.length > 0 && mailed.includes(transition.runId);
      const receipt = isKept || isMailed ? { ...usual, kept: isKept, mailed: isMailed } : usual;
      this.#receipts.add(receiver, receipt);
      if (others !== null) for (const other of others) this.#receipts.add(other, receipt);
    }
    for (const { run, resolve } of starts) {
      const refusal = refused.length === 0 ? null : (refused.find(({ runId }) => runId === run.id) ?? null);
      this.#receipts.add(resolve, { at, refusal });
    }
    this.#receipts.handOut(this.#queue.size > 0 || this.#starts.length > 0);
  }

  #batch(entries: readonly Entry[], starts: readonly Start[]): Batch {
    return {
      fence: this.#fence,
      transitions: gatherMail(entries.map((entry) => entry.transition)),
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
    const { alive } = await this.#store.beat(this.#fence);
    if (!alive) return { kind: "fenced" };
    const at = probe.events.length > 0 ? await this.#writtenAt(probe) : await this.#letGoAt(probe);
    if (at === null) return null;
    this.#options.onUncertain();
    return { kind: "committed", at, kept: [], mailed: [], refused: [], found: true };
  }

  async #writtenAt({ runId, after }: Transition): Promise<number | null> {
    const [event] = await this.#store.log(runId, { after, limit: 1 });
    return event?.at ?? null;
  }

  /** Only its owner lets go of a run. (If mail kept it here, repeating the commit does no harm.) */
  async #letGoAt({ runId }: Transition): Promise<number | null> {
    const [task] = await this.#store.tasks([runId]);
    const { workerId, epoch } = this.#fence;
    return task?.owner === workerId && task.epoch === epoch ? null : this.#store.now();
  }

  /** One run's data cannot be written (too large for a packet, say): the others must not suffer for it. */
  async #isolate(entries: Entry[], starts: readonly Start[], error: unknown): Promise<void> {
    if (entries.length + starts.length === 1) {
      for (const entry of entries) tell(entry, { kind: "evicted", error });
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

  #lose(entries: readonly Entry[], starts: readonly Start[]): void {
    this.#fenced = true;
    this.#rejectAll(entries, starts);
    this.#options.onFenced();
  }

  #rejectQueue(): void {
    const entries = [...this.#queue.values()];
    this.#queue = new Map();
    this.#rejectAll(entries, this.#starts.splice(0));
  }

  #rejectAll(entries: readonly Entry[], starts: readonly Start[]): void {
    const error = this.#fencedError();
    for (const entry of entries) tell(entry, null);
    for (const start of starts) start.reject(error);
  }

  #fencedError(): FencedError {
    return new FencedError(this.#fence.workerId, this.#fence.epoch);
  }
}

const startsThatFit = (starts: readonly Start[]) =>
  howManyFit(starts, ({ run }) => 200 + run.input.length, { count: maxTransitions, bytes: maxBytes });

/** Adds in place: of a thousand steps that finish together, each would otherwise copy all before it. */
function coalesce(entry: Entry, second: Transition): void {
  if (entry.gathered === null) entry.transition = entry.gathered = ownCopy(entry.transition);
  const first = entry.gathered;
  for (const event of second.events) first.events.push(event);
  for (const id of second.drained) first.drained.push(id);
  for (const run of second.starts) first.starts.push(run);
  for (const mail of second.mail) first.mail.push(mail);
  for (const id of second.release) first.release.push(id);
  if (second.cursors.length > 0) first.cursors = mergeCursors(first.cursors, second.cursors);
  first.next = second.next;
}

function ownCopy({ runId, after, events, next, drained, starts, mail, release, cursors }: Transition): Gathered {
  return {
    runId,
    after,
    events: [...events],
    next,
    drained: [...drained],
    starts: [...starts],
    mail: [...mail],
    release: [...release],
    cursors: [...cursors],
  };
}

/** One write per node, the latest value of each column: the same row must not be written twice in a statement. */
function mergeCursors(first: Transition["cursors"], second: Transition["cursors"]): Gathered["cursors"] {
  const merged = new Map(first.map((write) => [write.node, write]));
  for (const write of second) merged.set(write.node, { ...merged.get(write.node), ...write });
  return [...merged.values()];
}

function tell({ receiver, others }: Entry, receipt: Receipt | null): void {
  receiver(receipt);
  if (others !== null) for (const other of others) other(receipt);
}

/** Tells the run why it was not written; the others are tried again without it. */
function leaveOut(entries: readonly Entry[], runId: string, receiptOf: (transition: Transition) => Receipt): Entry[] {
  for (const entry of entries) if (entry.transition.runId === runId) tell(entry, receiptOf(entry.transition));
  return entries.filter((entry) => entry.transition.runId !== runId);
}

function sizeOf(transition: Transition): number {
  let bytes = 100;
  for (const event of transition.events) bytes += 50 + (event.data?.length ?? 0);
  for (const run of transition.starts) bytes += 200 + run.input.length;
  for (const mail of transition.mail) bytes += 50 + mail.data.length;
  return bytes;
}
