/**
 * How long a statement may go unanswered. A connection can swallow every packet without ever breaking; a worker that waits
 * on one loses its lease while new connections would work. The limit is therefore tied to the lease.
 */
import type { Runtime, Timer } from "../../runtime/runtime.js";

/** No lease depends on it then. */
const withoutWorkersMs = 10_000;
/** Below this a busy machine would be taken for a silent server. */
const shortestMs = 1_000;

/** The connection is of no use; whether the statement was done is not known. */
export class NoAnswerError extends Error {
  readonly code = "ETIMEDOUT";

  constructor(waitedMs: number) {
    super(`The server has not answered for ${waitedMs} ms.`);
  }
}

export interface Awaited {
  /**
   * Whether the server says, asked on another connection, that it is still at work on it: a statement that waits for a lock
   * is slow, not lost.
   */
  isAtWork(): Promise<boolean>;
  /** Drops the connection. */
  cut(error: NoAnswerError): void;
}

export class StatementDeadline {
  readonly #runtime: Runtime;
  readonly #leases = new Map<string, number>();
  #ms = withoutWorkersMs;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  get ms(): number {
    return this.#ms;
  }

  enlisted(workerId: string, leaseMs: number): void {
    this.#leases.set(workerId, leaseMs);
    this.#compute();
  }

  retired(workerId: string): void {
    this.#leases.delete(workerId);
    this.#compute();
  }

  /** A third: a heartbeat that is swallowed is noticed, and made again, before the lease is over. */
  #compute(): void {
    const shortestLeaseMs = Math.min(...this.#leases.values());
    this.#ms = this.#leases.size === 0 ? withoutWorkersMs : Math.max(shortestMs, Math.floor(shortestLeaseMs / 3));
  }

  /** What comes of the call; NoAnswerError when the deadline passes and the server is not at work on it. */
  within<T>(call: Promise<T>, awaited: Awaited): Promise<T> {
    const runtime = this.#runtime;
    return new Promise((resolve, reject) => {
      const since = runtime.monotonic();
      let isSettled = false;
      let timer: Timer;
      const settle = () => {
        isSettled = true;
        runtime.clearTimeout(timer);
      };
      const look = async () => {
        const isAtWork = await awaited.isAtWork().catch(() => false);
        if (isSettled) return;
        if (isAtWork) return watch();
        settle();
        const error = new NoAnswerError(Math.round(runtime.monotonic() - since));
        awaited.cut(error);
        reject(error);
      };
      const watch = () => {
        timer = runtime.setTimeout(() => void look(), this.#ms);
      };
      watch();
      call.then(
        (value) => {
          settle();
          resolve(value);
        },
        (error: unknown) => {
          settle();
          reject(error);
        },
      );
    });
  }
}
