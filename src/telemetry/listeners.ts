/**
 * Subscribes exporters to Pawl's channels. An exception in a listener would end the process, because Node rethrows it
 * where no code can catch it. So this file catches the exceptions of exporters, and logs only the first one.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Logger } from "../define/context.js";
import type { InterceptedCall, InterceptedStart } from "./call-interception.js";
import { defaultLogger } from "./logger.js";
import type { RunEvent, RunStatusChange } from "./publish.js";
import type { OccurrenceChange } from "./publish-occurrence.js";

/** Receives everything that becomes durable in this process. */
export interface Listener {
  onEvent(event: RunEvent): void;
  onStatus?(change: RunStatusChange): void;
  onOccurrence?(change: OccurrenceChange): void;
}

/** Wraps calls and starts, see `call-interception.ts`. */
interface CallInterceptor {
  interceptCall(call: InterceptedCall): void;
  interceptStart(start: InterceptedStart): void;
}

/** An exporter that listens to the runs of this process until you stop it. */
export interface TelemetrySubscription {
  /** Stops listening. Resolves when everything received before is exported; call it before `pawl.close()`. */
  stop(): Promise<void>;
}

/** Options of every exporter. */
export interface TelemetryOptions {
  /** Gets one warning when an export, or a read that it needs, fails for the first time. Default: the console. */
  readonly logger?: Pick<Logger, "warn">;
}

/** Runs exporters so that their failures never reach the code that published the event. */
export class ErrorGuard {
  readonly #activity: string;
  readonly #logger: Pick<Logger, "warn">;
  readonly #pendingExports = new Set<Promise<void>>();
  #hasWarned = false;

  /** @param activity what the exporter does, such as "Tracing", for the warning */
  constructor(activity: string, { logger = defaultLogger }: TelemetryOptions) {
    this.#activity = activity;
    this.#logger = logger;
  }

  runGuarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.warnOnce(error);
    }
  }

  /** Calls `work` with the value: at once, or when its promise resolves. */
  whenResolved<Value>(value: Value | Promise<Value>, work: (value: Value) => void): void {
    if (!(value instanceof Promise)) return this.runGuarded(() => work(value));
    const done = value
      .then(work)
      .catch((error) => this.warnOnce(error))
      .finally(() => this.#pendingExports.delete(done));
    this.#pendingExports.add(done);
  }

  warnOnce(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    try {
      this.#logger.warn(
        `${this.#activity} of runs failed. The runs are not affected; further failures are not logged.`,
        error,
      );
    } catch {
      // The failure of a logger cannot be logged.
    }
  }

  async waitForPending(): Promise<void> {
    while (this.#pendingExports.size > 0) await Promise.all(this.#pendingExports);
  }
}

/** @returns a function that stops intercepting */
export function interceptCalls(interceptor: CallInterceptor, guard: ErrorGuard): () => void {
  const onCall = (message: unknown) => guard.runGuarded(() => interceptor.interceptCall(message as InterceptedCall));
  const onStart = (message: unknown) => guard.runGuarded(() => interceptor.interceptStart(message as InterceptedStart));
  subscribe("pawl:call", onCall);
  subscribe("pawl:start", onStart);
  return () => {
    unsubscribe("pawl:call", onCall);
    unsubscribe("pawl:start", onStart);
  };
}

export function listen(listener: Listener, guard: ErrorGuard): TelemetrySubscription {
  const onEvent = (message: unknown) => guard.runGuarded(() => listener.onEvent(message as RunEvent));
  const onStatus = (message: unknown) => guard.runGuarded(() => listener.onStatus?.(message as RunStatusChange));
  const onOccurrence = (message: unknown) =>
    guard.runGuarded(() => listener.onOccurrence?.(message as OccurrenceChange));
  subscribe("pawl:event", onEvent);
  subscribe("pawl:run", onStatus);
  subscribe("pawl:occurrence", onOccurrence);
  return {
    stop: () => {
      unsubscribe("pawl:event", onEvent);
      unsubscribe("pawl:run", onStatus);
      unsubscribe("pawl:occurrence", onOccurrence);
      return guard.waitForPending();
    },
  };
}
