/** A step: its body runs, and how it ended becomes an event. */

import { InvalidInputError, TimeoutError } from "../../core/errors/errors.js";
import { toSafeThrown } from "../../core/errors/safe-thrown.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { parseDuration } from "../../core/naming/duration.js";
import { resolveRetry } from "../../core/naming/retry-policy.js";
import { dismissChildren } from "../../core/run/cancel-children.js";
import { dataOf, event, type NewEvent } from "../../core/run/event.js";
import { FlowSignal } from "../../core/run/flow-control.js";
import type { Op, StepOp } from "../../core/run/state.js";
import { scopeOf } from "../../core/run/step-key.js";
import type { StepOptions, StepTools } from "../../define/context.js";
import { byRetryPolicy } from "../../define/retry-reaction.js";
import type { StepHistory } from "../../define/step-engine.js";
import { keepContext } from "../../telemetry/async-context.js";
import type { CallScope } from "../replay/call-scope.js";
import type { StepTurn } from "../turn/ports.js";
import { giveWay } from "../turn/station.js";
import { pauseIfItFails, warnOfNonsense } from "../turn/user-code.js";
import type { Body } from "./attempt.js";
import { consequenceOf } from "./failure-events.js";
import { report } from "./report-error.js";
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
  const key = scope.key(name);
  if (options !== noOptions) checkOptions(`Step "${key}"`, options, knownOptions);
  const policy =
    options.retry === undefined ? turn.definition.retry : resolveRetry(options.retry, turn.definition.retry);
  const timeoutMs = options.timeout === undefined ? null : parseDuration(options.timeout, `timeout of step "${key}"`);
  if (options.onCrash !== undefined && options.onCrash !== "rerun" && options.onCrash !== "pause") {
    throw new InvalidInputError(`onCrash of step "${key}" is "rerun" or "pause", not ${String(options.onCrash)}.`);
  }
  const { onCrash = "rerun", input } = options;
  const react = (error: unknown, op: StepOp | undefined) =>
    byRetryPolicy(policy, error, historyOf(op), turn.host.runtime.random());
  const { compensate } = options;
  if (compensate !== undefined) {
    const undo = keepContext((tools: StepTools) => compensate(tools, turn.outputOf(key)));
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
    places: null,
  };
  return new Step(turn, key, body, settings).call(scope, options.added === true);
}

export function historyOf(op: StepOp | undefined): StepHistory {
  if (op === undefined) return noHistory;
  return { reattempts: op.streak, postponed: op.postponed, failures: op.failures, setbacks: op.setbacks };
}

