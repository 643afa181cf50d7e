/** The types of `ctx` and of the arguments of its calls. The worker implements them, so definitions do not import it. */
import type { Duration } from "../core/naming/duration.js";
import type { RetryOptions } from "../core/naming/retry-policy.js";
import type { CallOptions } from "./call-options.js";
import type { ChildArgs, ChildHandle, ChildOptions, ChildWorkflow, MapOptions, MapResult } from "./children.js";
import type { LimitDefinition } from "./limit.js";
import type { ScheduleContext } from "./schedule/schedule-context.js";

/** A logger: any object with these four methods, such as `console`, pino or winston. */
export interface Logger {
  /** Logs details, such as every transition of a run. */
  debug(...args: unknown[]): void;
  /** Logs normal operation. */
  info(...args: unknown[]): void;
  /** Logs a problem that needs attention, although work continues. */
  warn(...args: unknown[]): void;
  /** Logs a failure. */
  error(...args: unknown[]): void;
}

/** The signal that ended a pause which your code requested with `PauseError(message, { resumeOn })`. */
export interface ResumedBy {
  /** The name of the signal. */
  readonly signal: string;
  /** The payload that the signal was sent with. */
  readonly payload: any;
}

/** The argument of a step's function. */
export interface StepTools {
  /**
   * A key for other systems, such as a payment provider. It is the same for all attempts at this step, also in a retry of
   * the run.
   */
  readonly idempotencyKey: string;
  /** The number of this attempt, from 1. */
  readonly attempt: number;
  /** Fires when the attempt times out, when the run is canceled and when the worker has to give up the run. */
  readonly abortSignal: AbortSignal;
  /** The logger that was given to `connect`. */
  readonly log: Logger;
  /**
   * The signal that resumed the run after this step threw a `PauseError` with `resumeOn`; null if the run was resumed in
   * another way, or this step did not pause it. The value stays the same until the step ends or pauses the run again.
   */
  readonly resumedBy: ResumedBy | null;
  /** Stores the progress of the step, for `run.progress()`. Each call overwrites the progress of the previous call. */
  progress(done: number, total?: number, message?: string): void;
  /**
   * Says how many units of the rate of its limit the attempt has used, in place of the `units` of the step: the next step
   * waits longer or less. The last call counts.
   */
  spent(units: number): void;
}

/** Options of `ctx.step` and `ctx.transaction`. */
export interface StepOptions<Output = any> extends CallOptions {
  /** How often and how soon the step is tried again after it throws. Default: the workflow's `retry`. */
  readonly retry?: RetryOptions;
  /** The time limit of each attempt. An attempt that exceeds it fails, even if its code still runs. Default: none. */
  readonly timeout?: Duration;
  /** A value that is recorded with the result, for readers of the history. */
  readonly input?: unknown;
  /**
   * What happens when the worker dies during the step. `"rerun"` (default) runs the step again. `"pause"` runs it at most
   * once: its start is recorded first, and the run is paused until an operator calls `resume()`, `skip()` or
   * `resume({ output })`.
   */
  readonly onCrash?: "rerun" | "pause";
  /**
   * The limit in which each attempt needs a slot, made by `limit(…)`. The step holds it while its body runs; while it waits
   * for one, the run stays with its worker.
   */
  readonly limit?: LimitDefinition;
  /** How much of the rate of the limit an attempt takes. Default: 1. */
  readonly units?: number;
  /**
   * Undoes the step when the run fails or is canceled later. Compensations run in reverse order of completion, are
   * retried like steps and run at least once; their `idempotencyKey` differs from the step's and is the same for all
   * attempts. If the last attempt at a compensation fails, the run is paused, and `resume()` tries it again.
   */
  compensate?(step: StepTools, output: Output): unknown;
}

/** Options of the waits for signals. */
export interface WaitOptions extends CallOptions {
  /** How long to wait; after that the result is null. Default: without limit. */
  readonly timeout?: Duration;
}

/** A signal's name with the type of its payload, made by `signal<Payload>(name)`. */
export interface SignalHandle<Payload = unknown> {
  /** The name of the signal. */
  readonly signal: string;
  /** Exists only for the compiler, to carry the type of the payload; never set. */
  readonly payload?: Payload;
}

/** A signal, by its name or by its handle. */
export type SignalName<Payload = unknown> = string | SignalHandle<Payload>;

/** Options of `run.signal` and `pawl.signal`. */
export interface SignalOptions {
  /** A signal with the same key is delivered to the run once: the id of the webhook or of the click, for example. */
  readonly key?: string;
  /**
   * Your own open transaction (one connection, not a pool): the signal is sent if and when the transaction commits. Commit
   * soon, because the worker of the run may have to wait until then.
   */
  readonly tx?: unknown;
  /** Who sends it, for the log of the run. */
  readonly by?: string | undefined;
  /** Why it is sent, for the log of the run. */
  readonly reason?: string | undefined;
}

