/** A step: its body runs, and how it ended becomes an event. */

import { InvalidInputError, TimeoutError } from "../../core/errors/errors.js";
import { toSafeThrown } from "../../core/errors/safe-thrown.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { parseDuration } from "../../core/naming/duration.js";
import { resolveRetry } from "../../core/naming/retry-policy.js";
import { cancelChildren } from "../../core/run/cancel-children.js";
import { dataOf, type NewEvent, newEvent } from "../../core/run/event.js";
import { FlowControlInterrupt } from "../../core/run/flow-control.js";
import type { Op, StepOp } from "../../core/run/state.js";
import { scopeOf } from "../../core/run/step-key.js";
import type { StepOptions, StepTools } from "../../define/context.js";
import { reactByRetryPolicy } from "../../define/retry-reaction.js";
import type { StepHistory } from "../../define/step-engine.js";
import { bindContext } from "../../telemetry/async-context.js";
import type { CallScope } from "../replay/call-scope.js";
import type { StepTurn } from "../turn/ports.js";
import { yieldToWaitingRuns } from "../turn/step-placement.js";
import { pauseRunOnError, warnOfInvalidOptions } from "../turn/user-code.js";
import type { Body } from "./attempt.js";
import { decideConsequence } from "./failure-events.js";
import { reportError } from "./report-error.js";
import { completedEvent, flowEvents } from "./step-events.js";
import type { StepKind, StepSettings } from "./step-settings.js";
import { inTransaction } from "./transaction.js";
import { TurnAttempt } from "./turn-attempt.js";

const noOptions: StepOptions = {};
const knownOptions = new Set<string>([
  "retry",
  "timeout",
  "input",
  "onCrash",
  "compensate",
  "added",
] satisfies (keyof StepOptions)[]);

/** Asks for the step's result; runs the body unless the log has it. */
export function callStep(
  scope: CallScope,
  name: string,
  body: Body,
  options: StepOptions = noOptions,
  kind: StepKind = "plain",
): Promise<unknown> {
  const { turn } = scope;
  const key = scope.takeKey(name);
  if (options !== noOptions) checkOptions(`Step "${key}"`, options, knownOptions);
  const policy =
    options.retry === undefined ? turn.definition.retry : resolveRetry(options.retry, turn.definition.retry);
  const timeoutMs = options.timeout === undefined ? null : parseDuration(options.timeout, `timeout of step "${key}"`);
  if (options.onCrash !== undefined && options.onCrash !== "rerun" && options.onCrash !== "pause") {
    throw new InvalidInputError(`onCrash of step "${key}" is "rerun" or "pause", not ${String(options.onCrash)}.`);
  }
  const { onCrash = "rerun", input } = options;
  const react = (error: unknown, op: StepOp | undefined) =>
    reactByRetryPolicy(policy, error, historyOf(op), turn.host.runtime.random());
  const { compensate } = options;
  if (compensate !== undefined) {
    const undo = bindContext((tools: StepTools) => compensate(tools, turn.outputOf(key)));
    (turn.compensators ??= new Map()).set(key, { body: undo, retry: policy, declared: false });
  }
  const undoable = compensate !== undefined;
  const settings = {
    timeoutMs,
    onCrash,
    input,
    kind,
    react,
    waitMs: 0,
    declared: false,
    job: false,
    undoable,
    semaphore: null,
  };
  return new Step(turn, key, body, settings).call(scope, options.added === true);
}

export function historyOf(op: StepOp | undefined): StepHistory {
  if (op === undefined) return noHistory;
  return {
    reattempts: op.consecutiveFailures,
    postponed: op.consecutiveTransientFailures,
    failures: op.countedFailures,
    totalFailures: op.totalFailures,
  };
}

const noHistory: StepHistory = { reattempts: 0, postponed: 0, failures: 0, totalFailures: 0 };

export class Step {
  readonly #turn: StepTurn;
  readonly #key: string;
  readonly #body: Body;
  readonly #settings: StepSettings;

