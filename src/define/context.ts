/** What workflow code sees. The worker implements it; here is only its shape, so that definitions need no engine. */
import type { Duration } from "../core/naming/duration.js";
import type { RetryOptions } from "../core/naming/retry-policy.js";
import type { HeroRef } from "./hero.js";
import type { RunnableClass, RunnableDefinition } from "./runnable.js";

/** Anything with these methods: `console`, pino, winston. */
export interface Logger {
  debug(...args: unknown[]): void;
  info(...args: unknown[]): void;
  warn(...args: unknown[]): void;
  error(...args: unknown[]): void;
}

/** The signal that ended a pause: what `PauseError(message, { resumeOn })` had waited for. */
export interface ResumedBy {
  readonly signal: string;
  readonly payload: any;
}

/** What the function of one step gets. */
export interface StepTools {
  /** The same for every attempt that Pawl could not see the end of, also in a retry of the run: hand it to the payment provider. */
  readonly idempotencyKey: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** Fires on timeout, when the run is canceled, when the worker must let go. */
  readonly abortSignal: AbortSignal;
  readonly log: Logger;
  /**
   * The signal that resumed the run after this step had thrown a `PauseError` with `resumeOn`; null when it was resumed
   * otherwise, or never paused here. It stays the same for further attempts, until the step ends or pauses the run again.
   */
  readonly resumedBy: ResumedBy | null;
  /** Shows how far the step is; kept as one row, overwritten. */
  progress(done: number, total?: number, message?: string): void;
}

/** What any call can be told. */
export interface CallOptions {
  /**
   * The call was put in before others that open runs have made already, and is to be made there, too. Without it such a
   * run is paused: the call could be a recorded one under another name.
   */
  readonly added?: boolean;
}

export interface StepOptions<Output = any> extends CallOptions {
  /** What happens when it throws. Default: 4 attempts, 1 s doubling, jitter. */
  readonly retry?: RetryOptions;
  /** Per attempt. Afterwards the attempt counts as failed, whatever its code still does. */
  readonly timeout?: Duration;
  /** Recorded beside the result, for readers of the history. */
  readonly input?: unknown;
  /**
   * When the worker dies while the step runs: "rerun" (default) runs it again; "pause" records its start first, so that
   * it runs at most once, and pauses the run for a person to decide: `resume()`, `skip()` or `resume({ output })`.
   */
  readonly onCrash?: "rerun" | "pause";
  /**
   * Undoes the step when the run fails or is canceled after it: in reverse order of completion, recorded and retried
   * like a step, and so run at least once: `idempotencyKey` is the same for all attempts at undoing. If it fails for good
   * the run is paused, and goes on undoing when it is resumed.
   */
  compensate?(step: StepTools, output: Output): unknown;
}

export interface WaitOptions extends CallOptions {
  /** Without it the run waits for as long as it takes. */
  readonly timeout?: Duration;
}

/** A signal's name with the type of its payload: `const approved = signal<{ by: string }>("approved")`. */
export interface SignalHandle<Payload = unknown> {
  readonly signal: string;
  /** Carries the type only. */
  readonly payload?: Payload;
}

export type SignalName<Payload = unknown> = string | SignalHandle<Payload>;

export interface SignalOptions {
  /** The same key a second time is not delivered again: the id of the webhook, of the click. */
  readonly key?: string;
  /**
   * The caller's own open transaction (one connection, not a pool): the signal is sent if and when it commits. Commit soon:
   * until then the worker of the run may have to wait.
   */
  readonly tx?: unknown;
}

/** A signal that carries nothing, or whose payload has no known type, needs no payload. */
export type SignalArgs<Payload> = [undefined] extends [Payload]
  ? [payload?: Payload, options?: SignalOptions]
  : [payload: Payload, options?: SignalOptions];

export interface AnySignal<Payload = unknown> {
  readonly name: string;
  readonly payload: Payload;
}

/** A child that was started and not awaited yet. */
export interface ChildHandle<Output> {
  readonly runId: string;
  /** Throws RunFailedError or RunCanceledError when it did not complete. */
  result(): Promise<Output>;
}

export interface ChildOptions extends CallOptions {
  /** Who it is about. Children do not count against the one active run per hero. */
  readonly hero?: HeroRef;
  /** Its name in the parent's log; default: the child workflow's name. */
  readonly name?: string;
  readonly tags?: readonly string[];
  readonly priority?: number;
}

export interface MapOptions extends CallOptions {
  readonly name?: string;
  /** How many children may run at a time; default: all. */
  readonly concurrency?: number;
  /** How many may fail before the whole map does; default: none. */
  readonly tolerate?: number;
}

export interface MapFailure {
  readonly index: number;
  readonly runId: string;
  readonly error: Error;
}

