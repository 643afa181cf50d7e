/**
 * The server's clock, as far as it is known here. All stamps of a commit are one instant, which has to be known before the
 * commit is sent: asking for it first would be a round trip more, and keeping it in a row would be a write more.
 *
 * An answer with the server's time limits what the difference between the two clocks can be: the time was read after the
 * question was sent and before the answer came. The difference is corrected only as far as an answer contradicts it, and
 * begins with the least that is possible, so that this clock is never ahead of the server's.
 */
import type { Runtime } from "../../runtime/runtime.js";

export class ServerClock {
  readonly #runtime: Runtime;
  #offsetMs: number | null = null;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  now(): number {
    return this.#runtime.now() + (this.#offsetMs ?? 0);
  }

  adjust(serverNow: number, sentAt: number, answeredAt: number): void {
    const [minOffsetMs, maxOffsetMs] = [serverNow - answeredAt, serverNow - sentAt];
    // This machine's clock was set back meanwhile.
    if (maxOffsetMs < minOffsetMs) return;
    this.#offsetMs = Math.min(maxOffsetMs, Math.max(minOffsetMs, this.#offsetMs ?? minOffsetMs));
  }
}

/** The server's time in epoch milliseconds, as an expression. */
export const serverNow = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)";
