/**
 * A turn: one worker has one run, from the claim until the run is parked or finished.
 *
 * Read (or know) the log, fold it, decide about messages and time, run the user's code for as long as it gets anywhere,
 * commit what it did, and let go. User code sees nothing that is not committed, and nothing is held while a run waits:
 * a run that sleeps for a month is one row.
 */

import { type Failure, reviveFailure, toFailure } from "../../core/encoding/error-record.js";
import { ExecutionAbortedError, NonDeterminismError, RunCanceledError } from "../../core/errors/errors.js";
import type { ParentsOf } from "../../core/graph/predecessors.js";
import { frozenVersion, graphRoute } from "../../core/naming/route.js";
import { openCompensations } from "../../core/run/compensation.js";
import { dataOf, event, type NewEvent } from "../../core/run/event.js";
import type { FlowSignal } from "../../core/run/flow-control.js";
import { fold } from "../../core/run/fold.js";
import { keyOwner } from "../../core/run/lineage.js";
import type { Station } from "../../core/run/park.js";
import { parkByOwner } from "../../core/run/park.js";
import { readParkingNote } from "../../core/run/parking-note.js";
import type { Op, Pause, RunState } from "../../core/run/state.js";
import { scopeMark } from "../../core/run/step-key.js";
import { isEnding } from "../../core/run/terminal-event.js";
import { keep } from "../../core/run/transition.js";
import type { Logger, ResumedBy, WorkflowContext } from "../../define/context.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import { stepping } from "../../define/step-engine.js";
import type { NewRun, Next, RunRecord, Transition } from "../../store/contract/store.js";
import { callInside, callsAreHeard } from "../../telemetry/around.js";
import { inContextOfItsOwn } from "../../telemetry/async-context.js";
import { boundLogger } from "../../telemetry/safe-logger.js";
import { tellOfCommit, tellOfPause, tellOfRun } from "../../telemetry/tell.js";
import { releaseChildren, settleMap } from "../children/children.js";
import type { Outbox } from "../commit/pending-writes.js";
import { Journal, type JournalOwner, type Parting } from "../commit/run-writer.js";
import { Scope } from "../replay/call-scope.js";
import { createContext } from "../replay/context.js";
import { mustBeFollowed, noteReturned } from "../replay/nested-calls.js";
import { keysOfHandler, ReplayGate } from "../replay/replay-gate.js";
import { settleCall } from "../replay/resolve-call.js";
import { Answers, type AnswersOwner, type Deferred } from "../replay/result-delivery.js";
import type { Body, Execution } from "../step/attempt.js";
import type { Compensator } from "../step/compensation.js";
import { DeclaredSteps, isDeclared } from "../step/declared-steps.js";
import { Raised } from "../step/flow-control-tracker.js";
import { Executions } from "../step/running-attempts.js";
import { Lines } from "../step/slot-queue.js";
import type { TurnExecution } from "../step/step.js";
import { noteChangedCode } from "./code-change.js";
import { deathsOf, survives } from "./crash-loop.js";
import { conclude } from "./finish.js";
import { handlerReturned, handlerThrew, obey } from "./handler-end.js";
import type { Opening, TurnHost } from "./host.js";
import { comeToRest, endExpired, hasWorkForCode } from "./idle.js";
import { Attention } from "./inbox-processor.js";
import { knownInput, withInput } from "./input.js";
import { mismatch } from "./mismatch.js";
import { Linger } from "./park-delay.js";
import { Course } from "./phase.js";
import { parentsIn } from "./predecessors.js";
import { Given } from "./stored-input.js";
import { pauseIfItFails } from "./user-code.js";