  constructor(turn: StepTurn, key: string, body: Body, settings: StepSettings) {
    this.#turn = turn;
    this.#key = key;
    this.#body = body;
    this.#settings = settings;
  }

  call(scope: CallScope, isAdded = false): Promise<unknown> {
    const op = scope.findRecorded(this.#key, "step");
    const answer = scope.requestResult(this.#key, isAdded);
    // The last attempt at the step around this one may have begun it without waiting for it: it must not run twice at a time.
    if (scope.stepAttempt !== null && this.#turn.attempts.has(this.#key)) return answer;
    if (op === undefined) scope.startWhenLive(this.#key, isAdded, () => this.#startOrWait(undefined));
    else this.#startOrWait(op);
    return answer;
  }

  #startOrWait(op: StepOp | undefined): void {
    const turn = this.#turn;
    if (
      op?.phase === "completed" ||
      op?.phase === "failed" ||
      op?.phase === "skipped" ||
      (op !== undefined && op.pauseCause !== null) ||
      !turn.phase.mayStart(this.#key)
    )
      return turn.scheduleIdleCheck();
    if (op === undefined && this.#settings.waitMs > 0) return this.#plan();
    if (op?.phase === "started" && this.#settings.onCrash === "pause" && !this.#resumesAfterWait(op)) {
      const reason = `The worker died while step "${this.#key}" was running, so nobody knows whether it had its effect. Resume to run it again, skip it, or resume with its output.`;
      return turn.pauseWithError(reason, null, this.#key);
    }
    if (op?.phase === "awaiting_attempt" && (op.dueAt ?? 0) > turn.storeNow()) return this.#scheduleRetry();
    this.#acquireSlot(op);
  }

  #plan(): void {
    const { waitMs } = this.#settings;
    const attempt = (this.#turn.state.attemptsBeforeRewind?.get(this.#key) ?? 0) + 1;
    this.#turn.pendingWrites.addWaitEvent(newEvent("step.scheduled", { node: this.#key, attempt }, { waitMs }), {
      inMs: waitMs,
    });
    this.#scheduleRetry();
  }

  #scheduleRetry(): void {
    this.#turn.inboxProcessor.scheduleRetry(this.#key, this.#nextAttempt());
  }

  /** A timer or a receipt begins it, but it belongs where the step was called. */
  #nextAttempt(): (op: Op | undefined) => void {
    return bindContext((op: Op | undefined) => this.#acquireSlot(op as StepOp | undefined));
  }

  /** Its body had begun to wait for something durable when the run was parked: it is the same attempt that goes on. */
  #resumesAfterWait(op: StepOp): boolean {
    return this.#settings.declared && op.phase === "started" && !op.isAbandoned && this.#turn.deliveries === 1;
  }

  #acquireSlot(op: StepOp | undefined): void {
    const { semaphore } = this.#settings;
    if (semaphore === null) return this.#startAttempt(op, null);
    const turn = this.#turn;
    const enter = (leave: () => void) => {
      if (turn.phase.mayStart(this.#key)) return this.#startAttempt(op, leave);
      leave();
      turn.scheduleIdleCheck();
    };
    // Another run that leaves its place may be what lets this step in.
    turn.slots.enqueue(semaphore, bindContext(enter));
  }

  #startAttempt(op: StepOp | undefined, releaseSlot: (() => void) | null): void {
    const resumesAfterWait = op !== undefined && this.#resumesAfterWait(op);
    const last = op?.attempt ?? this.#turn.state.attemptsBeforeRewind?.get(this.#key) ?? 0;
    const { kind, onCrash, declared, timeoutMs } = this.#settings;
    const limit = declared && timeoutMs !== null ? this.#limitOf(resumesAfterWait ? op : undefined, timeoutMs) : null;
    const attempt = new TurnAttempt(this.#turn, this.#key, resumesAfterWait ? last : last + 1, resumesAfterWait, limit);
    attempt.releaseSlot = releaseSlot;
    this.#turn.attempts.add(attempt);
    if (limit !== null && limit <= 0)
      return this.#onThrown(attempt, op, createTimeoutError(this.#key, timeoutMs as number));
    if (kind === "transaction" || onCrash === "pause")
      return pauseRunOnError(this.#turn, () => this.#executeCarefully(attempt, op), attempt);
    this.#run(attempt, op);
  }

  /** What is left of its time, for a body that has rested. */
  #limitOf(op: StepOp | undefined, timeoutMs: number): number {
    return op?.deadlineAt == null ? timeoutMs : op.deadlineAt - this.#turn.storeNow();
  }

  #run(attempt: TurnAttempt, op: StepOp | undefined): void {
    attempt.run(
      this.#body,
      attempt.remainingMs ?? this.#settings.timeoutMs,
      (output) => this.#returned(attempt, op, output),
      (thrown) => this.#onThrown(attempt, op, thrown),
    );
  }

  /** What must be in the log before the body runs, or together with what the body writes. */
  async #executeCarefully(attempt: TurnAttempt, op: StepOp | undefined): Promise<void> {
    const turn = this.#turn;
    const { kind, onCrash, timeoutMs } = this.#settings;
    if (onCrash === "pause" && !attempt.isStartRecorded && !(await attempt.recordStart())) return;
    if (kind === "plain") return this.#run(attempt, op);
    try {
      const record = (output: unknown) => completedEvent(this.#turn, this.#settings, attempt, output);
      const done = await inTransaction(turn, attempt, this.#body as never, timeoutMs, record);
      turn.attempts.onBodyEnded(attempt);
      if (done) turn.attempts.onRecorded();
    } catch (thrown) {
      this.#onThrown(attempt, op, thrown);
    }
  }

  #returned(attempt: TurnAttempt, op: StepOp | undefined, output: unknown): void {
    if (this.#pauseIfCallsAreMissing(attempt)) return;
    let completed: NewEvent;
    try {
      // Swallowed by a catch in user code: still honoured.
      const swallowed = this.#turn.flowControl.take(attempt);
      if (swallowed !== null) throw swallowed;
      completed = completedEvent(this.#turn, this.#settings, attempt, output);
    } catch (thrown) {
      return this.#onThrown(attempt, op, thrown);
    }
    this.#record(attempt, [completed], null);
  }

  #onThrown(attempt: TurnAttempt, op: StepOp | undefined, thrown: unknown): void {
    if (this.#turn.isOver) return this.#turn.attempts.onBodyEnded(attempt);
    pauseRunOnError(this.#turn, () => this.#recordThrown(attempt, op, thrown), attempt);
  }

  #recordThrown(attempt: TurnAttempt, op: StepOp | undefined, thrown: unknown): void {
    const error = toSafeThrown(thrown);
    const signal = error instanceof FlowControlInterrupt ? error : this.#turn.flowControl.take(attempt);
    if (signal !== null) return this.#applyFlowControl(attempt, signal);
    if (this.#pauseIfCallsAreMissing(attempt)) return;
    const turn = this.#turn;
    const { explain, job } = this.#settings;
    const jobRunEnded = job && (attempt.hasJobFailed || error instanceof TimeoutError);
    const cursorMoved = attempt.checkpoints !== null && !attempt.checkpoints.isUnmoved;
    const history: StepOp | undefined = cursorMoved && op !== undefined ? withoutFailures(op) : op;
    const react = () => this.#settings.react(error, history);
    const thrownFrom = {
      react,
      explain,
      postponed: history?.consecutiveTransientFailures ?? 0,
      jobRunEnded,
      cursorMoved,
    };
    const { events, signal: consequence, isFailure } = decideConsequence(turn, error, attempt, thrownFrom);
    if (isFailure) reportError(turn, error, this.#key, attempt.attempt);
    else warnOfInvalidOptions(turn, error, `step "${this.#key}"`);
    this.#record(attempt, events, consequence);
  }

  /** A body that went on after a rest, and ended without the calls that it had made before, is not the body that began. */
  #pauseIfCallsAreMissing(attempt: TurnAttempt): boolean {
    const leftOver = attempt.scope?.gate?.leftOver ?? [];
    if (leftOver.length === 0 || this.#turn.isDraining) return false;
    this.#turn.attempts.onBodyEnded(attempt);
    this.#turn.attempts.onRecorded();
    this.#turn.pauseMismatched([], leftOver);
    return true;
  }

  #applyFlowControl(attempt: TurnAttempt, signal: FlowControlInterrupt): void {
    const { action } = signal;
    if (action.kind === "reattempt" && action.rewind && this.#settings.declared)
      return pauseRunOnError(this.#turn, () => this.#startOver(attempt, signal), attempt);
    this.#record(attempt, flowEvents(this.#turn, this.#settings, attempt, signal), signal);
  }

  /** What its body forgets is not waited for any more: also what it has only just asked for. */
  async #startOver(attempt: TurnAttempt, signal: FlowControlInterrupt): Promise<void> {
    const turn = this.#turn;
    await turn.writer.flushPendingStarts();
    attempt.checkpoints?.rewind();
    for (const message of cancelChildren(turn.runId, turn.state, scopeOf(this.#key)))
      turn.pendingWrites.messages.push(message);
    this.#record(attempt, flowEvents(this.#turn, this.#settings, attempt, signal), signal);
  }

  #record(attempt: TurnAttempt, events: readonly NewEvent[], signal: FlowControlInterrupt | null): void {
    const turn = this.#turn;
    turn.attempts.onBodyEnded(attempt);
    if (turn.isOver) return;
    if (this.#settings.declared && (endsForGood(events) || endsJobRun(events))) {
      // The run does not wait any more for the children that its body waited for, nor for a job that took too long.
      for (const message of cancelChildren(turn.runId, turn.state, scopeOf(this.#key)))
        turn.pendingWrites.messages.push(message);
    }
    attempt.checkpoints?.writeFinalCursor(events[0]?.type === "step.completed" || events[0]?.type === "step.skipped");
    if (signal !== null && isRunLevel(signal)) {
      turn.attempts.onRecorded();
      return turn.applyFlowControlFromStep(signal, events);
    }
    if (signal?.action.kind === "suspend" && signal.action.waitMs === 0 && this.#settings.declared)
      yieldToWaitingRuns(turn);
    const nextAttempt = events.some(leadsToAnother) ? this.#nextAttempt() : null;
    turn.post(events, (written) => {
      if (!written) return;
      // Not before the state knows of the failure: until then it shows the attempt before as due.
      if (nextAttempt !== null) turn.inboxProcessor.scheduleRetry(this.#key, nextAttempt);
      turn.attempts.onRecorded();
    });
  }
}

const createTimeoutError = (step: string, timeoutMs: number) =>
  new TimeoutError(`Step "${step}" took longer than its time limit of ${timeoutMs} ms.`);

const leadsToAnother = ({ type }: NewEvent) => type === "step.failed" || type === "step.reattempted";

/** Other than by returning: a body that returned may have left children behind on purpose. */
function endsForGood([ended]: readonly NewEvent[]): boolean {
  if (ended?.type === "step.skipped") return true;
  return ended?.type === "step.failed" && dataOf(ended, "step.failed").retryMs === undefined;
}

function endsJobRun([ended]: readonly NewEvent[]): boolean {
  return ended?.type === "step.failed" && dataOf(ended, "step.failed").jobRunEnded === true;
}

function isRunLevel({ action }: FlowControlInterrupt): boolean {
  return action.kind === "cancel" || action.kind === "finish";
}

/** What the next attempt counts from when the cursor has moved: failures before that do not count any more. */
const withoutFailures = (op: StepOp): StepOp => ({
  ...op,
  consecutiveFailures: 0,
  consecutiveTransientFailures: 0,
  countedFailures: 0,
  totalFailures: 0,
});
