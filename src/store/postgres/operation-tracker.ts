/** Counts the operations in flight: closing a store waits for them and refuses new ones. */
import { StoreError } from "../../core/errors/errors.js";

export class OperationTracker {
  #inFlight = 0;
  #isClosed = false;
  #onIdle: (() => void) | null = null;

  async run<T>(operation: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new StoreError("The store is closed.", { transient: false });
    this.#inFlight += 1;
    try {
      return await operation();
    } finally {
      this.#inFlight -= 1;
      if (this.#inFlight === 0) this.#onIdle?.();
    }
  }

  /** Refuses new operations from now on, and waits for those in flight. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#inFlight === 0) return;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
  }
}