/** The outputs in the order of the items; a tolerated failure leaves `undefined` at its place and is listed. */
export type MapResult<Output> = Output[] & { readonly failures: readonly MapFailure[] };

export interface RaceWinner<Arms extends Record<string, unknown>> {
  readonly name: keyof Arms & string;
  readonly value: Awaited<Arms[keyof Arms]>;
}

/** A child without input needs none. */
export type ChildArgs<Input, Options> = [Input] extends [void]
  ? [input?: Input, options?: Options]
  : [input: Input, options?: Options];

type PayloadOf<Name> = Name extends SignalHandle<infer Payload> ? Payload : unknown;

export type ChildWorkflow<Input, Output> = RunnableDefinition<Input, Output> | RunnableClass<Input, Output> | string;

/** The `ctx` of a workflow. Everything awaited under it survives crashes. */
export interface WorkflowContext<Input = unknown> {
  readonly runId: string;
  readonly workflowName: string;
  readonly input: Input;
  /** How often a worker began with this run since it last waited: above 1 after a crash. */
  readonly attempt: number;
  readonly executionId: string;
  readonly abortSignal: AbortSignal;
  readonly log: Logger;
  /**
   * In a step of a class or graph: the signal that ended the pause this step had asked for with a `PauseError`. In the
   * handler of a function: the same for a `PauseError` that the handler threw outside of its steps. Otherwise null.
   */
  readonly resumedBy: ResumedBy | null;

  /** Runs `fn` and records its result; once recorded it never runs again. A name used twice gets `#2`, `#3`… */
  step<T>(name: string, fn: (step: StepTools) => T | Promise<T>, options?: StepOptions<T>): Promise<T>;
  /** A step whose own writes through `tx` commit together with its record: exactly once. */
  transaction<T, Tx = any>(
    name: string,
    fn: (tx: Tx, step: StepTools) => T | Promise<T>,
    options?: StepOptions<T>,
  ): Promise<T>;

  sleep(name: string, duration: Duration, options?: CallOptions): Promise<void>;
  sleepUntil(name: string, date: Date | number, options?: CallOptions): Promise<void>;

  /** The payload of the next signal of this name; null after the timeout. */
  waitForSignal<Payload = unknown>(name: SignalName<Payload>, options?: WaitOptions): Promise<Payload | null>;
  waitForAny<const Names extends readonly SignalName<any>[]>(
    names: Names,
    options?: WaitOptions,
  ): Promise<AnySignal<PayloadOf<Names[number]>> | null>;
  /** One signal of each name, as an object by name; null after the timeout. */
  waitForAll<const Names extends readonly SignalName<any>[]>(
    names: Names,
    options?: WaitOptions,
  ): Promise<Record<string, PayloadOf<Names[number]>> | null>;
  /** The first of several: waits that lost are withdrawn. `ctx.race({ paid: ctx.waitForSignal("paid"), late: ctx.sleep("late", "1 day") })` */
  race<Arms extends Record<string, Promise<unknown>>>(arms: Arms): Promise<RaceWinner<Arms>>;

  /** Runs another workflow as a child, with a log of its own, and waits for its result. */
  run<I, O>(child: ChildWorkflow<I, O>, ...args: ChildArgs<I, ChildOptions>): Promise<O>;
  /** Starts a child without waiting for it. A child that still runs when its parent ends is canceled. */
  start<I, O>(child: ChildWorkflow<I, O>, ...args: ChildArgs<I, ChildOptions>): Promise<ChildHandle<O>>;
  /** One child per item, on any worker. */
  map<I, O>(child: ChildWorkflow<I, O>, items: readonly I[], options?: MapOptions): Promise<MapResult<O>>;

  /** Chooses once, records the choice, runs that case. */
  branch<Cases extends Record<string, () => unknown>>(
    name: string,
    choose: () => (keyof Cases & string) | Promise<keyof Cases & string>,
    cases: Cases,
    options?: CallOptions,
  ): Promise<Awaited<ReturnType<Cases[keyof Cases]>>>;

  /** The time of the last event that reached this code; the same on replay. */
  now(): Date;
  random(): number;
  uuid(): string;
  progress(done: number, total?: number, message?: string): void;
  /** True for runs that get here with the new code, false for those that had passed it before the patch existed. */
  patched(id: string): boolean;

  cancel(reason?: string): never;
  pause(reason?: string): never;
  /** Inside a step: passes over the step. Outside: completes the run without output. */
  skip(): never;
  /** Inside a step: runs the step again. Outside: runs the handler again; with `rewind` it forgets its recorded steps. */
  reattempt(options?: { readonly wait?: Duration; readonly rewind?: boolean }): never;
  finish(output?: unknown): never;
  suspend(options?: { readonly wait?: Duration }): never;
}