const noHistory: StepHistory = { reattempts: 0, postponed: 0, failures: 0, setbacks: 0 };

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
    const op = scope.recorded(this.#key, "step");
    const answer = scope.ask(this.#key, isAdded);
    // The last attempt at the step around this one may have begun it without waiting for it: it must not run twice at a time.
    if (scope.execution !== null && this.#turn.attempts.has(this.#key)) return answer;
    if (op === undefined) scope.begin(this.#key, isAdded, () => this.#begin(undefined));
    else this.#begin(op);
    return answer;
  }

  #begin(op: StepOp | undefined): void {
    const turn = this.#turn;
    if (
      op?.phase === "completed" ||
      op?.phase === "failed" ||
      op?.phase === "skipped" ||
      (op !== undefined && op.held !== null) ||
      !turn.phase.mayBegin(this.#key)
    )
      return turn.scheduleIdleCheck();
    if (op === undefined && this.#settings.waitMs > 0) return this.#plan();
    if (op?.phase === "started" && this.#settings.onCrash === "pause" && !this.#rests(op)) {
      const reason = `The worker died while step "${this.#key}" was running, so nobody knows whether it had its effect. Resume to run it again, skip it, or resume with its output.`;
      return turn.pauseWithError(reason, null, this.#key);
    }
    if (op?.phase === "again" && (op.dueAt ?? 0) > turn.storeNow()) return this.#later();
    this.#execute(op);
  }

  #plan(): void {
    const { waitMs } = this.#settings;
    const attempt = (this.#turn.state.rewound?.get(this.#key) ?? 0) + 1;
    this.#turn.pendingWrites.open(event("step.scheduled", { node: this.#key, attempt }, { waitMs }), { inMs: waitMs });
    this.#later();
  }

  #later(): void {
    this.#turn.inboxProcessor.retryLater(this.#key, this.#nextAttempt());
  }

  /** A timer or a receipt begins it, but it belongs where the step was called. */
  #nextAttempt(): (op: Op | undefined) => void {
    return keepContext((op: Op | undefined) => this.#execute(op as StepOp | undefined));
  }

  /** Its body had begun to wait for something durable when the run was parked: it is the same attempt that goes on. */
  #rests(op: StepOp): boolean {
    return this.#settings.declared && op.phase === "started" && !op.abandoned && this.#turn.deliveries === 1;
  }

  #execute(op: StepOp | undefined): void {
    const { places } = this.#settings;
    if (places === null) return this.#enter(op, null);
    const turn = this.#turn;
    const enter = (leave: () => void) => {
      if (turn.phase.mayBegin(this.#key)) return this.#enter(op, leave);
      leave();
      turn.scheduleIdleCheck();
    };
    // Another run that leaves its place may be what lets this step in.
    turn.slots.stand(places, keepContext(enter));
  }

  #enter(op: StepOp | undefined, leavePlace: (() => void) | null): void {
    const goesOn = op !== undefined && this.#rests(op);
    const last = op?.attempt ?? this.#turn.state.rewound?.get(this.#key) ?? 0;
    const { kind, onCrash, declared, timeoutMs } = this.#settings;
    const limit = declared && timeoutMs !== null ? this.#limitOf(goesOn ? op : undefined, timeoutMs) : null;
    const execution = new TurnAttempt(this.#turn, this.#key, goesOn ? last : last + 1, goesOn, limit);
    execution.leavePlace = leavePlace;
    this.#turn.attempts.began(execution);
    if (limit !== null && limit <= 0) return this.#threw(execution, op, overtime(this.#key, timeoutMs as number));
    if (kind === "transaction" || onCrash === "pause")
      return pauseIfItFails(this.#turn, () => this.#executeCarefully(execution, op), execution);
    this.#run(execution, op);
  }

  /** What is left of its time, for a body that has rested. */
  #limitOf(op: StepOp | undefined, timeoutMs: number): number {
    return op?.deadlineAt == null ? timeoutMs : op.deadlineAt - this.#turn.storeNow();
  }

  #run(execution: TurnAttempt, op: StepOp | undefined): void {
    execution.run(
      this.#body,
      execution.remainingMs ?? this.#settings.timeoutMs,
      (output) => this.#returned(execution, op, output),
      (thrown) => this.#threw(execution, op, thrown),
    );
  }

  /** What must be in the log before the body runs, or together with what the body writes. */
  async #executeCarefully(execution: TurnAttempt, op: StepOp | undefined): Promise<void> {
    const turn = this.#turn;
    const { kind, onCrash, timeoutMs } = this.#settings;
    if (onCrash === "pause" && !execution.startRecorded && !(await execution.recordStart())) return;
    if (kind === "plain") return this.#run(execution, op);
    try {
      const record = (output: unknown) => completedEvent(this.#turn, this.#settings, execution, output);
      const done = await inTransaction(turn, execution, this.#body as never, timeoutMs, record);
      turn.attempts.ended(execution);
      if (done) turn.attempts.settled();
    } catch (thrown) {
      this.#threw(execution, op, thrown);
    }
  }

  #returned(execution: TurnAttempt, op: StepOp | undefined, output: unknown): void {
    if (this.#pauseIfCallsAreMissing(execution)) return;
    let completed: NewEvent;
    try {
      // Swallowed by a catch in user code: still honoured.
      const swallowed = this.#turn.flowControl.take(execution);
      if (swallowed !== null) throw swallowed;
      completed = completedEvent(this.#turn, this.#settings, execution, output);
    } catch (thrown) {
      return this.#threw(execution, op, thrown);
    }
    this.#record(execution, [completed], null);
  }

  #threw(execution: TurnAttempt, op: StepOp | undefined, thrown: unknown): void {
    if (this.#turn.over) return this.#turn.attempts.ended(execution);
    pauseIfItFails(this.#turn, () => this.#recordThrown(execution, op, thrown), execution);
  }

  #recordThrown(execution: TurnAttempt, op: StepOp | undefined, thrown: unknown): void {
    const error = toSafeThrown(thrown);
    const signal = error instanceof FlowSignal ? error : this.#turn.flowControl.take(execution);
    if (signal !== null) return this.#leave(execution, signal);
    if (this.#pauseIfCallsAreMissing(execution)) return;
    const turn = this.#turn;
    const { explain, job } = this.#settings;
    const spent = job && (execution.jobFailed || error instanceof TimeoutError);
    const moved = execution.checkpoints !== null && !execution.checkpoints.still;
    const history = moved && op !== undefined ? { ...op, streak: 0, postponed: 0, failures: 0, setbacks: 0 } : op;
    const react = () => this.#settings.react(error, history);
    const thrownFrom = { react, explain, postponed: history?.postponed ?? 0, spent, moved };
    const { events, signal: consequence, isFailure } = consequenceOf(turn, error, execution, thrownFrom);
    if (isFailure) report(turn, error, this.#key, execution.attempt);
    else warnOfNonsense(turn, error, `step "${this.#key}"`);
    this.#record(execution, events, consequence);
  }

  /** A body that went on after a rest, and ended without the calls that it had made before, is not the body that began. */
  #pauseIfCallsAreMissing(execution: TurnAttempt): boolean {
    const leftOver = execution.scope?.gate?.leftOver ?? [];
    if (leftOver.length === 0 || this.#turn.halted) return false;
    this.#turn.attempts.ended(execution);
    this.#turn.attempts.settled();
    this.#turn.doesNotFit([], leftOver);
    return true;
  }

  #leave(execution: TurnAttempt, signal: FlowSignal): void {
    const { action } = signal;
    if (action.kind === "reattempt" && action.rewind && this.#settings.declared)
      return pauseIfItFails(this.#turn, () => this.#startOver(execution, signal), execution);
    this.#record(execution, flowEvents(this.#turn, this.#settings, execution, signal), signal);
  }

  /** What its body forgets is not waited for any more: also what it has only just asked for. */
  async #startOver(execution: TurnAttempt, signal: FlowSignal): Promise<void> {
    const turn = this.#turn;
    await turn.writer.settleFirst();
    execution.checkpoints?.rewind();
    for (const mail of dismissChildren(turn.runId, turn.state, scopeOf(this.#key))) turn.pendingWrites.mail.push(mail);
    this.#record(execution, flowEvents(this.#turn, this.#settings, execution, signal), signal);
  }

  #record(execution: TurnAttempt, events: readonly NewEvent[], signal: FlowSignal | null): void {
    const turn = this.#turn;
    turn.attempts.ended(execution);
    if (turn.over) return;
    if (this.#settings.declared && (endsForGood(events) || spendsJob(events))) {
      // The run does not wait any more for the children that its body waited for, nor for a job that took too long.
      for (const mail of dismissChildren(turn.runId, turn.state, scopeOf(this.#key)))
        turn.pendingWrites.mail.push(mail);
    }
    execution.checkpoints?.conclude(events[0]?.type === "step.completed" || events[0]?.type === "step.skipped");
    if (signal !== null && isRunLevel(signal)) {
      turn.attempts.settled();
      return turn.obeyFromStep(signal, events);
    }
    if (signal?.action.kind === "suspend" && signal.action.waitMs === 0 && this.#settings.declared) giveWay(turn);
    const nextAttempt = events.some(leadsToAnother) ? this.#nextAttempt() : null;
    turn.post(events, (written) => {
      if (!written) return;
      // Not before the state knows of the failure: until then it shows the attempt before as due.
      if (nextAttempt !== null) turn.inboxProcessor.retryLater(this.#key, nextAttempt);
      turn.attempts.settled();
    });
  }
}

const overtime = (step: string, timeoutMs: number) =>
  new TimeoutError(`Step "${step}" took longer than its time limit of ${timeoutMs} ms.`);

const leadsToAnother = ({ type }: NewEvent) => type === "step.failed" || type === "step.reattempted";

/** Other than by returning: a body that returned may have left children behind on purpose. */
function endsForGood([ended]: readonly NewEvent[]): boolean {
  if (ended?.type === "step.skipped") return true;
  return ended?.type === "step.failed" && dataOf(ended, "step.failed").retryMs === undefined;
}

function spendsJob([ended]: readonly NewEvent[]): boolean {
  return ended?.type === "step.failed" && dataOf(ended, "step.failed").spent === true;
}

function isRunLevel({ action }: FlowSignal): boolean {
  return action.kind === "cancel" || action.kind === "finish";
}
