/**
 * An estimate of the server's clock. All timestamps of a commit are the same instant, which must be known before the
 * commit is sent: reading it first would cost a round trip, and keeping it in a row would cost a write.
 *
 * Each response with the server's time bounds the offset between the two clocks, because the server read its clock
 * after the request was sent and before the response arrived. The offset starts at its lower bound, so that this clock
 * is not ahead of the server's, and is later changed only as far as a response requires.
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
    // This machine's clock was set back between the request and the response, so the response does not bound the
    // offset.
    if (maxOffsetMs < minOffsetMs) return;
    this.#offsetMs = Math.min(maxOffsetMs, Math.max(minOffsetMs, this.#offsetMs ?? minOffsetMs));
  }
}

/** An SQL expression for the server's time in epoch milliseconds. */
export const serverNow = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)";
