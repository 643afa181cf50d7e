/**
 * How long a statement may go unanswered. A connection can drop every packet without ever reporting an error, and a
 * worker that waits on it loses its lease although a new connection would work. The deadline is therefore tied to the
 * lease.
 */
import type { Runtime, Timer } from "../../runtime/runtime.js";

/** Used while no worker is registered, when no lease depends on the deadline. */
const defaultDeadlineMs = 10_000;
/** With a shorter deadline, a busy machine would be mistaken for a server that does not answer. */
const minDeadlineMs = 1_000;

/** The connection cannot be used any more, and it is unknown whether the statement was executed. */
export class NoAnswerError extends Error {
  readonly code = "ETIMEDOUT";

  constructor(waitedMs: number) {
    super(`The server has not answered for ${waitedMs} ms.`);
  }
}

export interface PendingStatement {
  /**
   * Asks the server, on another connection, whether it is still executing the statement: a statement that waits for a
   * lock is slow, not lost.
   */
  isExecuting(): Promise<boolean>;
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

  /** With a third of the lease, a lost heartbeat is noticed and repeated before the lease expires. */
  #recompute(): void {
    const shortestLeaseMs = Math.min(...this.#leases.values());
    this.#ms = this.#leases.size === 0 ? defaultDeadlineMs : Math.max(minDeadlineMs, Math.floor(shortestLeaseMs / 3));
  }

  /**
   * Settles as the call does; rejects with NoAnswerError when the deadline passes and the server is not executing it.
   */
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
        const isExecuting = await statement.isExecuting().catch(() => false);
        if (isFinished) return;
        if (isExecuting) return scheduleCheck();
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
