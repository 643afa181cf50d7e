/**
 * The effects of an external service, by idempotency key. Real providers keep such a list: a key that was used before
 * has no second effect and returns the first answer again. This one also counts the requests.
 */
export class Effects<Effect> {
  readonly #done = new Map<string, Effect>();
  #requests = 0;

  once(key: string, effect: Effect): Effect {
    this.#requests += 1;
    if (!this.#done.has(key)) this.#done.set(key, effect);
    return this.#done.get(key) as Effect;
  }

  /** What really happened, in order. */
  get all(): Effect[] {
    return [...this.#done.values()];
  }

  /** Requests that had been answered before. */
  get repeats(): number {
    return this.#requests - this.#done.size;
  }

  forget(): void {
    this.#done.clear();
    this.#requests = 0;
  }
}
