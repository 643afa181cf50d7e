/** Implements `ctx`. Every call returns the result that the log has for it, and starts its work only if the log has none. */

import { InvalidInputError } from "../../core/errors/errors.js";
import { guardMethods } from "../../core/errors/guarded-promise.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { executionId, seededUuid } from "../../core/naming/ids.js";
import { checkName, checkReason } from "../../core/naming/names.js";
import { type NewEvent, newEvent } from "../../core/run/event.js";
import { type FlowControlAction, FlowControlInterrupt } from "../../core/run/flow-control.js";
import { onFailureStep } from "../../core/run/step-name.js";
import type { CallOptions } from "../../define/call-options.js";
import type {
  ChildArgs,
  ChildHandle,
  ChildOptions,
  ChildWorkflow,
  MapOptions,
  MapResult,
} from "../../define/children.js";
import type {
  AnySignal,
  Logger,
  RaceWinner,
  ResumedBy,
  SignalName,
  StepOptions,
  StepTools,
  WaitOptions,
  WorkflowContext,
} from "../../define/context.js";
import { type ScheduleContext, toScheduleContext } from "../../define/schedule/schedule-context.js";
import { mapChildren, startChild } from "../children/children.js";
import type { Body } from "../step/attempt.js";
import { withHooks } from "../step/hooked-step.js";
import { callStep } from "../step/step.js";
import { TurnAttempt } from "../step/turn-attempt.js";
import type { StepTurn } from "../turn/ports.js";
import { copyOfInput } from "../turn/stored-input.js";
import type { CallScope } from "./call-scope.js";
import { createNestedCallError, trackedAttempt } from "./nested-calls.js";
import { waitKey } from "./wait-key.js";

export function createContext(scope: CallScope): WorkflowContext<any> {
  return new Context(scope);
}

const maxInstantMs = 8.64e15;

const noOptions = {};
const callOptions = new Set<string>(["added"] satisfies (keyof CallOptions)[]);
const waitOptions = new Set<string>(["timeout", "added"] satisfies (keyof WaitOptions)[]);
const reattemptOptions = new Set(["wait", "rewind"]);
const suspendOptions = new Set(["wait"]);

class Context implements WorkflowContext<any> {
  readonly #scope: CallScope;
  readonly #turn: StepTurn;
  #input: { readonly value: unknown } | null = null;
  /** The keys of timers and waits by their promises, so that `race` can withdraw the losers. */
  #keyByPromise: WeakMap<Promise<unknown>, string> | null = null;

  constructor(scope: CallScope) {
    this.#scope = scope;
    this.#turn = scope.turn;
  }

  get runId(): string {
    return this.#turn.runId;
  }

  get workflowName(): string {
    return this.#turn.definition.name;
  }

