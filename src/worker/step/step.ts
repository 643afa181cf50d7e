/** Executes a step: starts its attempts when they are due, and records the outcome of each attempt as an event. */

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
import { checkStepLimit, type StepLimit } from "../../define/limit.js";
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
import type { SlotGate } from "./slot-queue.js";
import { createCompletedEvent, createFlowControlEvents } from "./step-events.js";
import type { StepKind, StepSettings } from "./step-settings.js";
import { inTransaction } from "./transaction.js";
import { TurnAttempt } from "./turn-attempt.js";

const noOptions: StepOptions = {};
const knownOptions = new Set<string>([
  "retry",
  "timeout",
  "input",
  "onCrash",
  "limit",
  "units",
  "compensate",
  "added",
] satisfies (keyof StepOptions)[]);

/** Returns the result of a function-style step from the log, or runs the step's body if the log does not have it. */
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
    limit: stepLimitOf(scope, key, options),
  };
  return new Step(turn, key, body, settings).call(scope, options.added === true);
}

/** A step that waited for a slot while it holds another could keep the step that it waits for from ending. */
function stepLimitOf({ stepAttempt }: CallScope, key: string, { limit, units }: StepOptions): StepLimit | null {
  const stepLimit = limit === undefined && units === undefined ? null : checkStepLimit(`Step "${key}"`, limit, units);
  const held = stepAttempt?.limit ?? null;
  if (stepLimit === null || held === null) return stepLimit;
  throw new InvalidInputError(
    `Step "${key}" cannot wait for the limit "${stepLimit.limit.name}": it is called by step "${stepAttempt?.key}", which holds a slot of the limit "${held.limit.name}". Give the limit to one of them.`,
  );
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

const hasResult: ReadonlySet<StepOp["phase"]> = new Set(["completed", "failed", "skipped"]);

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
    const result = scope.requestResult(this.#key, isAdded);
    // An earlier attempt at the surrounding step may have started this step without awaiting it. If its body still
    // runs, it must not be started a second time.
    if (scope.stepAttempt !== null && this.#turn.attempts.has(this.#key)) return result;
    if (op === undefined) scope.startWhenLive(this.#key, isAdded, () => this.#startOrWait(undefined));
    else this.#startOrWait(op);
    return result;
  }

  #startOrWait(op: StepOp | undefined): void {
    const turn = this.#turn;
    if (!this.#mayStart(op)) return turn.scheduleIdleCheck();
    if (op === undefined && this.#settings.waitMs > 0) return this.#scheduleFirstAttempt();
    if (op?.phase === "started" && this.#settings.onCrash === "pause" && !this.#resumesAfterWait(op)) {
      const reason = `The worker died while step "${this.#key}" was running, so it is unknown whether the step took effect. Resume to run it again, skip it, or resume with its output.`;
      return turn.pauseWithError(reason, null, this.#key);
    }
    if (op?.phase === "awaiting_attempt" && (op.dueAt ?? 0) > turn.storeNow()) return this.#scheduleRetry();
    this.#acquireSlot(op);
  }

  /** Whether the step has no result and is not paused, and the turn may begin something. */
  #mayStart(op: StepOp | undefined): boolean {
    const isOver = op !== undefined && (hasResult.has(op.phase) || op.pauseCause !== null);
    return !isOver && this.#turn.phase.mayStart(this.#key) && !this.#turn.inboxProcessor.isEnding(this.#key);
  }

  #scheduleFirstAttempt(): void {
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

  /**
   * The next attempt is started from a timer or commit callback, but must run in the async context of the step's
   * caller.
   */
  #nextAttempt(): (op: Op | undefined) => void {
    return bindContext((op: Op | undefined) => this.#acquireSlot(op as StepOp | undefined));
  }

  /** Whether the run was parked while the body waited for something durable, so that the same attempt continues. */
  #resumesAfterWait(op: StepOp): boolean {
    return this.#settings.declared && op.phase === "started" && !op.isAbandoned && this.#turn.deliveries === 1;
  }

  #acquireSlot(op: StepOp | undefined): void {
    const { semaphore } = this.#settings;
    if (semaphore === null) return this.#acquireLimit(op, null);
    this.#enqueue(semaphore, (releaseSlot) => this.#acquireLimit(op, releaseSlot));
  }

  #acquireLimit(op: StepOp | undefined, releaseSemaphore: (() => void) | null): void {
    const { limit } = this.#settings;
    if (limit === null) return this.#startAttempt(op, releaseSemaphore);
    const { host, run } = this.#turn;
    const gate = host.stepSlots().gateOf(limit, run, this.#key);
    this.#enqueue(
      gate,
      (releaseSlot) => this.#startAttempt(op, releaseBoth(releaseSlot, releaseSemaphore)),
      releaseSemaphore,
    );
  }

  /** @param onRefused called if the step may not start any more when the slot is there */
  #enqueue(gate: SlotGate, onAcquired: (releaseSlot: () => void) => void, onRefused: (() => void) | null = null): void {
    const turn = this.#turn;
    const proceed = (releaseSlot: () => void) => {
      // An operator may have skipped the step, or completed it, while it waited for its slot.
      if (this.#mayStart(turn.state.ops.get(this.#key) as StepOp | undefined)) return onAcquired(releaseSlot);
      releaseSlot();
      onRefused?.();
      turn.scheduleIdleCheck();
    };
    // Another run may release the slot, so the callback is bound to the async context of this run.
    const restart = bindContext(() => this.#startOrWait(turn.state.ops.get(this.#key) as StepOp | undefined));
    turn.slots.enqueue(gate, bindContext(proceed), { onCanceled: onRefused, key: this.#key, restart });
  }

  #startAttempt(op: StepOp | undefined, releaseSlot: (() => void) | null): void {
    const resumesAfterWait = op !== undefined && this.#resumesAfterWait(op);
    const lastAttempt = op?.attempt ?? this.#turn.state.attemptsBeforeRewind?.get(this.#key) ?? 0;
    const { kind, onCrash, declared, timeoutMs } = this.#settings;
    const limitMs =
      declared && timeoutMs !== null ? this.#remainingTimeMs(resumesAfterWait ? op : undefined, timeoutMs) : null;
    const attempt = new TurnAttempt(
      this.#turn,
      this.#key,
      resumesAfterWait ? lastAttempt : lastAttempt + 1,
      resumesAfterWait,
      limitMs,
    );
    attempt.releaseSlot = releaseSlot;
    attempt.limit = this.#settings.limit;
    this.#turn.attempts.add(attempt);
    if (limitMs !== null && limitMs <= 0)
      return this.#onThrown(attempt, op, createTimeoutError(this.#key, timeoutMs as number));
    if (kind === "transaction" || onCrash === "pause")
      return pauseRunOnError(this.#turn, () => this.#runWithDurableRecord(attempt, op), attempt);
    this.#run(attempt, op);
  }

  /** Returns what is left of the time limit for a body that resumes after a wait, and the whole limit otherwise. */
  #remainingTimeMs(op: StepOp | undefined, timeoutMs: number): number {
    return op?.deadlineAt == null ? timeoutMs : op.deadlineAt - this.#turn.storeNow();
  }

  #run(attempt: TurnAttempt, op: StepOp | undefined): void {
    attempt.run(
      this.#body,
      attempt.remainingMs ?? this.#settings.timeoutMs,
      (output) => this.#onReturned(attempt, op, output),
      (thrown) => this.#onThrown(attempt, op, thrown),
    );
  }

  /** Executes a step whose start must be durable before its body runs, or whose end commits with the body's writes. */
  async #runWithDurableRecord(attempt: TurnAttempt, op: StepOp | undefined): Promise<void> {
    const turn = this.#turn;
    const { kind, onCrash, timeoutMs } = this.#settings;
    if (onCrash === "pause" && !attempt.isStartRecorded && !(await attempt.recordStart())) return;
    if (kind === "plain") return this.#run(attempt, op);
    try {
      const createEvent = (output: unknown) => createCompletedEvent(this.#turn, this.#settings, attempt, output);
      const isRecorded = await inTransaction(turn, attempt, this.#body as never, timeoutMs, createEvent);
      turn.attempts.onBodyEnded(attempt);
      if (!isRecorded) return;
      turn.attempts.onRecorded();
      turn.inboxProcessor.onAttemptRecorded(this.#key);
    } catch (thrown) {
      this.#onThrown(attempt, op, thrown);
    }
  }

  #onReturned(attempt: TurnAttempt, op: StepOp | undefined, output: unknown): void {
    if (this.#pauseIfCallsAreMissing(attempt)) return;
    let completedEvent: NewEvent;
    try {
      // Flow control applies even if a `catch` in user code swallowed it.
      const swallowedInterrupt = this.#turn.flowControl.take(attempt);
      if (swallowedInterrupt !== null) throw swallowedInterrupt;
      completedEvent = createCompletedEvent(this.#turn, this.#settings, attempt, output);
    } catch (thrown) {
      return this.#onThrown(attempt, op, thrown);
    }
    this.#record(attempt, [completedEvent], null);
  }

  #onThrown(attempt: TurnAttempt, op: StepOp | undefined, thrown: unknown): void {
    if (this.#turn.isOver) return this.#turn.attempts.onBodyEnded(attempt);
    pauseRunOnError(this.#turn, () => this.#recordThrown(attempt, op, thrown), attempt);
  }

  #recordThrown(attempt: TurnAttempt, op: StepOp | undefined, thrown: unknown): void {
    const error = toSafeThrown(thrown);
    const interrupt = error instanceof FlowControlInterrupt ? error : this.#turn.flowControl.take(attempt);
    if (interrupt !== null) return this.#applyFlowControl(attempt, interrupt);
    if (this.#pauseIfCallsAreMissing(attempt)) return;
    const turn = this.#turn;
    const { explain, job } = this.#settings;
    const jobRunEnded = job && (attempt.hasJobFailed || error instanceof TimeoutError);
    const cursorMoved = attempt.checkpoints !== null && !attempt.checkpoints.isUnmoved;
    const history: StepOp | undefined = cursorMoved && op !== undefined ? withoutFailures(op) : op;
    // The step waits for another attempt, however many it has had, so that the operator's command finds it.
    const react = () =>
      turn.inboxProcessor.hasPostponed(this.#key)
        ? ({ kind: "reattempt", waitMs: 0, countsAsReattempt: true } as const)
        : this.#settings.react(error, history);
    const exceptionContext = {
      react,
      explain,
      postponed: history?.consecutiveTransientFailures ?? 0,
      jobRunEnded,
      cursorMoved,
    };
    const { events, interrupt: runInterrupt, isFailure } = decideConsequence(turn, error, attempt, exceptionContext);
    if (isFailure) reportError(turn, error, this.#key, attempt.attempt);
    else warnOfInvalidOptions(turn, error, `step "${this.#key}"`);
    this.#record(attempt, events, runInterrupt);
  }

  /** If a resumed body ends without repeating its recorded calls, its code has changed, so the run is paused. */
  #pauseIfCallsAreMissing(attempt: TurnAttempt): boolean {
    const leftOver = attempt.scope?.gate?.leftOver ?? [];
    if (leftOver.length === 0 || this.#turn.isDraining) return false;
    this.#turn.attempts.onBodyEnded(attempt);
    this.#turn.attempts.onRecorded();
    this.#turn.pauseMismatched([], leftOver);
    return true;
  }

  #applyFlowControl(attempt: TurnAttempt, interrupt: FlowControlInterrupt): void {
    const { action } = interrupt;
    if (action.kind === "reattempt" && action.rewind && this.#settings.declared)
      return pauseRunOnError(this.#turn, () => this.#startOver(attempt, interrupt), attempt);
    this.#record(attempt, createFlowControlEvents(this.#turn, this.#settings, attempt, interrupt), interrupt);
  }

  /** Rewinds the step. Its open children are canceled, including children whose start was not committed yet. */
  async #startOver(attempt: TurnAttempt, interrupt: FlowControlInterrupt): Promise<void> {
    const turn = this.#turn;
    await turn.writer.flushPendingStarts();
    attempt.checkpoints?.rewind();
    for (const message of cancelChildren(turn.runId, turn.state, scopeOf(this.#key)))
      turn.pendingWrites.messages.push(message);
    this.#record(attempt, createFlowControlEvents(this.#turn, this.#settings, attempt, interrupt), interrupt);
  }

  #record(attempt: TurnAttempt, events: readonly NewEvent[], interrupt: FlowControlInterrupt | null): void {
    const turn = this.#turn;
    turn.attempts.onBodyEnded(attempt);
    if (turn.isOver) return;
    if (this.#settings.declared && (endsForGood(events) || endsJobRun(events))) {
      // The run no longer waits for the children of this body, nor for a job run that exceeded the time limit.
      for (const message of cancelChildren(turn.runId, turn.state, scopeOf(this.#key)))
        turn.pendingWrites.messages.push(message);
    }
    attempt.checkpoints?.writeFinalCursor(events[0]?.type === "step.completed" || events[0]?.type === "step.skipped");
    if (interrupt !== null && isRunLevel(interrupt)) {
      turn.attempts.onRecorded();
      return turn.applyFlowControlFromStep(interrupt, events);
    }
    if (interrupt?.action.kind === "suspend" && interrupt.action.waitMs === 0 && this.#settings.declared)
      yieldToWaitingRuns(turn);
    const nextAttempt = events.some(leadsToAnotherAttempt) ? this.#nextAttempt() : null;
    turn.post(events, (written) => {
      if (!written) return;
      // The retry is scheduled after the commit, because until then the state still shows the previous attempt as due.
      if (nextAttempt !== null) turn.inboxProcessor.scheduleRetry(this.#key, nextAttempt);
      turn.attempts.onRecorded();
      turn.inboxProcessor.onAttemptRecorded(this.#key);
    });
  }
}

const releaseBoth = (releaseSlot: () => void, releaseSemaphore: (() => void) | null) => () => {
  releaseSlot();
  releaseSemaphore?.();
};

const createTimeoutError = (step: string, timeoutMs: number) =>
  new TimeoutError(`Step "${step}" took longer than its time limit of ${timeoutMs} ms.`);

const leadsToAnotherAttempt = ({ type }: NewEvent) => type === "step.failed" || type === "step.reattempted";

/**
 * Whether the step was skipped or failed for good. A body that returned may have left its children running on purpose.
 */
function endsForGood([stepEnded]: readonly NewEvent[]): boolean {
  if (stepEnded?.type === "step.skipped") return true;
  return stepEnded?.type === "step.failed" && dataOf(stepEnded, "step.failed").retryMs === undefined;
}

function endsJobRun([stepEnded]: readonly NewEvent[]): boolean {
  return stepEnded?.type === "step.failed" && dataOf(stepEnded, "step.failed").jobRunEnded === true;
}

function isRunLevel({ action }: FlowControlInterrupt): boolean {
  return action.kind === "cancel" || action.kind === "finish";
}

/** Resets the failure counts for an attempt that moved the cursor: its retry policy starts counting again. */
const withoutFailures = (op: StepOp): StepOp => ({
  ...op,
  consecutiveFailures: 0,
  consecutiveTransientFailures: 0,
  countedFailures: 0,
  totalFailures: 0,
});