/** The arguments after the name of a signal. The payload may be left out if its type allows `undefined`. */
export type SignalArgs<Payload> = [undefined] extends [Payload]
  ? [payload?: Payload, options?: SignalOptions]
  : [payload: Payload, options?: SignalOptions];

/** The signal that `ctx.waitForAny` received. */
export interface AnySignal<Payload = unknown> {
  /** The name of the signal. */
  readonly name: string;
  /** The payload that it was sent with. */
  readonly payload: Payload;
}

/** The arm that won `ctx.race`. */
export interface RaceWinner<Arms extends Record<string, unknown>> {
  /** The name of the arm. */
  readonly name: keyof Arms & string;
  /** The value that the promise of the arm resolved to. */
  readonly value: Awaited<Arms[keyof Arms]>;
}

type PayloadOf<Name> = Name extends SignalHandle<infer Payload> ? Payload : unknown;

/**
 * The `ctx` of a workflow. Its asynchronous calls are recorded: after a crash or a wait, a worker calls the workflow's code
 * again, and the calls return the recorded results.
 */
export interface WorkflowContext<Input = unknown> {
  /** The id of the run. */
  readonly runId: string;
  /** The name of the workflow. */
  readonly workflowName: string;
  /** The input that the run was started with, as the schema of the workflow returned it. */
  readonly input: Input;
  /** The occurrence that the run stands for; null if no schedule started it. A retry of the run has the same. */
  readonly schedule: ScheduleContext | null;
  /**
   * In a step of a class or graph: the number of this attempt, from 1. In the handler of a function: how often a worker
   * has taken the run since it last waited, so above 1 after a crash.
   */
  readonly attempt: number;
  /** The id of this execution of the step, or of the handler; see `run.executions()`. */
  readonly executionId: string;
  /** Fires when the step times out, when the run is canceled and when the worker has to give up the run. */
  readonly abortSignal: AbortSignal;
  /** The logger that was given to `connect`. In the handler of a function, log lines appear again on replay. */
  readonly log: Logger;
  /**
   * The signal that ended a pause which this step, or the handler outside of its steps, requested with a `PauseError` and
   * `resumeOn`; otherwise null.
   */
  readonly resumedBy: ResumedBy | null;
  /**
   * Runs `fn` and records its result; once recorded, `fn` never runs again. If `fn` throws, it is retried as `retry` says,
   * and after the last attempt its error is thrown here. A name that is used again is recorded as `name#2`, `name#3` ….
   *
   * @example
   * ```ts
   * const receipt = await ctx.step("charge", ({ idempotencyKey }) => payments.charge(4200, { idempotencyKey }), {
   *   retry: { attempts: 5, initial: "1s", factor: 2 },
   *   timeout: "30s",
   *   compensate: (_step, receipt) => payments.refund(receipt.id),
   * });
   * ```
   */
  step<T>(name: string, fn: (step: StepTools) => T | Promise<T>, options?: StepOptions<T>): Promise<T>;
  /**
   * A step whose writes through `tx` commit together with its record, so they happen exactly once. `tx` is a connection
   * to the database of Pawl; `COMMIT` and `ROLLBACK` on it throw a TransactionError.
   *
   * @example
   * ```ts
   * await ctx.transaction("mark_paid", async (tx: PoolClient) => {
   *   await tx.query("UPDATE orders SET paid = true WHERE id = $1", [ctx.input.orderId]);
   * });
   * ```
   */
  transaction<T, Tx = any>(
    name: string,
    fn: (tx: Tx, step: StepTools) => T | Promise<T>,
    options?: StepOptions<T>,
  ): Promise<T>;

  /**
   * Waits for a length of time, from milliseconds to years. The run is parked meanwhile, and a crash does not restart
   * the wait.
   *
   * @example
   * ```ts
   * await ctx.sleep("cool_down", "2 days");
   * ```
   */
  sleep(name: string, duration: Duration, options?: CallOptions): Promise<void>;
  /**
   * Waits until an instant: a Date, or milliseconds since 1970. An instant in the past ends the wait at once.
   *
   * @example
   * ```ts
   * await ctx.sleepUntil("new_year", new Date("2030-01-01"));
   * ```
   */
  sleepUntil(name: string, date: Date | number, options?: CallOptions): Promise<void>;

