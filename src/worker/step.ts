/** A step: its body runs, and how it ended becomes an event. */
import { encode } from "../core/codec.js";
import { parseDuration } from "../core/duration.js";
import {
  InvalidInputError,
  PauseError,
  PayloadTooLargeError,
  PermanentError,
  SerializationError,
  StoreError,
  TimeoutError,
  TransientError,
} from "../core/errors.js";
import { event, type NewEvent, type Outcome } from "../core/event.js";
import { toFailure } from "../core/failure.js";
import { nextDelay, type RetryPolicy, resolveRetry, shouldRetry } from "../core/retry.js";
import type { Op, StepOp } from "../core/state.js";
import type { StepOptions } from "../define/context.js";
import { type Body, Execution } from "./execution.js";
import { FlowSignal } from "./flow-control.js";
import { pausedBy } from "./paused-by.js";
import { presentable } from "./presentable.js";
import { inTransaction } from "./transaction.js";
import type { Turn } from "./turn.js";

/** What makes the step: an ordinary function, or one that gets a database transaction. */
export type StepKind = "plain" | "transaction";

const noOptions: StepOptions = {};

/** Asks for the step's result; runs the body unless the log has it. */
export function callStep(
  turn: Turn,
  key: string,
  body: Body,
  options: StepOptions = noOptions,
  kind: StepKind = "plain",
): Promise<unknown> {
  const policy =
    options.retry === undefined ? turn.definition.retry : resolveRetry(options.retry, turn.definition.retry);
  const timeoutMs = options.timeout === undefined ? null : parseDuration(options.timeout, `timeout of step "${key}"`);
  if (options.onCrash !== undefined && options.onCrash !== "rerun" && options.onCrash !== "pause") {
    throw new InvalidInputError(`onCrash of step "${key}" is "rerun" or "pause", not ${String(options.onCrash)}.`);
  }
  const step = new Step(turn, key, body, { policy, timeoutMs, options, kind });
  const op = turn.recorded(key, "step");
  const answer = turn.ask(key);
  step.begin(op);
  return answer;
}

interface Settings {
  readonly policy: RetryPolicy;
  readonly timeoutMs: number | null;
  readonly options: StepOptions;
  readonly kind: StepKind;
}

/** An execution that knows its turn, so that the worker's watch for slow steps can record its start. */
export class TurnExecution extends Execution {
  readonly turn: Turn;

  constructor(turn: Turn, key: string, attempt: number) {
    super(turn, key, attempt);
    this.turn = turn;
  }

  recordStart(): Promise<boolean> {
    this.startRecorded = true;
    return this.turn.submit([event("step.started", { node: this.key, attempt: this.attempt })]);
  }
}

class Step {
  readonly #turn: Turn;
  readonly #key: string;
  readonly #body: Body;
  readonly #settings: Settings;

  constructor(turn: Turn, key: string, body: Body, settings: Settings) {
    this.#turn = turn;
    this.#key = key;
    this.#body = body;
    this.#settings = settings;
  }

