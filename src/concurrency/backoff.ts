/** Growing pauses between tries at something that is down: 20 ms doubling to 2 s, with jitter. */
export class Backoff {
  #ms = 20;

  wait(): Promise<void> {
    const ms = this.#ms * (0.5 + Math.random() / 2);
    this.#ms = Math.min(this.#ms * 2, 2_000);
    return new Promise((resolve) => setTimeout(resolve, ms));
  }

  reset(): void {
    this.#ms = 20;
  }
}
