/**
 * A turn: one worker has one run, from the claim until the run is parked or finished.
 *
 * Read (or know) the log, fold it, decide about messages and time, run the user's code for as long as it gets anywhere,
 * commit what it did, and let go. User code sees nothing that is not committed, and nothing is held while a run waits:
 * a run that sleeps for a month is one row.
 *
 * This is the composition of the parts of a turn. They know each other only by the ports that they use (ports.ts).
 */

import type { Failure } from "../../core/encoding/error-record.js";
import { ExecutionAbortedError } from "../../core/errors/errors.js";
import { frozenVersion, graphRoute } from "../../core/naming/route.js";
import type { NewEvent } from "../../core/run/event.js";
import type { FlowSignal } from "../../core/run/flow-control.js";
import type { Station } from "../../core/run/park.js";
import { writeProgress } from "../../core/run/progress.js";
import type { Pause } from "../../core/run/state.js";
import { keep } from "../../core/run/transition.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { NewRun, Next, Transition } from "../../store/contract/store.js";
import { tellOfCommit, tellOfPause } from "../../telemetry/tell.js";
import type { Outbox } from "../commit/pending-writes.js";
import { Journal, type JournalOwner, type Parting } from "../commit/run-writer.js";
import { settleCall } from "../replay/resolve-call.js";
import { Answers, type AnswersOwner, type Deferred } from "../replay/result-delivery.js";
import type { Body, Compensator, Execution } from "../step/attempt.js";
import { callBody, inFrame } from "../step/call-body.js";
import { Raised } from "../step/flow-control-tracker.js";
import { Executions } from "../step/running-attempts.js";
import { Lines } from "../step/slot-queue.js";
import { afterWrite } from "./after-write.js";
import { beginTurn } from "./begin.js";
import { Cancellation } from "./cancellation.js";
import { ExecutedRun } from "./executed-run.js";
import { Handler } from "./handler.js";
import { obey } from "./handler-end.js";
import type { Opening, TurnAtHost, TurnHost } from "./host.js";
import { comeToRest } from "./idle.js";
import { Attention } from "./inbox-processor.js";
import { overdue } from "./overdue.js";
import { parkRun } from "./park.js";
import { Linger } from "./park-delay.js";
import { pauseDiverged, pauseMismatched, pauseWithError } from "./pause-with-error.js";
import { Phase } from "./phase.js";
import type { WholeTurn } from "./ports.js";
import { pauseIfItFails } from "./user-code.js";

export class Turn extends ExecutedRun implements WholeTurn, TurnAtHost, JournalOwner, AnswersOwner {
  readonly course: Phase;
  readonly journal: Journal;
  readonly answers: Answers;
  readonly executions: Executions;
  readonly lines = new Lines();
  readonly raised = new Raised();
  readonly linger = new Linger(this);
  readonly attention = new Attention(this);
  readonly handler = new Handler(this);
  compensators: Map<string, Compensator> | null = null;
  withdrawing: Set<string> | null = null;
  takingMessages: Promise<void> | null = null;
  station: Station | null = null;
  recordsStart = false;
  readonly #pausedBefore: Pause | null;
  #cancellation: Cancellation | null = null;
  #isIdleCheckScheduled = false;
  #unended: ((unwritten: Transition) => void) | null = null;

  constructor(host: TurnHost, definition: WorkflowDefinition, opening: Opening) {
    super(host, definition, opening);
    const { run, at } = opening;
    // Before its nodes: all of them may be waiting for what it does next.
    if (run.version === frozenVersion) this.station = { route: graphRoute, priority: run.priority + 1 };
    this.#pausedBefore = this.state.paused;
    this.course = new Phase(this, this.state);
    this.executions = new Executions(this);
    this.journal = new Journal(this, host.committer, at);
    this.answers = new Answers(this, run.createdAt);
  }

  begin(): void {
    beginTurn(this, this.opening);
  }

  /** The worker stops: what runs may finish, then the next owner goes on. */
  stop(): void {
    this.course.stopping = true;
    this.stir();
  }

  /** The worker lost its lease: another worker has the run. */
  abandon(): void {
    if (this.over) return;
    this.journal.close();
    this.onParted({ how: "lost" });
  }

  /** A message arrived, or time has passed: look. */
  poke(): Promise<void> {
    return this.attention.poke();
  }

  /** Its code has been called, runs no step, and has asked for nothing that it still waits for. */
  get isSilent(): boolean {
    return this.course.hasCalledCode && !this.over && !this.executions.any && this.answers.pending.size === 0;
  }

