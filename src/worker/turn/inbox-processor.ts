/**
 * Processes the messages and due times of a run while a worker owns it. The pure function `decide` turns them into
 * events, one decision at a time, and the events are committed before any code acts on them.
 */

import { withAncestryHashes } from "../../core/graph/ancestry-hash.js";
import { cancelUnawaitedChildren } from "../../core/run/cancel-children.js";
import type { ReceivedCommand } from "../../core/run/command.js";
import { decide } from "../../core/run/decide.js";
import { findExecutingStep } from "../../core/run/decide-operator.js";
import { dataOf, type NewEvent } from "../../core/run/event.js";
import { decodeMessage } from "../../core/run/message.js";
import { isDispatched, type Op } from "../../core/run/state.js";
import { nextDueAt } from "../../core/run/waiting.js";
import type { Timer } from "../../runtime/runtime.js";
import type { InboxRow } from "../../store/contract/store.js";
import { cancelChildrenOfFailedMaps } from "../children/children.js";
import { pauseIfJobIsMissing } from "../children/missing-job.js";
import type { InboxPort, WholeTurn } from "./ports.js";
import { readForTurn } from "./read.js";

export class InboxProcessor implements InboxPort {
  readonly #turn: WholeTurn;
  /** By key of a step that waits for its next attempt: the callback that starts the attempt. */
  #retries: Map<string, (op: Op | undefined) => void> | null = null;
  /**
   * The steps about which commands are in the inbox that are decided about when the attempt that is running has ended. The
   * commands stay there until then, so that the next owner has them if this worker dies.
   */
  #keysOfPostponed: ReadonlySet<string> = new Set();
  /** The steps that end with the decision that is being written. */
  #endingKeys: ReadonlySet<string> = noKeys;
  #isDeciding = false;
  /**
   * True from the end of an inbox check until the idle check of the turn has run. A check that is requested in between is
   * delayed: the run is parked only while no inbox check is under way, so consecutive checks would prevent parking.
   */
  #isAwaitingIdleCheck = false;
  /** How many inbox checks have ended. */
  #checkCount = 0;
  /** The check that follows the current one, if one was requested. */
  #nextCheck: { readonly ended: Promise<void>; readonly end: () => void } | null = null;
  /**
   * Whether a wait was committed during a check, perhaps too late for its decision, so that another check must follow.
   */
  #isCheckDue = false;
  #dueTimer: Timer | null = null;

  constructor(turn: WholeTurn) {
    this.#turn = turn;
  }

  get isBusy(): boolean {
    return this.#isDeciding;
  }

  /** Whether another check must run before the run is parked, because it may match a new wait with an earlier signal. */
  get isCheckDue(): boolean {
    return this.#isCheckDue;
  }

