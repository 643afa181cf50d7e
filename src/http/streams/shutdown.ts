/**
 * Tells open streams that the server stops. They share one listener of the signal, because an `AbortSignal` warns of a leak
 * when many listen to it, and there is none while no stream is open.
 */
export class Shutdown {
  readonly #signal: AbortSignal;
  readonly #listeners = new Set<() => void>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Calls the listener once when the server stops, until the function that is returned is called. */
  onStop(listener: () => void): () => void {
    if (this.#listeners.size === 0) this.#signal.addEventListener("abort", this.#notify, { once: true });
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#signal.removeEventListener("abort", this.#notify);
    };
  }

  readonly #notify = () => {
    for (const listener of [...this.#listeners]) listener();
  };
}