  begin(op: StepOp | undefined): void {
    const turn = this.#turn;
    if (op?.phase === "completed" || op?.phase === "failed" || op?.phase === "skipped" || !turn.mayBegin(this.#key))
      return turn.stir();
    if (op?.phase === "started" && this.#settings.options.onCrash === "pause") {
      const reason = `The worker died while step "${this.#key}" was running, so nobody knows whether it had its effect. Resume to run it again, skip it, or resume with its output.`;
      return turn.hold(reason, null, this.#key);
    }
    if (op?.phase === "again" && (op.dueAt ?? 0) > turn.storeNow()) {
      return turn.retryLater(this.#key, (later: Op | undefined) => this.#execute(later as StepOp | undefined));
    }
    this.#execute(op);
  }

  #execute(op: StepOp | undefined): void {
    const execution = new TurnExecution(
      this.#turn,
      this.#key,
      (op?.attempt ?? this.#turn.state.rewound?.get(this.#key) ?? 0) + 1,
    );
    this.#turn.began(execution);
    const { kind, options, timeoutMs } = this.#settings;
    if (kind === "transaction" || options.onCrash === "pause") return void this.#executeCarefully(execution, op);
    execution.run(
      this.#body,
      timeoutMs,
      (output) => this.#returned(execution, op, output),
      (thrown) => this.#threw(execution, op, thrown),
    );
  }

  /** What must be in the log before the body runs, or together with what the body writes. */
  async #executeCarefully(execution: TurnExecution, op: StepOp | undefined): Promise<void> {
    const turn = this.#turn;
    const { kind, options, timeoutMs } = this.#settings;
    if (options.onCrash === "pause" && !(await execution.recordStart())) return;
    if (kind === "plain") {
      return execution.run(
        this.#body,
        timeoutMs,
        (output) => this.#returned(execution, op, output),
        (thrown) => this.#threw(execution, op, thrown),
      );
    }
    try {
      const record = (output: unknown) => this.#completed(execution, output);
      const done = await inTransaction(turn, execution, this.#body as never, timeoutMs, record);
      turn.ended(execution);
      if (done) turn.settled();
    } catch (thrown) {
      this.#threw(execution, op, thrown);
    }
  }

  #returned(execution: TurnExecution, op: StepOp | undefined, output: unknown): void {
    let completed: NewEvent;
    try {
      // Swallowed by a catch in user code: still honoured.
      const swallowed = this.#turn.takeRaised(execution);
      if (swallowed !== null) throw swallowed;
      completed = this.#completed(execution, output);
    } catch (thrown) {
      return this.#threw(execution, op, thrown);
    }
    this.#record(execution, [completed], null);
  }

  #threw(execution: TurnExecution, op: StepOp | undefined, thrown: unknown): void {
    const error = presentable(thrown);
    const signal = error instanceof FlowSignal ? error : this.#turn.takeRaised(execution);
    const events = signal === null ? this.#failed(execution, error, op) : this.#flow(execution, signal);
    this.#record(execution, events, signal);
  }

  #record(execution: TurnExecution, events: readonly NewEvent[], signal: FlowSignal | null): void {
    const turn = this.#turn;
    turn.ended(execution);
    if (turn.over) return;
    if (signal !== null && isRunLevel(signal)) {
      turn.settled();
      return turn.obeyFromStep(signal, events);
    }
    turn.post(events, (written) => {
      if (!written) return;
      // Not before the state knows of the failure: until then it shows the attempt before as due.
      if (events.some(leadsToAnother)) {
        turn.retryLater(this.#key, (later: Op | undefined) => this.#execute(later as StepOp | undefined));
      }
      turn.settled();
    });
  }

  #completed(execution: Execution, output: unknown): NewEvent {
    const text = encode(output, { what: `the output of step "${this.#key}"` });
    const raw: Record<string, string> = { output: text };
    const { input } = this.#settings.options;
    if (input !== undefined) raw.input = encode(input, { what: `the input of step "${this.#key}"` });
    return event("step.completed", this.#place(execution, "success"), { ms: execution.elapsedMs }, raw);
  }

  #failed(execution: Execution, error: unknown, op: StepOp | undefined): NewEvent[] {
    this.#turn.host.log.debug(
      `Run ${this.#turn.runId}: step "${this.#key}" failed at attempt ${execution.attempt}.`,
      error,
    );
    const ms = execution.elapsedMs;
    const failure = toFailure(error);
    if (error instanceof PauseError) {
      const failed = event("step.failed", this.#place(execution, "paused_by_exception"), {
        error: failure,
        ms,
        retryMs: 0,
        transient: true,
      });
      return [failed, pausedBy(error, { node: this.#key })];
    }
    const outcome = error instanceof TimeoutError ? "timed_out" : null;
    const delay = this.#retryDelay(error, op);
    if (delay === null)
      return [event("step.failed", this.#place(execution, outcome ?? "failed_by_exception"), { error: failure, ms })];
    const transient = isPassing(error) ? { transient: true } : {};
    return [
      event("step.failed", this.#place(execution, outcome ?? "reattempted_by_exception"), {
        error: failure,
        ms,
        retryMs: delay,
        ...transient,
      }),
    ];
  }

  /** null: it has failed for good. What the user's own retry functions throw, or return by mistake, ends it too. */
  #retryDelay(error: unknown, op: StepOp | undefined): number | null {
    // The same value would be as unfit for storing the next time.
    if (error instanceof SerializationError || error instanceof PayloadTooLargeError || error instanceof PermanentError)
      return null;
    const { policy } = this.#settings;
    try {
      if (!isPassing(error) && !shouldRetry(policy, (op?.failures ?? 0) + 1, error)) return null;
      return nextDelay(policy, (op?.setbacks ?? 0) + 1, Math.random(), error);
    } catch (broken) {
      this.#turn.host.log.error(
        `Run ${this.#turn.runId}: the retry options of step "${this.#key}" failed; it is not retried.`,
        broken,
      );
      return null;
    }
  }

  #flow(execution: Execution, { action }: FlowSignal): NewEvent[] {
    this.#turn.takeRaised(execution);
    const ms = execution.elapsedMs;
    switch (action.kind) {
      case "skip":
        return [event("step.skipped", this.#place(execution, "skipped_by_flow_control"))];
      case "reattempt":
        return [event("step.reattempted", this.#place(execution, "reattempted"), { waitMs: action.waitMs, ms })];
      case "suspend":
        return [event("step.reattempted", this.#place(execution, "continued"), { waitMs: action.waitMs, ms })];
      case "pause": {
        const again = event("step.reattempted", this.#place(execution, "workflow_paused"), { waitMs: 0, ms });
        return [
          again,
          event("run.paused", { node: this.#key }, { reason: action.reason ?? "Paused by the workflow." }),
        ];
      }
      case "cancel":
        return [event("step.canceled", this.#place(execution, "canceled_by_flow_control"), { ms })];
      case "finish":
        return [event("step.completed", this.#place(execution, "success"), { ms })];
    }
  }

  #place(execution: Execution, outcome: Outcome) {
    return { node: this.#key, attempt: execution.attempt, outcome };
  }
}

/** "Come back later" is not a failure, whether user code says so or the database of a transactional step. */
function isPassing(error: unknown): boolean {
  return error instanceof TransientError || (error instanceof StoreError && error.transient);
}

const leadsToAnother = ({ type }: NewEvent) => type === "step.failed" || type === "step.reattempted";

function isRunLevel({ action }: FlowSignal): boolean {
  return action.kind === "cancel" || action.kind === "finish";
}
