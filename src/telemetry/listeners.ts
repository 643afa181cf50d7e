/**
 * Listens on Pawl's channels for those who make something of what they hear. An exception in a listener would end the
 * process (Node throws it again where nothing can catch it): here it is caught, and told once.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Logger } from "../define/context.js";
import type { InterceptedCall, InterceptedStart } from "./call-interception.js";
import { defaultLogger } from "./logger.js";
import type { RunEvent, RunStatusChange } from "./publish.js";

/** Hears of everything that becomes durable in this process. */
export interface Listener {
  onEvent(told: RunEvent): void;
  onStatus?(told: RunStatusChange): void;
}

/** Takes part in calls and starts, see `around.ts`. */
interface CallInterceptor {
  interceptCall(told: InterceptedCall): void;
  interceptStart(told: InterceptedStart): void;
}

/** Something that listens until it is told to stop. */
export interface TelemetrySubscription {
  /** Listens no more. Resolves when what was heard before has been dealt with: before the database is let go of. */
  stop(): Promise<void>;
}

export interface TelemetryOptions {
  /** Is told, once, that an exporter or a look-up fails; default: the console. */
  readonly logger?: Pick<Logger, "warn">;
}

/** Does what others asked for, without their ever hearing of its failures. */
export class ErrorGuard {
  readonly #activity: string;
  readonly #logger: Pick<Logger, "warn">;
  readonly #pending = new Set<Promise<void>>();
  #hasWarned = false;

  /** @param what "Tracing" */
  constructor(what: string, { logger = defaultLogger }: TelemetryOptions) {
    this.#activity = what;
    this.#logger = logger;
  }

  runGuarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.warnOnce(error);
    }
  }

  /** Goes on with the value, at once if it is there. */
  whenResolved<Value>(value: Value | Promise<Value>, work: (value: Value) => void): void {
    if (!(value instanceof Promise)) return this.runGuarded(() => work(value));
    const done = value
      .then(work)
      .catch((error) => this.warnOnce(error))
      .finally(() => this.#pending.delete(done));
    this.#pending.add(done);
  }

  warnOnce(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    try {
      this.#logger.warn(
        `${this.#activity} of runs failed. The runs go on; further failures of it are not told.`,
        error,
      );
    } catch {
      // A logger that fails cannot be told of.
    }
  }

  async waitForPending(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }
}

/** Returns how to stop. */
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
  subscribe("pawl:event", onEvent);
  subscribe("pawl:run", onStatus);
  return {
    stop: () => {
      unsubscribe("pawl:event", onEvent);
      unsubscribe("pawl:run", onStatus);
      return guard.waitForPending();
    },
  };
}