export class Turn implements JournalOwner, AnswersOwner {
  readonly run: RunRecord;
  readonly definition: WorkflowDefinition;
  readonly host: TurnHost;
  readonly state: RunState;
  readonly answers: Answers;
  readonly journal: Journal;
  readonly deliveries: number;
  /** The store's time when this worker got the run. */
  readonly takenAt: number;
  readonly given: Given;
  readonly parentsOf: ParentsOf;
  /** How to undo steps, as far as the code has said. */
  compensators: Map<string, Compensator> | null = null;
  readonly lines = new Lines();
  readonly raised = new Raised();
  readonly linger = new Linger(this);
  /** What the handler was called with, and what made it fail. */
  input: unknown;
  thrown: { readonly error: unknown } | null = null;
  readonly #opening: Opening;
  #log: Logger | null = null;
  readonly #pausedBefore: Pause | null;
  readonly course: Course;
  readonly executions: Executions;
  readonly attention = new Attention(this);
  #controller: AbortController | null = null;
  #stirred = false;
  #codeRuns = false;
  #recordsStart = false;
  /** Of a function whose log is not empty. */
  gate: ReplayGate | null = null;
  #gates: Set<ReplayGate> | null = null;
  /** What the code was told about its patches in this turn. */
  patches: Map<string, boolean> | null = null;
  /** Waits and timers that lost a race, or whose step is over: their withdrawal is in the log, or on its way there. */
  withdrawing: Set<string> | null = null;
  /** While messages are being taken that a commit has told of. */
  takingMessages: Promise<void> | null = null;
  #unended: ((unwritten: Transition) => void) | null = null;
  /** Where the step that is asked for is to be run, when its workflow has an opinion about that. */
  #station: Station | null = null;
  #cancelTimer: NodeJS.Timeout | null = null;
  #endTrial: (() => void) | null = null;
  readonly openedAt = performance.now();

  constructor(host: TurnHost, definition: WorkflowDefinition, opening: Opening) {
    this.host = host;
    this.definition = definition;
    this.run = opening.run;
    this.deliveries = opening.deliveries;
    this.takenAt = opening.at;
    this.#opening = opening;
    // Before its nodes: all of them may be waiting for what it does next.
    if (opening.run.version === frozenVersion)
      this.#station = { route: graphRoute, priority: opening.run.priority + 1 };
    this.state = fold(opening.log);
    this.#pausedBefore = this.state.paused;
    this.course = new Course(this, this.state);
    this.executions = new Executions(host.executing);
    this.given = new Given(opening.run.input);
    this.parentsOf = parentsIn(opening.run, this.state, this.given, definition);
    this.journal = new Journal(this, host.committer, opening.at);
    this.answers = new Answers(this, opening.run.createdAt);
  }

  /** A paused run waits for somebody: it must not do so in silence. One that was paused before is no news. */
  #warnOfPause(): void {
    const { paused } = this.state;
    if (paused === null || paused === this.#pausedBefore) return;
    tellOfPause(this.host.log, this.run, paused);
  }

  get runId(): string {
    return this.run.id;
  }

