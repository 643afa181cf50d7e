/**
 * How long Pawl waits for the server's answer to a statement. A connection can drop every packet without ever reporting
 * an error, and a worker that waits for such a connection loses its lease although a new connection would work. The
 * deadline is therefore computed from the leases of this process's workers.
 */
import type { Runtime, Timer } from "../../runtime/runtime.js";

/** Used while no worker is registered, when no lease depends on the deadline. */
const defaultDeadlineMs = 10_000;
/** With a shorter deadline, a busy machine would be mistaken for a server that does not answer. */
const minDeadlineMs = 1_000;

/** Thrown when the deadline has passed: the connection is dropped, and the outcome of the statement is unknown. */
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

  /** With a third of the lease as deadline, a worker notices and repeats a lost heartbeat before its lease expires. */
  #recompute(): void {
    const shortestLeaseMs = Math.min(...this.#leases.values());
    this.#ms = this.#leases.size === 0 ? defaultDeadlineMs : Math.max(minDeadlineMs, Math.floor(shortestLeaseMs / 3));
  }

  /**
   * Settles as `call` does. When the deadline passes and the server is not executing the statement, it drops the
   * connection and rejects with NoAnswerError.
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
