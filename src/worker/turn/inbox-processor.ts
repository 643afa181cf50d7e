/**
 * What comes to a run from outside while a worker has it: messages, and time. Everything is decided by the pure
 * `decide`, and committed before any code acts on it; one decision at a time.
 */

import { withHashes } from "../../core/graph/ancestry-hash.js";
import { dismissedBy } from "../../core/run/cancel-children.js";
import type { Received } from "../../core/run/command.js";
import { decide } from "../../core/run/decide.js";
import { dataOf } from "../../core/run/event.js";
import { readMail } from "../../core/run/message.js";
import { isDispatched, type Op } from "../../core/run/state.js";
import { nextDueAt } from "../../core/run/waiting.js";
import type { Timer } from "../../runtime/runtime.js";
import type { InboxRow } from "../../store/contract/store.js";
import { dismissFailedMaps } from "../children/children.js";
import { holdIfGone } from "../children/missing-job.js";
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
  #looks = 0;
  /** The look after the one that is under way, if there has to be one. */
  #nextLook: { readonly ended: Promise<void>; readonly end: () => void } | null = null;
  /** A wait was written during a look, perhaps after its decision: the next look is the one that counts. */
  #lookIsDue = false;
  #alarm: Timer | null = null;

  constructor(turn: WholeTurn) {
    this.#turn = turn;
  }

  get busy(): boolean {
    return this.#deciding;
  }

  /** It may find that what the run would be parked for is there: a signal that came before the wait for it. */
  get lookIsDue(): boolean {
    return this.#lookIsDue;
  }

  retryLater(key: string, begin: (op: Op | undefined) => void): void {
    (this.#retries ??= new Map()).set(key, begin);
    this.#turn.scheduleIdleCheck();
  }

  stop(): void {
    if (this.#alarm !== null) this.#turn.host.runtime.clearTimeout(this.#alarm);
  }

  /**
   * A message may have arrived in the inbox, or time passed: look. Comes back when everything that is there now has been
   * decided about.
   */
  poke(): Promise<void> {
    return this.#mustTurnAct ? this.#lookNext() : this.lookNow();
  }

  /** The same, before the turn acts on a look that has just ended: for what the turn itself cannot go on without. */
  lookNow(): Promise<void> {
    if (this.#deciding) return this.#lookNext();
    return this.#oneAtATime(async () => {
      const { host, runId } = this.#turn;
      const inbox = await readForTurn(this.#turn, () => host.readInbox(runId));
      const now = await readForTurn(this.#turn, () => host.store.now());
      await this.#decideAndCommit(inbox, now);
    });
  }

  #lookNext(): Promise<void> {
    if (this.#nextLook === null) {
      let end = () => {};
      const ended = new Promise<void>((resolve) => {
        end = resolve;
      });
      this.#nextLook = { ended, end };
    }
    return this.#nextLook.ended;
  }

  /** Decides about an inbox that was read already, with the claim. */
  pump(inbox: readonly InboxRow[], now: number): Promise<void> {
    if (this.#deciding) this.#lookIsDue = true;
    return this.#oneAtATime(() => this.#decideAndCommit(inbox, now));
  }

  /** From reading to commit: an inbox that was read while another decision about it was on its way would count twice. */
  async #oneAtATime(work: () => Promise<void>): Promise<void> {
    const turn = this.#turn;
    if (turn.over) return;
    if (this.#deciding) return void this.#lookNext();
    this.#deciding = true;
    this.#lookIsDue = false;
    try {
      await work();
    } catch (error) {
      if (!turn.over) turn.log.error(`Run ${turn.runId}: its messages could not be dealt with.`, error);
    } finally {
      this.#deciding = false;
      turn.scheduleIdleCheck();
      this.#mustTurnAct = true;
      const look = ++this.#looks;
      // Immediates run in their order, so the turn comes first. Only the last look is followed by another.
      turn.host.runtime.setImmediate(() => void (look === this.#looks && this.#afterTurn()));
    }
  }

  async #afterTurn(): Promise<void> {
    this.#mustTurnAct = false;
    const next = this.#nextLook;
    if (next === null) return;
    this.#nextLook = null;
    await this.lookNow();
    next.end();
  }

  async #decideAndCommit(all: readonly InboxRow[], now: number): Promise<void> {
    const turn = this.#turn;
    const inbox = asMuchAsFits(all);
    // The rest stays in the inbox for the next time.
    if (inbox.length < all.length) void this.#lookNext();
    // A child may have ended before its parent has heard that it was born: then the state knows no call for its message.
    if (inbox.some(({ kind }) => isFromChild(kind))) await turn.writer.caughtUp();
    if (turn.over) return;
    if (inbox.length > 0) turn.parkDelay.expect();
    for (const row of inbox) turn.pendingWrites.drained.push(row.id);
    const inboxed = inbox.flatMap((row) => this.#receive(row));
    let received: readonly Received[] = inboxed;
    for (let first = true; ; first = false) {
      const decided = decide(turn.state, received, now, turn.writer.nextSeq, turn.withdrawing);
      const events = turn.definition.declared === null ? decided : withHashes(decided, turn.state, turn.parentsOf);
      if (events.length === 0 && !(first && inbox.length > 0)) break;
      const failed = events.find((one) => one.type === "run.failed");
      if (failed !== undefined) return turn.overdue(events, dataOf(failed, "run.failed").error);
      dismissFailedMaps(turn, events);
      for (const mail of dismissedBy(turn.runId, turn.state, events)) turn.pendingWrites.mail.push(mail);
      if (!(await turn.writer.submitDecision(events))) return;
      // Again: a wait that the code began meanwhile may be for a signal that came just now.
      received = [];
    }
    for (const { command } of inboxed) if (command.type === "jobGone") await holdIfGone(turn, command.job);
    this.#beginDueRetries(now);
    if (turn.phase.hasCalledCode) this.setAlarm();
    if (turn.halted) turn.halt();
  }

  /** A message that cannot be read is put aside: left in the inbox it would bring the run round in circles. */
  #receive(row: InboxRow): Received[] {
    try {
      const command = readMail(row);
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
      if (!this.#turn.phase.mayBegin(key)) continue;
      const op = this.#turn.state.ops.get(key);
      // It is planned, but the log does not know yet.
      if (op === undefined) continue;
      // Another run executes it, and may have to do so again.
      if (isDispatched(op)) continue;
      const again = op.kind === "step" && op.phase === "again" ? op : null;
      if (again !== null && (again.held !== null || (again.dueAt ?? 0) > now)) continue;
      retries.delete(key);
      // Skipped or answered from outside meanwhile: the answer is delivered like any other.
      if (again !== null) due.push(() => begin(again));
    }
    // Not before all were looked at: a step that begins may have to wait again.
    for (const begin of due) begin();
  }

  /** While code runs on, the run is not parked: its timers are ours to watch. */
  setAlarm(): void {
    this.stop();
    this.#alarm = null;
    const turn = this.#turn;
    const now = turn.storeNow();
    const due = nextDueAt(turn.state, (key) => turn.results.pending.has(key));
    // Until its start is in the log, the deadline counts from now.
    const { timeoutMs } = turn.definition;
    const deadline = turn.state.startedAt === null && timeoutMs !== null ? now + timeoutMs : null;
    if (due === null && deadline === null) return;
    const at = Math.min(due ?? Number.POSITIVE_INFINITY, deadline ?? Number.POSITIVE_INFINITY);
    this.#alarm = turn.host.runtime.setTimeout(() => void this.#onAlarm(), Math.max(0, at - now) + 1);
    this.#alarm.unref();
  }

  async #onAlarm(): Promise<void> {
    const turn = this.#turn;
    if (turn.state.startedAt === null && !(await turn.submit([]))) return;
    await this.poke();
    if (!turn.over) this.setAlarm();
  }
}

/** What is decided at once is written at once, and databases limit how much that can be (MariaDB: 16 MB). */
const bytesAtOnce = 4 * 1024 * 1024;

function asMuchAsFits(inbox: readonly InboxRow[]): readonly InboxRow[] {
  let bytes = 0;
  for (const [index, { data }] of inbox.entries()) {
    bytes += data.length;
    if (bytes > bytesAtOnce && index > 0) return inbox.slice(0, index);
  }
  return inbox;
}

const isFromChild = (kind: string) => kind === "child" || kind === "children" || kind === "nodes";