  // ── Writing, and what became of what was written ───────────────────────────────────────────────────────────────────

  get over(): boolean {
    return this.journal.closed;
  }

  get outbox(): Outbox {
    return this.journal.outbox;
  }

  submit(events: readonly NewEvent[]): Promise<boolean> {
    return this.journal.submit(events);
  }

  post(events: readonly NewEvent[], done: (written: boolean) => void): void {
    this.journal.post(events, keep, done);
  }

  /** A paused run waits for a person: it must not do so in silence. One that was paused before is no news. */
  publish(events: readonly NewEvent[], after: number, at: number, next: Next, starts: readonly NewRun[]): void {
    tellOfCommit(this.log, this.run, { events, after, at, next, starts, state: this.state });
    const { paused } = this.state;
    if (next.kind === "park" && paused !== null && paused !== this.#pausedBefore)
      tellOfPause(this.host.log, this.run, paused);
  }

  onWritten(events: readonly NewEvent[], at: number): void {
    afterWrite(this, events, at);
  }

  /** An acknowledged pause or cancel acts at the next boundary: before the code gets what it is waiting for. */
  onMailed(): void {
    if (this.takingMessages !== null) return;
    this.answers.hold();
    this.takingMessages = this.attention.lookNow().then(() => {
      this.takingMessages = null;
      this.answers.goOn();
    });
  }

  onUnread(unwritten: Transition): void {
    this.#unended?.(unwritten);
  }

  onUnended(callback: (unwritten: Transition) => void): void {
    this.#unended = callback;
  }

  onParted(parting: Parting): void {
    this.course.on({ type: "turn ended" });
    this.answers.close();
    this.handler.close();
    this.attention.stop();
    this.lines.leaveAll();
    this.linger.stop();
    this.executions.leave();
    this.#cancellation?.stop();
    // An error with its stack costs more than a quick step: only if there is code that may hear it.
    if (this.#cancellation !== null || this.executions.any)
      this.abort(new ExecutionAbortedError(`Run ${this.runId} is not executed here any more (${parting.how}).`));
    this.executions.clear();
    this.host.parted(this, parting);
  }

  // ── Calls of user code, and the bodies of steps ────────────────────────────────────────────────────────────────────

  settleCall(key: string, call: Deferred): void | Promise<void> {
    return settleCall(this, key, call);
  }

  onAnswersIdle(): void {
    if (this.answers.pending.size > 0) this.stir();
  }

  inFrame<Result>(key: string, call: () => Result): Result {
    return inFrame(this, key, call);
  }

  callBody(execution: Execution, body: Body): unknown {
    return callBody(this, execution, body);
  }

  progress(node: string, done: number, total?: number, message?: string): void {
    if (this.over) return;
    this.outbox.cursor({ node, progress: writeProgress({ done, total: total ?? null, message: message ?? null }) });
    this.stir();
  }

  obeyFromStep(signal: FlowSignal, ended: readonly NewEvent[]): void {
    pauseIfItFails(this, () => obey(this, signal, ended));
  }

  // ── Pausing, canceling and letting go ──────────────────────────────────────────────────────────────────────────────

  get halted(): boolean {
    return this.course.halted;
  }

  /** Something durable is open, or something is in the outbox: see to it once the code has come to rest. */
  stir(): void {
    if (this.#isIdleCheckScheduled || this.over) return;
    this.#isIdleCheckScheduled = true;
    this.host.runtime.setImmediate(() => {
      this.#isIdleCheckScheduled = false;
      pauseIfItFails(this, () => comeToRest(this));
    });
  }

  hold(reason: string, error: Failure | null, node?: string): void {
    pauseWithError(this, reason, error, node);
  }

  diverge(steps: readonly string[], problem: string): void {
    pauseDiverged(this, steps, problem);
  }

  doesNotFit(held: readonly string[], leftOver: readonly string[], thrown?: unknown): void {
    pauseMismatched(this, held, leftOver, thrown);
  }

  overdue(events: readonly NewEvent[], error: Failure): Promise<void> | void {
    return overdue(this, events, error);
  }

  get abortSignal(): AbortSignal {
    return (this.#cancellation ??= new Cancellation(this)).abortSignal;
  }

  abort(reason: unknown): void {
    this.#cancellation?.abort(reason);
    this.executions.abort(reason);
  }

  halt(): void {
    this.stir();
    if (this.state.cancel !== null) (this.#cancellation ??= new Cancellation(this)).begin(this.state.cancel);
  }

  park(last?: NewEvent): Promise<void> {
    return parkRun(this, last);
  }
}