  /** Each attempt at a declared step gets its own copy, so that it does not see modifications by other attempts. */
  get input(): any {
    if (this.#scope.stepAttempt === null) return this.#turn.handler.input;
    this.#input ??= { value: copyOfInput(this.#turn) };
    return this.#input.value;
  }

  get schedule(): ScheduleContext | null {
    return toScheduleContext(this.#turn.run.schedule);
  }

  get attempt(): number {
    return this.#scope.stepAttempt?.attempt ?? this.#turn.deliveries;
  }

  get executionId(): string {
    return this.#scope.stepAttempt?.id ?? executionId(this.runId, this.workflowName, this.attempt);
  }

  get abortSignal(): AbortSignal {
    return (this.#scope.stepAttempt ?? this.#turn).abortSignal;
  }

  get log(): Logger {
    return (this.#scope.stepAttempt ?? this.#turn).log;
  }

  get resumedBy(): ResumedBy | null {
    return this.#scope.stepAttempt === null ? this.#turn.resumedBy("") : this.#scope.stepAttempt.resumedBy;
  }

  step<T>(name: string, fn: (step: StepTools) => T | Promise<T>, options?: StepOptions): Promise<T> {
    this.#checkFunction("step", name, fn);
    return callStep(this.#scope, name, this.#withHooks(fn), options) as Promise<T>;
  }

  transaction<T, Tx>(name: string, fn: (tx: Tx, step: StepTools) => T | Promise<T>, options?: StepOptions): Promise<T> {
    this.#checkFunction("transaction", name, fn);
    return callStep(this.#scope, name, this.#withHooks(fn as never), options, "transaction") as Promise<T>;
  }

  /** In declared workflows, hooks apply to the declared steps and not to calls inside their bodies. */
  #withHooks(body: Body): Body {
    const { definition, phase } = this.#turn;
    const { hooks, declared } = definition;
    if (hooks === null || declared !== null || phase.isFailing) return body;
    return withHooks(hooks, this.#turn, body, createContext);
  }

  /** Throws if the call is made inside the function of an undeclared step, which cannot make durable calls. */
  #checkOutsideOfSteps(call: string): void {
    const turn = this.#turn;
    if (turn.definition.declared !== null || this.#scope.forbidsRecords) return;
    const attempt = turn.flowControl.current ?? trackedAttempt();
    if (attempt instanceof TurnAttempt && attempt.turn === turn) throw createNestedCallError(call, attempt.key);
  }

  #checkFunction(method: string, name: string, fn: unknown): void {
    checkName("step", name);
    this.#checkOutsideOfSteps(`${method}("${name}")`);
    if (name === onFailureStep && this.#turn.definition.onFailure !== null && !this.#turn.phase.isFailing)
      throw new InvalidInputError(
        `"${name}" is the name under which onFailure is recorded; give the step another name.`,
      );
    if (typeof fn !== "function")
      throw new InvalidInputError(`ctx.${method}("${name}", …) needs a function, not ${typeof fn}.`);
  }

  sleep(name: string, duration: Duration, options: CallOptions = noOptions): Promise<void> {
    if (options !== noOptions) checkOptions(`ctx.sleep("${name}")`, options, callOptions);
    const ms = parseDuration(duration, `duration of sleep "${name}"`);
    return this.#startTimer(name, { ms }, { inMs: ms }, options.added === true);
  }

  sleepUntil(name: string, date: Date | number, options: CallOptions = noOptions): Promise<void> {
    if (options !== noOptions) checkOptions(`ctx.sleepUntil("${name}")`, options, callOptions);
    const until = Math.ceil(Number(date));
    if (!Number.isFinite(until) || Math.abs(until) > maxInstantMs) {
      throw new InvalidInputError(
        `ctx.sleepUntil("${name}", …) needs a valid Date, or milliseconds since 1970; to wait for a length of time call ctx.sleep("${name}", "2 days").`,
      );
    }
    return this.#startTimer(name, { until }, { at: until }, options.added === true);
  }

  #startTimer(
    name: string,
    data: { ms?: number; until?: number },
    due: { inMs?: number; at?: number },
    isAdded: boolean,
  ): Promise<void> {
    const checkedName = checkName("step", name);
    this.#checkOutsideOfSteps(`sleep("${name}")`);
    const key = this.#scope.takeKey(checkedName);
    const op = this.#scope.findRecorded(key, "timer");
    const result = this.#rememberKey(this.#scope.requestResult(key, isAdded) as Promise<void>, key);
    if (op === undefined)
      this.#scope.startWhenLive(key, isAdded, () =>
        this.#recordWaitStart(newEvent("timer.started", { node: key }, data), due),
      );
    this.#turn.scheduleIdleCheck();
    return result;
  }

  #recordWaitStart(startedEvent: NewEvent, due: { readonly inMs?: number; readonly at?: number }): void {
    if (!this.#turn.isDraining) this.#turn.pendingWrites.addWaitEvent(startedEvent, due);
    this.#turn.scheduleIdleCheck();
  }

  waitForSignal<Payload>(name: SignalName<Payload>, options?: WaitOptions): Promise<Payload | null> {
    return this.#waitForSignals([name], "any", options, (signals) => signals[0]?.payload as Payload);
  }

  waitForAny(names: readonly SignalName<any>[], options?: WaitOptions): Promise<AnySignal<any> | null> {
    return this.#waitForSignals(names, "any", options, (signals) => signals[0] as AnySignal<any>);
  }

  waitForAll(names: readonly SignalName<any>[], options?: WaitOptions): Promise<Record<string, any> | null> {
    return this.#waitForSignals(names, "all", options, (signals) =>
      Object.fromEntries(signals.map(({ name, payload }) => [name, payload])),
    );
  }

  #waitForSignals<T>(
    signalNames: readonly SignalName[],
    mode: "any" | "all",
    options: WaitOptions = noOptions,
    toResult: (signals: readonly AnySignal[]) => T,
  ): Promise<T | null> {
    const turn = this.#turn;
    const names = signalNames.map((signalName) =>
      checkName("signal", typeof signalName === "object" && signalName !== null ? signalName.signal : signalName),
    );
    if (options !== noOptions) checkOptions(`A wait for "${names.join(", ")}"`, options, waitOptions);
    if (names.length === 0) throw new InvalidInputError("There must be at least one signal to wait for.");
    this.#checkOutsideOfSteps(`waitForSignal("${names.join('", "')}")`);
    const timeoutMs = options.timeout === undefined ? undefined : parseDuration(options.timeout, "timeout of a wait");
    const key = this.#scope.takeKey(waitKey(names.join(mode === "any" ? "|" : "&")));
    const op = this.#scope.findRecorded(key, "wait");
    const isAdded = options.added === true;
    const signalsReceived = this.#scope.requestResult(key, isAdded);
    if (op === undefined) {
      const data = timeoutMs === undefined ? { names, mode } : { names, mode, timeoutMs };
      const due = timeoutMs === undefined ? {} : { inMs: timeoutMs };
      this.#scope.startWhenLive(key, isAdded, () =>
        this.#recordWaitStart(newEvent("wait.started", { node: key }, data), due),
      );
    }
    turn.scheduleIdleCheck();
    const result = signalsReceived.then((signals) => (signals === null ? null : toResult(signals as AnySignal[])));
    return this.#rememberKey(result, key);
  }

  #rememberKey<T>(promise: Promise<T>, key: string): Promise<T> {
    (this.#keyByPromise ??= new WeakMap()).set(promise, key);
    return promise;
  }

  async race<Arms extends Record<string, Promise<unknown>>>(arms: Arms): Promise<RaceWinner<Arms>> {
    const entries = Object.entries(arms);
    if (entries.length === 0) throw new InvalidInputError("ctx.race needs at least one arm.");
    try {
      return await Promise.race(
        entries.map(([name, arm]) => arm.then((value) => ({ name, value }) as RaceWinner<Arms>)),
      );
    } finally {
      for (const [, arm] of entries) this.#withdraw(arm);
    }
  }

  /** A timer or wait that lost the race must neither wake the run nor receive a signal. */
  #withdraw(arm: Promise<unknown>): void {
    const turn = this.#turn;
    const key = this.#keyByPromise?.get(arm);
    if (key === undefined || !turn.results.pending.has(key)) return;
    turn.results.forget(key);
    if (this.#scope.gate?.withdraw(key)) return turn.scheduleIdleCheck();
    const op = turn.state.ops.get(key);
    const canBeWithdrawn = op === undefined || (op.kind === "timer" && op.phase === "open") || op.kind === "wait";
    if (canBeWithdrawn && (op as { phase?: string } | undefined)?.phase !== "withdrawn") {
      (turn.withdrawnKeys ??= new Set()).add(key);
      turn.pendingWrites.events.push(newEvent("wait.withdrawn", { node: key }));
    }
    turn.scheduleIdleCheck();
  }

  async run<I, O>(child: ChildWorkflow<I, O>, ...args: ChildArgs<I, ChildOptions>): Promise<O> {
    return (await this.start(child, ...args)).result();
  }

  start<I, O>(child: ChildWorkflow<I, O>, ...[input, options]: ChildArgs<I, ChildOptions>): Promise<ChildHandle<O>> {
    this.#checkOutsideOfSteps("run or ctx.start");
    return startChild(this.#scope, child, input as I, options);
  }

  map<I, O>(child: ChildWorkflow<I, O>, items: readonly I[], options?: MapOptions): Promise<MapResult<O>> {
    this.#checkOutsideOfSteps("map");
    return mapChildren(this.#scope, child, items, options);
  }

  async branch<Cases extends Record<string, () => unknown>>(
    name: string,
    choose: () => (keyof Cases & string) | Promise<keyof Cases & string>,
    cases: Cases,
    options: CallOptions = noOptions,
  ): Promise<Awaited<ReturnType<Cases[keyof Cases]>>> {
    if (options !== noOptions) checkOptions(`ctx.branch("${name}")`, options, callOptions);
    const turn = this.#turn;
    const isAdded = options.added === true;
    const checkedName = checkName("step", name);
    this.#checkOutsideOfSteps(`branch("${name}")`);
    const key = this.#scope.takeKey(checkedName);
    const op = this.#scope.findRecorded(key, "branch");
    const recordedChoice = this.#scope.requestResult(key, isAdded) as Promise<keyof Cases & string>;
    if (op === undefined) {
      const untilLive = this.#scope.waitUntilLive(key, isAdded);
      if (untilLive !== undefined) await untilLive;
      if (!turn.isDraining)
        await this.#scope.startCall(key, async () => {
          const choice = await choose();
          checkCase(name, choice, cases);
          await turn.submit([newEvent("branch.chosen", { node: key }, { choice })]);
        });
    }
    turn.scheduleIdleCheck();
    const choice = await recordedChoice;
    checkCase(name, choice, cases);
    return (await (cases[choice] as () => unknown)()) as Awaited<ReturnType<Cases[keyof Cases]>>;
  }

  now(): Date {
    return new Date(this.#turn.results.now);
  }

  random(): number {
    return this.#scope.random();
  }

  uuid(): string {
    return seededUuid(() => this.random());
  }

  progress(done: number, total?: number, message?: string): void {
    this.#turn.progress(this.#scope.stepAttempt?.key ?? "", done, total, message);
  }

  patched(id: string): boolean {
    const turn = this.#turn;
    const key = this.#scope.patchKey(checkName("patch id", id));
    // The first result is reused for the whole turn, so that code that calls `patched` several times takes one path.
    const patches = (turn.handler.patches ??= new Map());
    const earlierAnswer = patches.get(key);
    if (earlierAnswer !== undefined) return earlierAnswer;
    const isRecorded = this.#scope.findRecorded(key, "patch") !== undefined;
    const isNew = !isRecorded && this.#scope.gate?.isReplaying !== true && !turn.isDraining;
    patches.set(key, isRecorded || isNew);
    if (isNew) {
      turn.pendingWrites.events.push(newEvent("patch.applied", { node: key }));
      turn.scheduleIdleCheck();
    }
    return isRecorded || isNew;
  }

  cancel(reason?: string): never {
    return this.#raiseFlowControl({ kind: "cancel", reason: checkReason(reason) });
  }

  /** After a resume, the handler continues past its recorded pause, whereas a step runs again and may pause again. */
  pause(reason?: string): never {
    const turn = this.#turn;
    const checkedReason = checkReason(reason);
    if (this.#scope.stepAttempt !== null)
      return this.#raiseFlowControl({ kind: "pause", reason: checkedReason, key: "" });
    const key = this.#scope.peekKey("pause");
    if (this.#scope.findRecorded(key, "pause") !== undefined) {
      this.#scope.takeKey("pause");
      turn.results.markRequested(key);
      return undefined as never;
    }
    return this.#raiseFlowControl({ kind: "pause", reason: checkedReason, key });
  }

  skip(): never {
    return this.#raiseFlowControl({ kind: "skip" });
  }

  reattempt(options: { readonly wait?: Duration; readonly rewind?: boolean } = {}): never {
    checkOptions("reattempt()", options, reattemptOptions);
    const waitMs = options.wait === undefined ? 0 : parseDuration(options.wait, "wait");
    return this.#raiseFlowControl({ kind: "reattempt", waitMs, rewind: options.rewind ?? false });
  }

  finish(output?: unknown): never {
    return this.#raiseFlowControl({ kind: "finish", output });
  }

  suspend(options: { readonly wait?: Duration } = {}): never {
    checkOptions("suspend()", options, suspendOptions);
    return this.#raiseFlowControl({
      kind: "suspend",
      waitMs: options.wait === undefined ? 0 : parseDuration(options.wait, "wait"),
    });
  }

  /** The interrupt is registered before it is thrown, so that a `catch` in user code cannot suppress it. */
  #raiseFlowControl(action: FlowControlAction): never {
    const interrupt = new FlowControlInterrupt(action);
    this.#scope.raise(interrupt);
    throw interrupt;
  }
}

// `step`, `transaction` and the sleeps are not listed: they return the promise of a `Deferred`, which already guards
// against unhandled rejections, and a second guard would take 2 % of the time.
guardMethods(Context, ["waitForSignal", "waitForAny", "waitForAll", "race", "run", "start", "map", "branch"]);

function checkCase(name: string, choice: string, cases: object): void {
  if (Object.hasOwn(cases, choice)) return;
  throw new InvalidInputError(
    `Branch "${name}" chose "${choice}", which is not one of its cases: ${Object.keys(cases).join(", ")}.`,
  );
}