  /** Its lines are known by the run, where the logger can do that. */
  get log(): Logger {
    return (this.#log ??= boundLogger(this.host.log, { runId: this.runId, workflow: this.run.workflow }));
  }

  /** What is done because the run failed is its own: another run failed for another reason. */
  keyOwner(node: string): string {
    return node === this.course.lastStep ? this.runId : keyOwner(this.state, this.runId, node);
  }

  resumedBy(node: string): ResumedBy | null {
    const signal = this.state.resumedBy?.get(node);
    if (signal === undefined) return null;
    return { signal: signal.name, payload: dataOf(signal, "signal.received").payload };
  }

  /** Whether the handler has been called in this turn. */
  get codeRuns(): boolean {
    return this.#codeRuns;
  }

  /** Its code has been called, runs no step, and has asked for nothing that it still waits for. */
  get isSilent(): boolean {
    return this.#codeRuns && !this.over && !this.executions.any && this.answers.pending.size === 0;
  }

  get virtualNow(): number | null {
    return this.host.virtualClock === null ? null : this.host.virtualClock();
  }

  get over(): boolean {
    return this.journal.closed;
  }

  get outbox(): Outbox {
    return this.journal.outbox;
  }

  get halted(): boolean {
    return this.course.halted;
  }

  // ── Beginning ──────────────────────────────────────────────────────────────────────────────────────────────────────

  begin(): void {
    tellOfRun(this.host.log, this.run, "running", this.#opening.at);
    const deaths = deathsOf(this, this.#opening);
    if (deaths >= this.host.maxDeliveries && this.state.paused === null)
      return pauseIfItFails(this, () => this.#beginIfItSurvives(deaths));
    if (this.state.startedAt === null && this.state.paused !== null)
      return pauseIfItFails(this, () => this.#beginIfResumed());
    this.#recordBeginning();
    this.#goOn();
  }

  async #beginIfItSurvives(deaths: number): Promise<void> {
    if (!(await survives(this, this.#opening, deaths))) return;
    // Written before anything else: whoever asks next must know that this much counts already.
    this.#recordBeginning();
    if (await this.submit([])) this.#goOn();
  }

  /** It was paused before it began, and now its time has come: unless a message resumes it, it begins when it is resumed. */
  async #beginIfResumed(): Promise<void> {
    await this.attention.pump(this.#opening.inbox, this.#opening.at);
    if (this.over) return;
    if (this.state.paused !== null) return this.park();
    this.#recordBeginning();
    comeToRest(this);
  }

  #recordBeginning(): void {
    if (this.state.startedAt === null) this.#recordStart();
    const { deliveries } = this;
    if (deliveries > 1) this.outbox.events.push(event("run.recovered", {}, { deliveries }));
  }

  #goOn(): void {
    if (this.state.seq === 0 && this.#opening.inbox.length === 0) return this.runCode();
    pauseIfItFails(this, () => this.#wake());
  }

  #recordStart(): void {
    this.#recordsStart = true;
    const { timeoutMs, declared } = this.definition;
    const began = this.#opening.at;
    const steps = declared === null ? {} : { steps: declared.kind, shape: declared.signature };
    if (timeoutMs !== null)
      this.outbox.open(event("run.started", {}, { began, timeoutMs, ...steps }), { inMs: timeoutMs });
    else this.outbox.events.push(event("run.started", {}, { began, ...steps }));
  }

  /** A run that has a past: first what came and what became due meanwhile, then, if that is any of its business, the code. */
  async #wake(): Promise<void> {
    await this.attention.pump(this.#opening.inbox, this.#opening.at);
    if (this.over) return;
    // Whoever had it before may have died between a child's end and the release of the next.
    releaseChildren(this);
    comeToRest(this);
  }

  /** Not in the context of the code that started the run, sent it a message or shared a commit with it. */
  runCode(): void {
    const begin = () => inContextOfItsOwn(() => this.#runCode());
    if ((this.state.blocked?.size ?? 0) > 0) this.host.trials.hold(this, begin);
    else begin();
  }

  /** It is executed apart from others like it; `end` makes room for the next of them. */
  onTrial(end: () => void): void {
    this.#endTrial = end;
  }

  endTrial(): void {
    this.#endTrial?.();
    this.#endTrial = null;
  }

  #runCode(): void {
    this.#codeRuns = true;
    if (this.definition.timeoutMs !== null) this.attention.setAlarm();
    withInput(this, (input) => this.#callHandler(input));
  }

  #callHandler(input: unknown): void {
    this.input = input;
    this.answers.open();
    let result: Promise<unknown>;
    try {
      result = Promise.resolve(this.inFrame("", () => this.#enterHandler(input)));
    } catch (error) {
      return pauseIfItFails(this, () => handlerThrew(this, error));
    }
    result.then(
      (output) => pauseIfItFails(this, () => handlerReturned(this, output)),
      (error) => pauseIfItFails(this, () => handlerThrew(this, error)),
    );
  }

  #enterHandler(input: unknown): unknown {
    const { handler } = this.definition;
    const ctx = this.#createContext();
    return callsAreHeard() ? callInside(this.run, null, () => handler(ctx, input)) : handler(ctx, input);
  }

  #createContext(): WorkflowContext<any> {
    noteChangedCode(this);
    if (this.definition.declared === null && this.state.ops.size > 0)
      this.gate = this.openGate(keysOfHandler(this.state));
    const scope = new Scope(this, null, this.gate);
    const ctx = createContext(scope);
    return this.definition.declared === null ? ctx : Object.assign(ctx, { [stepping]: new DeclaredSteps(scope) });
  }

  // ── What user code asks for ────────────────────────────────────────────────────────────────────────────────────────

  /** Of code that has these calls in its log; null when there are none. */
  openGate(keys: readonly string[]): ReplayGate | null {
    if (keys.length === 0) return null;
    const gate = new ReplayGate(
      {
        state: this.state,
        replayGraceMs: this.host.replayGraceMs,
        isMoving: () => this.#isMoving(),
        onAdded: (key) => void this.outbox.events.push(event("call.added", { node: key })),
        onMismatch: (held, leftOver) => this.doesNotFit(held, leftOver),
      },
      keys,
    );
    (this.#gates ??= new Set()).add(gate);
    return gate;
  }

  #isMoving(): boolean {
    const { executions, lines, answers, journal } = this;
    return executions.busy || lines.waiting > 0 || answers.delivering || journal.unsettled;
  }

  /** Calls wait until the code has come to everything that the log has. */
  get holdsCalls(): boolean {
    if (this.#gates !== null) for (const gate of this.#gates) if (gate.holdsCalls) return true;
    return false;
  }

  callBody(execution: Execution, body: Body): unknown {
    if (callsAreHeard()) return this.#callHeard(execution, body);
    const { watch } = this.host;
    if (watch === null) return this.#enterBody(execution, body);
    // As `inFrame`, without a function for each step.
    watch.enter(this.runId, execution.key);
    try {
      return this.#enterBody(execution, body);
    } finally {
      watch.leave();
    }
  }

  #enterBody(execution: Execution, body: Body): unknown {
    const { definition, host } = this;
    // Bodies of declared steps may wait for something durable; nothing has to be found in them.
    if (definition.declared !== null) return this.raised.callBody(execution, body);
    const isFollowed = host.virtualClock !== null || mustBeFollowed(definition, body);
    const value = this.raised.callBody(execution, body, isFollowed);
    if (!isFollowed) noteReturned(definition, value);
    return value;
  }

  #callHeard(execution: Execution, body: Body): unknown {
    const call = () => this.inFrame(execution.key, () => this.#enterBody(execution, body));
    // A listener may call it later, when the run is not ours any more.
    return callInside(this.run, execution, () => (this.over ? new Promise(() => {}) : call()));
  }

  /** Calls user code; until it returns, the watchdog knows whose it is. */
  inFrame<Result>(key: string, call: () => Result): Result {
    const { watch } = this.host;
    if (watch === null) return call();
    watch.enter(this.runId, key);
    try {
      return call();
    } finally {
      watch.leave();
    }
  }

  /** The body of this step only waits for something durable: the run may be parked meanwhile. */
  rest(execution: TurnExecution): void {
    if (!execution.startRecorded && !this.over) {
      // Without it, the step would still count as due.
      const { remainingMs } = execution;
      this.outbox.open(execution.started(), remainingMs === null ? {} : { inMs: remainingMs });
    }
    this.executions.release();
    this.stir();
  }

  /** What a step has returned, as the log says. */
  outputOf(key: string): unknown {
    const op = this.state.ops.get(key);
    return op?.kind === "step" ? dataOf(op, "step.completed").output : undefined;
  }

  /** From here on nothing begins but what undoes. False: that has begun before. */
  beginUndoing(): boolean {
    if (this.course.undoing) return false;
    this.course.undoing = true;
    if (this.#cancelTimer !== null) clearTimeout(this.#cancelTimer);
    return true;
  }

  /** What the log has under this key. The same name must still be the same kind of thing. */
  recorded<Kind extends Op["kind"]>(key: string, kind: Kind): Extract<Op, { kind: Kind }> | undefined {
    const op = this.state.ops.get(key);
    if (op === undefined || op.kind === kind) return op as Extract<Op, { kind: Kind }> | undefined;
    this.diverge([key], `the log has "${key}" as a ${op.kind}, the code now uses that name for a ${kind}`);
    return undefined;
  }

  /** The promise of an answer. After the turn it never settles: whoever takes the run next asks again. */
  ask(key: string, isOutOfOrder = false): Promise<unknown> {
    if (this.over) this.#warnLate(key);
    return isOutOfOrder ? this.answers.askOutOfOrder(key) : this.answers.ask(key);
  }

  #warnLate(key: string): void {
    this.log.warn(
      `Run ${this.runId}: "${key}" was asked for after the run had been parked. The workflow awaits something that is not under ctx beside a durable wait; put it into a step.`,
    );
  }

  /** Something durable is open, or something is in the outbox: see to it once the code has come to rest. */
  stir(): void {
    if (this.#stirred || this.over) return;
    this.#stirred = true;
    setImmediate(() => {
      this.#stirred = false;
      pauseIfItFails(this, () => comeToRest(this));
    });
  }

  /** Its step was interrupted so that others get their turn: if there are any, it is put back among those that wait for one. */
  giveWay(): void {
    if (this.host.crowded()) this.course.handingOver = true;
  }

  /** The next step is run here, or, if this worker is not for it, handed over to those that are. */
  enterStation(station: Station, waitsFirst: boolean): void {
    if (this.definition.declared?.placed !== true) return;
    this.#station = station;
    // Then the run is parked in any case, and wakes up where it belongs.
    if (waitsFirst || this.host.serves(station.route, this.definition.version)) return;
    this.course.handingOver = true;
    this.stir();
  }

  /** Keeps the run from being parked while `work` goes on. */
  async busy<T>(work: () => Promise<T>): Promise<T> {
    this.executions.hold();
    try {
      return await work();
    } finally {
      this.executions.release();
      this.stir();
    }
  }

  /** The same for what brings a call under way that was asked for. If that fails, the call has failed: nothing waits for it. */
  async begins<T>(key: string, work: () => Promise<T>): Promise<T> {
    try {
      return await this.busy(work);
    } catch (error) {
      this.answers.refuse(key, error);
      throw error;
    }
  }

  /** What came of a body is in the log. */
  settled(): void {
    this.executions.release();
    if (!this.executions.busy && (this.answers.pending.size > 0 || this.halted)) this.stir();
  }

  /** A step waits for its next attempt: `begin` is called when it is due, if the turn lives that long. */
  retryLater(key: string, begin: (op: Op | undefined) => void): void {
    this.attention.retryLater(key, begin);
    this.stir();
  }

  /** Overwrites one row; it goes along with the next commit, or soon by itself. */
  progress(node: string, done: number, total?: number, message?: string): void {
    if (this.over) return;
    this.outbox.cursor({ node, progress: JSON.stringify({ done, total: total ?? null, message: message ?? null }) });
    this.stir();
  }

  get abortSignal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.halted && !this.#controller.signal.aborted && this.state.cancel !== null) this.#controller.abort();
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#controller?.abort(reason);
    this.executions.abort(reason);
  }

  storeNow(): number {
    return this.virtualNow ?? this.journal.storeNow();
  }

  submit(events: readonly NewEvent[]): Promise<boolean> {
    return this.journal.submit(events);
  }

  /** Calls back when it is written, or with false when the run is not ours any more. */
  post(events: readonly NewEvent[], done: (written: boolean) => void): void {
    this.journal.post(events, keep, done);
  }

  // ── What became of what was written ────────────────────────────────────────────────────────────────────────────────

  publish(events: readonly NewEvent[], after: number, at: number, next: Next, starts: readonly NewRun[]): void {
    tellOfCommit(this.log, this.run, { events, after, at, next, starts, state: this.state });
    if (next.kind === "park") this.#warnOfPause();
  }

  onWritten(events: readonly NewEvent[], at: number): void {
    this.answers.deliver();
    let listens = false;
    for (const { type, node } of events) {
      if (this.host.stepEnded !== null && (type === "step.completed" || type === "step.skipped")) {
        if (!(node as string).includes(scopeMark)) this.host.stepEnded(this);
      }
      if (type === "map.settled" || type === "map.spawned") releaseChildren(this);
      else if ((type === "run.resumed" || type === "node.reopened") && this.#codeRuns) this.course.startOver = true;
      else if (type === "wait.started" || type === "wait.withdrawn" || type === "run.paused") listens = true;
    }
    if (listens && this.state.signals.length > 0) void this.attention.pump([], at);
    if (this.halted) this.halt();
    else if (!this.outbox.empty) this.stir();
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

  onAnswersIdle(): void {
    if (this.answers.pending.size > 0) this.stir();
  }

  /** Calls back when the end of the run, which was posted before, was not written because of messages. */
  onUnended(callback: (unwritten: Transition) => void): void {
    this.#unended = callback;
  }

  onParted(parting: Parting): void {
    this.answers.close();
    if (this.#gates !== null) for (const gate of this.#gates) gate.close();
    this.attention.stop();
    this.lines.leaveAll();
    this.endTrial();
    if (this.#cancelTimer !== null) clearTimeout(this.#cancelTimer);
    this.linger.stop();
    this.executions.leave();
    // An error with its stack costs more than a quick step: only if somebody is there to hear it.
    if (this.#controller !== null || this.executions.any) {
      this.abort(new ExecutionAbortedError(`Run ${this.runId} is not executed here any more (${parting.how}).`));
    }
    this.executions.clear();
    this.host.parted(this, parting);
  }

  // ── Messages and time ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Mail came, or time passed: look. */
  poke(): Promise<void> {
    return this.attention.poke();
  }

  /** The time limit of the run has passed. */
  async overdue(events: readonly NewEvent[], error: Failure): Promise<void> {
    if (this.state.expired !== null || this.course.undoing || this.course.failing) return;
    const before = events.filter((one) => !isEnding(one));
    const mustUndo = openCompensations(this.state).length > 0;
    if (this.definition.onFailure === null && !mustUndo)
      return conclude(this, { status: "failed", events: before, output: null, error });
    // In the log, so that it is told once: an attempt at what is left may have to wait for its time.
    if (!(await this.submit([...before, event("run.expired", {}, { error })]))) return;
    this.abort(reviveFailure(error));
    pauseIfItFails(this, () => endExpired(this, error));
  }

  /** What is left to do is not the business of its code. */
  skipCode(): void {
    this.#codeRuns = true;
    this.input = knownInput(this);
    this.answers.open();
  }

  /** Nothing new begins. What runs may finish and is recorded; a canceled run tells it to hurry. */
  halt(): void {
    this.stir();
    if (this.state.cancel === null) return;
    if (this.state.cancel.force) this.executions.giveUp();
    if (this.#cancelTimer !== null) return;
    this.abort(new RunCanceledError(this.runId, this.state.cancel.reason ?? undefined));
    this.#cancelTimer = setTimeout(() => {
      this.executions.giveUp();
      this.stir();
    }, this.host.cancelGraceMs);
  }

  /** The worker lost its lease: the run is somebody else's. */
  abandon(): void {
    if (this.over) return;
    this.journal.close();
    this.onParted({ how: "lost" });
  }

  /** The worker stops: what runs may finish, then the run goes to whoever is next. */
  stop(): void {
    this.course.stopping = true;
    this.stir();
  }

  // ── Letting go ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Lets go of the run until something happens. `last` is one more event that explains why. */
  async park(last?: NewEvent): Promise<void> {
    if (this.course.leaving) return;
    this.course.leaving = true;
    if (last !== undefined) this.outbox.events.push(last);
    // A worker had it, so its time to begin has come: without a word about that, it would wait for its time for ever.
    if (this.state.startedAt === null && !this.state.becameDue && !this.#recordsStart)
      this.outbox.events.push(event("run.became_due", {}));
    while (this.journal.unsettled) await this.journal.settled();
    if (!this.over) await this.journal.submit([], this.#parking());
  }

  #parking(): Next {
    return parkByOwner({
      state: this.state,
      pending: this.outbox,
      at: this.journal.heardAt,
      // Stopped before the code ran: it still has to.
      isCutShort: this.course.cutShort && (this.#codeRuns || hasWorkForCode(this)),
      awaited: this.#codeRuns ? (key) => this.answers.pending.has(key) : undefined,
      newsSeen: this.#codeRuns ? null : readParkingNote(this.run.waiting).news,
      station: this.#station,
    });
  }

  /** No run outlives its parent: children that are only in the outbox are born first, so that everybody agrees. */
  async settleFirst(): Promise<void> {
    while (this.journal.unsettled) await this.journal.settled();
    if (this.outbox.starts.length > 0) await this.submit([]);
  }

  /** Run-level flow control that a step raised: the end of the step is recorded with the end of the run. */
  obeyFromStep(signal: FlowSignal, ended: readonly NewEvent[]): void {
    pauseIfItFails(this, () => obey(this, signal, ended));
  }

  /** The code does not fit the log. Nothing is lost: the run is held until code that fits is there and somebody resumes it. */
  diverge(steps: readonly string[], problem: string): void {
    if (this.over) return;
    const names = steps.map((step) => `"${step}"`).join(", ");
    const error = new NonDeterminismError({ runId: this.runId, steps, problem: `${problem} (${names})` });
    this.hold(error.message, toFailure(error));
  }

  /** The code makes calls that the log lacks, and does not make those that it has: see `replay-gate.ts`. */
  doesNotFit(held: readonly string[], leftOver: readonly string[], thrown?: unknown): void {
    if (this.over) return;
    const { state, runId } = this;
    const areNodes = this.definition.declared !== null && leftOver.every(isDeclared);
    const error = mismatch({ runId, held, leftOver, state, areNodes, thrown });
    this.hold(error.message, toFailure(error));
  }

  /** Pauses the run because of something only a person can solve. */
  hold(reason: string, error: Failure | null, node?: string): void {
    if (this.over || this.course.holding || this.state.paused !== null) return;
    this.course.holding = true;
    this.abort(new ExecutionAbortedError(reason));
    const paused = event(
      "run.paused",
      node === undefined ? {} : { node },
      error === null ? { reason } : { reason, error },
    );
    // What runs may finish and is recorded; then the run rests.
    void this.submit([paused]);
  }

  settleCall(key: string, call: Deferred): void | Promise<void> {
    const op = this.state.ops.get(key) as Op;
    if (op.kind === "map") return settleMap(this, key, op, call);
    try {
      settleCall(this.runId, key, op, call);
    } catch (error) {
      // The row is damaged. That is for a person to look at, and must not take the worker down.
      const failure = toFailure(error);
      this.hold(`What the log has of "${key}" cannot be read: ${failure.message}`, failure);
    }
  }
}
