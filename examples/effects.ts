/**
 * What a service outside has done, by idempotency key. Real providers keep such a list: a key they have seen before has
 * no second effect and gets the first answer again. This one also counts how often it was asked.
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
