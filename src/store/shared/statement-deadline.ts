/**
 * How long a statement may go unanswered. A connection can swallow every packet without ever breaking; a worker that waits
 * on one loses its lease while new connections would work. The limit is therefore tied to the lease.
 */
import type { Runtime, Timer } from "../../runtime/runtime.js";

/** No lease depends on it then. */
const defaultDeadlineMs = 10_000;
/** Below this a busy machine would be taken for a silent server. */
const minDeadlineMs = 1_000;

/** The connection is of no use; whether the statement was done is not known. */
export class NoAnswerError extends Error {
  readonly code = "ETIMEDOUT";

  constructor(waitedMs: number) {
    super(`The server has not answered for ${waitedMs} ms.`);
  }
}

export interface PendingStatement {
  /**
   * Whether the server says, asked on another connection, that it is still at work on it: a statement that waits for a lock
   * is slow, not lost.
   */
  isExecuting(): Promise<boolean>;
  /** Drops the connection. */
  dropConnection(error: NoAnswerError): void;
}

export class StatementDeadline {
  readonly #runtime: Runtime;
  readonly #leases = new Map<string, number>();
  #ms = defaultDeadlineMs;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  get ms(): number {
    return this.#ms;
  }

  addLease(workerId: string, leaseMs: number): void {
    this.#leases.set(workerId, leaseMs);
    this.#recompute();
  }

  removeLease(workerId: string): void {
    this.#leases.delete(workerId);
    this.#recompute();
  }

  /** A third: a heartbeat that is swallowed is noticed, and made again, before the lease is over. */
  #recompute(): void {
    const shortestLeaseMs = Math.min(...this.#leases.values());
    this.#ms = this.#leases.size === 0 ? defaultDeadlineMs : Math.max(minDeadlineMs, Math.floor(shortestLeaseMs / 3));
  }

  /** What comes of the call; NoAnswerError when the deadline passes and the server is not at work on it. */
  within<T>(call: Promise<T>, statement: PendingStatement): Promise<T> {
    const runtime = this.#runtime;
    return new Promise((resolve, reject) => {
      const startedAt = runtime.monotonic();
      let isFinished = false;
      let timer: Timer;
      const finish = () => {
        isFinished = true;
        runtime.clearTimeout(timer);
      };
      const checkProgress = async () => {
        const isAtWork = await statement.isExecuting().catch(() => false);
        if (isFinished) return;
        if (isAtWork) return scheduleCheck();
        finish();
        const error = new NoAnswerError(Math.round(runtime.monotonic() - startedAt));
        statement.dropConnection(error);
        reject(error);
      };
      const scheduleCheck = () => {
        timer = runtime.setTimeout(() => void checkProgress(), this.#ms);
      };
      scheduleCheck();
      call.then(
        (value) => {
          finish();
          resolve(value);
        },
        (error: unknown) => {
          finish();
          reject(error);
        },
      );
    });
  }
}