  scheduleRetry(key: string, startAttempt: (op: Op | undefined) => void): void {
    (this.#retries ??= new Map()).set(key, startAttempt);
    this.#turn.scheduleIdleCheck();
  }

  hasPostponed(key: string): boolean {
    return this.#keysOfPostponed.has(key);
  }

  /** Whether an operator has ended this step, which is not acknowledged yet, so that it must not begin any more. */
  isEnding(key: string): boolean {
    return this.#endingKeys.has(key);
  }

  onAttemptRecorded(key: string): void {
    if (this.hasPostponed(key)) void this.check();
  }

  stop(): void {
    if (this.#dueTimer !== null) this.#turn.host.runtime.clearTimeout(this.#dueTimer);
  }

  /** Processes the inbox and the due times. Resolves when all messages that are in the inbox now have been processed. */
  check(): Promise<void> {
    return this.#isAwaitingIdleCheck ? this.#checkNext() : this.checkNow();
  }

  /** Like `check`, but does not wait for the idle check of the turn; used where the turn itself waits for the result. */
  checkNow(): Promise<void> {
    if (this.#isDeciding) return this.#checkNext();
    return this.#runExclusively(async () => {
      const { host, runId } = this.#turn;
      const inbox = await readForTurn(this.#turn, () => host.readInbox(runId));
      const now = await readForTurn(this.#turn, () => host.store.now());
      await this.#decideAndCommit(inbox, now);
    });
  }

  /** Requests one more check after the current one; all requests until then share that check. */
  #checkNext(): Promise<void> {
    if (this.#nextCheck === null) {
      let resolveEnded = () => {};
      const ended = new Promise<void>((resolve) => {
        resolveEnded = resolve;
      });
      this.#nextCheck = { ended, end: resolveEnded };
    }
    return this.#nextCheck.ended;
  }

  /** Processes inbox rows that the caller has already read. */
  process(inbox: readonly InboxRow[], now: number): Promise<void> {
    if (this.#isDeciding) this.#isCheckDue = true;
    return this.#runExclusively(() => this.#decideAndCommit(inbox, now));
  }

  /** No message is processed until `work` has ended. */
  async holdWhile<T>(work: () => Promise<T>): Promise<T> {
    this.#isDeciding = true;
    try {
      return await work();
    } finally {
      this.#endExclusive();
    }
  }

  /** Runs one check at a time, from the read to the commit; otherwise two decisions could process the same inbox rows. */
  async #runExclusively(work: () => Promise<void>): Promise<void> {
    const turn = this.#turn;
    if (turn.isOver) return;
    if (this.#isDeciding) return void this.#checkNext();
    this.#isDeciding = true;
    this.#isCheckDue = false;
    try {
      await work();
    } catch (error) {
      if (!turn.isOver) turn.log.error(`Run ${turn.runId}: failed to process its inbox.`, error);
    } finally {
      this.#endExclusive();
    }
  }

  #endExclusive(): void {
    const turn = this.#turn;
    this.#isDeciding = false;
    turn.scheduleIdleCheck();
    this.#isAwaitingIdleCheck = true;
    const checkNumber = ++this.#checkCount;
    // Immediates run in order, so the idle check scheduled above runs first. Only the latest check may start the next one.
    turn.host.runtime.setImmediate(() => void (checkNumber === this.#checkCount && this.#afterIdleCheck()));
  }

  async #afterIdleCheck(): Promise<void> {
    this.#isAwaitingIdleCheck = false;
    const nextCheck = this.#nextCheck;
    if (nextCheck === null) return;
    this.#nextCheck = null;
    await this.checkNow();
    nextCheck.end();
  }

  async #decideAndCommit(allRows: readonly InboxRow[], now: number): Promise<void> {
    const turn = this.#turn;
    const rows = limitInboxBytes(allRows);
    // The other rows stay in the inbox for the next check.
    if (rows.length < allRows.length) void this.#checkNext();
    // A child may end before the commit that created it is acknowledged. Until then, the state does not contain the call.
    // A step may end before a command about it is processed. Until its result is acknowledged, the state does not contain it.
    if (rows.some(({ kind }) => isFromChild(kind) || isAboutStep(kind))) await turn.writer.waitForSubmitted();
    if (turn.isOver) return;
    const inbox = this.#withoutPostponed(rows);
    if (inbox.length > 0) turn.parkDelay.expectMessages();
    for (const row of inbox) turn.pendingWrites.drainedInboxIds.push(row.id);
    const receivedMessages = inbox.flatMap(({ commands }) => commands);
    let receivedCommands: readonly ReceivedCommand[] = receivedMessages;
    for (let isFirstPass = true; ; isFirstPass = false) {
      // Events name signals by their numbers. While a transactional step has exclusive use of the log, the next number is
      // not known.
      while (turn.writer.exclusiveLock !== null) await turn.writer.exclusiveLock;
      if (turn.isOver) return;
      const { state, writer, withdrawnKeys } = turn;
      const hasAttempt = (key: string) => turn.attempts.has(key);
      const decidedEvents = decide(state, receivedCommands, now, writer.nextSeq, withdrawnKeys, hasAttempt);
      const events =
        turn.definition.declared === null
          ? decidedEvents
          : withAncestryHashes(decidedEvents, turn.state, turn.parentsOf);
      if (events.length === 0 && !(isFirstPass && inbox.length > 0)) break;
      const failedEvent = events.find((event) => event.type === "run.failed");
      if (failedEvent !== undefined) return turn.onRunTimeout(events, dataOf(failedEvent, "run.failed").error);
      cancelChildrenOfFailedMaps(turn, events);
      for (const message of cancelUnawaitedChildren(turn.runId, turn.state, events))
        turn.pendingWrites.messages.push(message);
      if (!(await this.#writeDecision(events))) return;
      // The loop decides again, because the code may have started a wait that matches a signal recorded by this commit.
      receivedCommands = [];
    }
    for (const { command } of receivedMessages)
      if (command.type === "jobGone") await pauseIfJobIsMissing(turn, command.job);
    this.#startDueRetries(now);
    if (turn.phase.hasCalledCode) this.scheduleDueTimer();
    if (turn.isDraining) turn.drain();
  }

  async #writeDecision(events: NewEvent[]): Promise<boolean> {
    this.#endingKeys = keysOfEnds(events);
    try {
      return await this.#turn.writer.submitDecision(events);
    } finally {
      this.#endingKeys = noKeys;
    }
  }

  /** Decodes the rows, without those that wait for the end of an attempt. The end of the run waits for no attempt. */
  #withoutPostponed(
    rows: readonly InboxRow[],
  ): { readonly id: number; readonly commands: readonly ReceivedCommand[] }[] {
    const { state, phase, attempts } = this.#turn;
    const keys = new Set<string>();
    const inbox = rows.flatMap((row) => {
      const commands = this.#decodeRow(row);
      const [received] = commands;
      const executingKey =
        received === undefined || phase.current.kind === "finishing"
          ? null
          : findExecutingStep(state, received.command, (key) => attempts.isExecuting(key));
      if (executingKey === null) return [{ id: row.id, commands }];
      keys.add(executingKey);
      return [];
    });
    this.#keysOfPostponed = keys;
    return inbox;
  }

  /**
   * A message that cannot be decoded is dropped, because it would wake the run again and again if it stayed in the
   * inbox.
   */
  #decodeRow(row: InboxRow): ReceivedCommand[] {
    try {
      const command = decodeMessage(row);
      return command === null ? [] : [{ command, at: row.at, strict: false }];
    } catch (error) {
      const { host, runId } = this.#turn;
      host.log.error(`Run ${runId}: a message of kind "${row.kind}" cannot be read and is dropped.`, error);
      return [];
    }
  }

  #startDueRetries(now: number): void {
    const retries = this.#retries;
    if (retries === null) return;
    const attemptStarts: (() => void)[] = [];
    for (const [key, startAttempt] of retries) {
      if (!this.#turn.phase.mayStart(key)) continue;
      const op = this.#turn.state.ops.get(key);
      // The step is scheduled, but its event is not committed yet.
      if (op === undefined) continue;
      // A separate run executes the node. The callback stays registered, because that run may have to be started again.
      if (isDispatched(op)) continue;
      const waitingStep = op.kind === "step" && op.phase === "awaiting_attempt" ? op : null;
      if (waitingStep !== null && (waitingStep.pauseCause !== null || (waitingStep.dueAt ?? 0) > now)) continue;
      retries.delete(key);
      // If an operator has skipped or completed the step, no attempt starts; the step's result is delivered as usual.
      if (waitingStep !== null) attemptStarts.push(() => startAttempt(waitingStep));
    }
    // The attempts start after the loop, because a step that has to wait again adds itself to `retries`.
    for (const startAttempt of attemptStarts) startAttempt();
  }

  /** Sets a timer for the next due time. A run whose code is running is not parked, so the store does not wake it. */
  scheduleDueTimer(): void {
    this.stop();
    this.#dueTimer = null;
    const turn = this.#turn;
    const now = turn.storeNow();
    const due = nextDueAt(turn.state, (key) => turn.results.pending.has(key) && !this.#isBegun(key));
    // The deadline is not in the state until the start of the run is committed, so it is estimated from the current time.
    const { timeoutMs } = turn.definition;
    const deadline = turn.state.startedAt === null && timeoutMs !== null ? now + timeoutMs : null;
    if (due === null && deadline === null) return;
    const at = Math.min(due ?? Number.POSITIVE_INFINITY, deadline ?? Number.POSITIVE_INFINITY);
    this.#dueTimer = turn.host.runtime.setTimeout(() => void this.#onDueTimer(), Math.max(0, at - now) + 1);
    this.#dueTimer.unref();
  }

  /**
   * Whether a step's next attempt runs or waits for a slot, although its start is not in the log yet. Its due time has passed; a
   * timer for it would fire again and again, and read the inbox each time.
   */
  #isBegun(key: string): boolean {
    const op = this.#turn.state.ops.get(key);
    return op?.kind === "step" && op.phase === "awaiting_attempt" && this.#retries?.has(key) !== true;
  }

  async #onDueTimer(): Promise<void> {
    const turn = this.#turn;
    if (turn.state.startedAt === null && !(await turn.submit([]))) return;
    await this.check();
    if (!turn.isOver) this.scheduleDueTimer();
  }
}

/** The events for all messages of one check are written in one commit, whose size databases limit (MariaDB: 16 MB). */
const maxInboxBytes = 4 * 1024 * 1024;

/** Returns the first messages up to the limit, at least one. */
function limitInboxBytes(inbox: readonly InboxRow[]): readonly InboxRow[] {
  let bytes = 0;
  for (const [index, { data }] of inbox.entries()) {
    bytes += data.length;
    if (bytes > maxInboxBytes && index > 0) return inbox.slice(0, index);
  }
  return inbox;
}

const noKeys: ReadonlySet<string> = new Set();

function keysOfEnds(events: readonly NewEvent[]): ReadonlySet<string> {
  const ends = events.filter(({ type }) => type === "step.skipped" || type === "step.completed");
  return ends.length === 0 ? noKeys : new Set(ends.map(({ node }) => node as string));
}

const isAboutStep = (kind: string) => kind === "skip" || kind === "resume";
const isFromChild = (kind: string) => kind === "child" || kind === "children" || kind === "nodes";
