/**
 * What comes to a run from outside while a worker has it: messages, and time. Everything is decided by the pure
 * `decide`, and committed before any code acts on it; one decision at a time.
 */

import { withAncestryHashes } from "../../core/graph/ancestry-hash.js";
import { cancelUnawaitedChildren } from "../../core/run/cancel-children.js";
import type { ReceivedCommand } from "../../core/run/command.js";
import { decide } from "../../core/run/decide.js";
import { dataOf } from "../../core/run/event.js";
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
  /** Steps that wait for their next attempt, and how to begin it. */
  #retries: Map<string, (op: Op | undefined) => void> | null = null;
  #deciding = false;
  /**
   * Set when a look has ended, until the idle check of the turn has run. A hint that comes in between waits for that: the run is
   * parked only while no look is under way, so looks that follow each other without a gap would keep it from being parked for ever.
   */
  #mustTurnAct = false;
  /** How many looks have ended. */
  #checkCount = 0;
  /** The look after the one that is under way, if there has to be one. */
  #nextCheck: { readonly ended: Promise<void>; readonly end: () => void } | null = null;
  /** A wait was written during a look, perhaps after its decision: the next look is the one that counts. */
  #isCheckDue = false;
  #dueTimer: Timer | null = null;

  constructor(turn: WholeTurn) {
    this.#turn = turn;
  }

  get isBusy(): boolean {
    return this.#deciding;
  }

  /** It may find that what the run would be parked for is there: a signal that came before the wait for it. */
  get isCheckDue(): boolean {
    return this.#isCheckDue;
  }

  scheduleRetry(key: string, begin: (op: Op | undefined) => void): void {
    (this.#retries ??= new Map()).set(key, begin);
    this.#turn.scheduleIdleCheck();
  }

  stop(): void {
    if (this.#dueTimer !== null) this.#turn.host.runtime.clearTimeout(this.#dueTimer);
  }

  /**
   * A message may have arrived in the inbox, or time passed: look. Comes back when everything that is there now has been
   * decided about.
   */
  check(): Promise<void> {
    return this.#mustTurnAct ? this.#checkNext() : this.checkNow();
  }

  /** The same, before the turn acts on a look that has just ended: for what the turn itself cannot go on without. */
  checkNow(): Promise<void> {
    if (this.#deciding) return this.#checkNext();
    return this.#runExclusively(async () => {
      const { host, runId } = this.#turn;
      const inbox = await readForTurn(this.#turn, () => host.readInbox(runId));
      const now = await readForTurn(this.#turn, () => host.store.now());
      await this.#decideAndCommit(inbox, now);
    });
  }

  #checkNext(): Promise<void> {
    if (this.#nextCheck === null) {
      let end = () => {};
      const ended = new Promise<void>((resolve) => {
        end = resolve;
      });
      this.#nextCheck = { ended, end };
    }
    return this.#nextCheck.ended;
  }

  /** Decides about an inbox that was read already, with the claim. */
  process(inbox: readonly InboxRow[], now: number): Promise<void> {
    if (this.#deciding) this.#isCheckDue = true;
    return this.#runExclusively(() => this.#decideAndCommit(inbox, now));
  }

  /** From reading to commit: an inbox that was read while another decision about it was on its way would count twice. */
  async #runExclusively(work: () => Promise<void>): Promise<void> {
    const turn = this.#turn;
    if (turn.isOver) return;
    if (this.#deciding) return void this.#checkNext();
    this.#deciding = true;
    this.#isCheckDue = false;
    try {
      await work();
    } catch (error) {
      if (!turn.isOver) turn.log.error(`Run ${turn.runId}: its messages could not be dealt with.`, error);
    } finally {
      this.#deciding = false;
      turn.scheduleIdleCheck();
      this.#mustTurnAct = true;
      const look = ++this.#checkCount;
      // Immediates run in their order, so the turn comes first. Only the last look is followed by another.
      turn.host.runtime.setImmediate(() => void (look === this.#checkCount && this.#afterTurn()));
    }
  }

  async #afterTurn(): Promise<void> {
    this.#mustTurnAct = false;
    const next = this.#nextCheck;
    if (next === null) return;
    this.#nextCheck = null;
    await this.checkNow();
    next.end();
  }

  async #decideAndCommit(all: readonly InboxRow[], now: number): Promise<void> {
    const turn = this.#turn;
    const inbox = limitInboxBytes(all);
    // The rest stays in the inbox for the next time.
    if (inbox.length < all.length) void this.#checkNext();
    // A child may have ended before its parent has heard that it was born: then the state knows no call for its message.
    if (inbox.some(({ kind }) => isFromChild(kind))) await turn.writer.waitForSubmitted();
    if (turn.isOver) return;
    if (inbox.length > 0) turn.parkDelay.expectMessages();
    for (const row of inbox) turn.pendingWrites.drainedInboxIds.push(row.id);
    const receivedMessages = inbox.flatMap((row) => this.#receive(row));
    let received: readonly ReceivedCommand[] = receivedMessages;
    for (let first = true; ; first = false) {
      const decided = decide(turn.state, received, now, turn.writer.nextSeq, turn.withdrawnKeys);
      const events =
        turn.definition.declared === null ? decided : withAncestryHashes(decided, turn.state, turn.parentsOf);
      if (events.length === 0 && !(first && inbox.length > 0)) break;
      const failed = events.find((one) => one.type === "run.failed");
      if (failed !== undefined) return turn.onRunTimeout(events, dataOf(failed, "run.failed").error);
      cancelChildrenOfFailedMaps(turn, events);
      for (const message of cancelUnawaitedChildren(turn.runId, turn.state, events))
        turn.pendingWrites.messages.push(message);
      if (!(await turn.writer.submitDecision(events))) return;
      // Again: a wait that the code began meanwhile may be for a signal that came just now.
      received = [];
    }
    for (const { command } of receivedMessages)
      if (command.type === "jobGone") await pauseIfJobIsMissing(turn, command.job);
    this.#beginDueRetries(now);
    if (turn.phase.hasCalledCode) this.scheduleDueTimer();
    if (turn.isDraining) turn.drain();
  }

  /** A message that cannot be read is put aside: left in the inbox it would bring the run round in circles. */
  #receive(row: InboxRow): ReceivedCommand[] {
    try {
      const command = decodeMessage(row);
      return command === null ? [] : [{ command, at: row.at, strict: false }];
    } catch (error) {
      const { host, runId } = this.#turn;
      host.log.error(`Run ${runId}: a message of kind "${row.kind}" cannot be read and is dropped.`, error);
      return [];
    }
  }

  #beginDueRetries(now: number): void {
    const retries = this.#retries;
    if (retries === null) return;
    const due: (() => void)[] = [];
    for (const [key, begin] of retries) {
      if (!this.#turn.phase.mayStart(key)) continue;
      const op = this.#turn.state.ops.get(key);
      // It is planned, but the log does not know yet.
      if (op === undefined) continue;
      // Another run executes it, and may have to do so again.
      if (isDispatched(op)) continue;
      const again = op.kind === "step" && op.phase === "awaiting_attempt" ? op : null;
      if (again !== null && (again.pauseCause !== null || (again.dueAt ?? 0) > now)) continue;
      retries.delete(key);
      // Skipped or answered from outside meanwhile: the answer is delivered like any other.
      if (again !== null) due.push(() => begin(again));
    }
    // Not before all were looked at: a step that begins may have to wait again.
    for (const begin of due) begin();
  }

  /** While code runs on, the run is not parked: its timers are ours to watch. */
  scheduleDueTimer(): void {
    this.stop();
    this.#dueTimer = null;
    const turn = this.#turn;
    const now = turn.storeNow();
    const due = nextDueAt(turn.state, (key) => turn.results.pending.has(key));
    // Until its start is in the log, the deadline counts from now.
    const { timeoutMs } = turn.definition;
    const deadline = turn.state.startedAt === null && timeoutMs !== null ? now + timeoutMs : null;
    if (due === null && deadline === null) return;
    const at = Math.min(due ?? Number.POSITIVE_INFINITY, deadline ?? Number.POSITIVE_INFINITY);
    this.#dueTimer = turn.host.runtime.setTimeout(() => void this.#onDueTimer(), Math.max(0, at - now) + 1);
    this.#dueTimer.unref();
  }

  async #onDueTimer(): Promise<void> {
    const turn = this.#turn;
    if (turn.state.startedAt === null && !(await turn.submit([]))) return;
    await this.check();
    if (!turn.isOver) this.scheduleDueTimer();
  }
}

/** What is decided at once is written at once, and databases limit how much that can be (MariaDB: 16 MB). */
const maxInboxBytes = 4 * 1024 * 1024;

function limitInboxBytes(inbox: readonly InboxRow[]): readonly InboxRow[] {
  let bytes = 0;
  for (const [index, { data }] of inbox.entries()) {
    bytes += data.length;
    if (bytes > maxInboxBytes && index > 0) return inbox.slice(0, index);
  }
  return inbox;
}

const isFromChild = (kind: string) => kind === "child" || kind === "children" || kind === "nodes";