  /**
   * Waits for a signal and returns its payload, or null after the timeout. If a signal with this name arrived earlier and was
   * not consumed, the call returns it at once.
   *
   * @example
   * ```ts
   * const approval = await ctx.waitForSignal<{ by: string }>("approved", { timeout: "7 days" });
   * if (approval === null) throw new PermanentError("The order was not approved in time.");
   * ```
   */
  waitForSignal<Payload = unknown>(name: SignalName<Payload>, options?: WaitOptions): Promise<Payload | null>;
  /**
   * Waits for the first of several signals; null after the timeout.
   *
   * @example
   * ```ts
   * const answer = await ctx.waitForAny(["signed", "refused"], { timeout: "1 day" });
   * if (answer?.name === "signed") await ctx.step("archive", () => archive(answer.payload));
   * ```
   */
  waitForAny<const Names extends readonly SignalName<any>[]>(
    names: Names,
    options?: WaitOptions,
  ): Promise<AnySignal<PayloadOf<Names[number]>> | null>;
  /**
   * Waits for one signal of each name and returns the payloads by name; null after the timeout.
   *
   * @example
   * ```ts
   * const papers = await ctx.waitForAll(["passport", "address"]);
   * ```
   */
  waitForAll<const Names extends readonly SignalName<any>[]>(
    names: Names,
    options?: WaitOptions,
  ): Promise<Record<string, PayloadOf<Names[number]>> | null>;
  /**
   * Waits for the first of several promises of `ctx` to settle and returns its name and value; if it rejects, throws its
   * error. The other sleeps and waits are withdrawn: they do not wake the run and consume no signal.
   *
   * @example
   * ```ts
   * const { name } = await ctx.race({ paid: ctx.waitForSignal("paid"), late: ctx.sleep("late", "7 days") });
   * ```
   */
  race<Arms extends Record<string, Promise<unknown>>>(arms: Arms): Promise<RaceWinner<Arms>>;

  /**
   * Runs another workflow as a child run, on any worker, and returns its output. Throws RunFailedError or
   * RunCanceledError if the child did not complete.
   *
   * @example
   * ```ts
   * const label = await ctx.run(printLabel, { orderId: ctx.input.orderId });
   * ```
   */
  run<I, O>(child: ChildWorkflow<I, O>, ...args: ChildArgs<I, ChildOptions>): Promise<O>;
  /**
   * Starts a child run without waiting for it. A child that is still open when its parent ends is canceled.
   *
   * @example
   * ```ts
   * const child = await ctx.start(printLabel, { orderId: ctx.input.orderId });
   * await ctx.step("pack", () => pack(ctx.input.orderId));
   * const label = await child.result();
   * ```
   */
  start<I, O>(child: ChildWorkflow<I, O>, ...args: ChildArgs<I, ChildOptions>): Promise<ChildHandle<O>>;
  /**
   * Runs one child per item, on any worker, and returns their outputs; at most 100,000 items. If more children fail than
   * `tolerate` allows, the other children are canceled and a PermanentError is thrown.
   *
   * @example
   * ```ts
   * const results = await ctx.map(importRow, rows, { concurrency: 10, tolerate: 5 });
   * console.log(results.length, results.failures.length);
   * ```
   */
  map<I, O>(child: ChildWorkflow<I, O>, items: readonly I[], options?: MapOptions): Promise<MapResult<O>>;

  /**
   * Calls `choose` once, records the case that it returns and runs that case. On replay the recorded case is used.
   *
   * @example
   * ```ts
   * await ctx.branch("route", () => (ctx.input.cents > 10_000 ? "review" : "auto"), {
   *   review: () => ctx.waitForSignal("reviewed"),
   *   auto: () => ctx.step("approve", () => approve(ctx.input.orderId)),
   * });
   * ```
   */
  branch<Cases extends Record<string, () => unknown>>(
    name: string,
    choose: () => (keyof Cases & string) | Promise<keyof Cases & string>,
    cases: Cases,
    options?: CallOptions,
  ): Promise<Awaited<ReturnType<Cases[keyof Cases]>>>;
  /** The time of the last event of the log that the code has received; the same on replay. */
  now(): Date;
  /** A random number from 0 up to, but not including, 1; the same on replay. */
  random(): number;
  /** A random UUID; the same on replay. */
  uuid(): string;
  /** Stores the progress of the run, or of the step of a class or graph, for `run.progress()`. Overwrites earlier progress. */
  progress(done: number, total?: number, message?: string): void;
  /**
   * Returns false for runs that had passed this call before the patch was deployed, otherwise true. Branch on it to change
   * the code of a workflow that has open runs.
   */
  patched(id: string): boolean;
  /** Cancels the run. Completed steps are compensated first, and its children are canceled. */
  cancel(reason?: string): never;
  /** Pauses the run until `run.resume()`. A step that called it then runs again; a handler continues after the call. */
  pause(reason?: string): never;
  /** In a step: skips the step, whose result is `undefined`. In the handler: completes the run without output. */
  skip(): never;
  /** In a step: runs the step again, which does not count as a failure. In the handler: runs the handler again. */
  reattempt(options?: {
    /** How long to wait before the next attempt. Default 0. */
    readonly wait?: Duration;
    /** Discards the calls that the step, or the handler, has recorded, so that they are made again. Default false. */
    readonly rewind?: boolean;
  }): never;
  /** Completes the run with this output. */
  finish(output?: unknown): never;
  /** Ends this execution of the step, or of the handler, and continues in a new execution. */
  suspend(options?: {
    /** How long to wait before the new execution. Default 0. */
    readonly wait?: Duration;
  }): never;
}
