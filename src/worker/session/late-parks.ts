/**
 * Wakes runs whose park may still take effect. A server that has lost the connection may execute the commit seconds later,
 * when this worker has parked the run by a second try and claimed it again under the same fence. The store compares only
 * events with the log, so it accepts a park without events: the run waits for what has happened already, and its task is
 * never due. The next owner of a run that is woken recovers it if its log has gone on, and otherwise parks it by its log.
 */
import { isTransient, retryUntilReachable } from "../../concurrency/retry-until-reachable.js";
import { encodeMessage } from "../../core/run/message.js";
import type { Logger } from "../../define/context.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { Store } from "../../store/contract/store.js";
import type { GroupCommitter } from "../commit/group-committer.js";

export interface LateParksOptions {
  readonly runtime: Runtime;
  readonly store: Pick<Store, "send">;
  readonly log: Logger;
  /** After this time a server has executed or dropped the commits of a lost connection. */
  readonly lateCallMs: number;
  readonly committer: Pick<GroupCommitter, "isInFlight">;
}

export class LateParks {
  readonly #options: LateParksOptions;
  readonly #timers = new Map<string, Timer>();
  #isClosed = false;

  constructor(options: LateParksOptions) {
    this.#options = options;
  }

  /** Called when the connection failed during the park of this run. */
  note(runId: string): void {
    const { runtime, lateCallMs, committer } = this.#options;
    if (this.#isClosed) return void this.wake(runId);
    runtime.clearTimeout(this.#timers.get(runId) ?? null);
    const timer = runtime.setTimeout(() => {
      this.#timers.delete(runId);
      if (committer.isInFlight(runId)) this.note(runId);
      else void this.wake(runId);
    }, lateCallMs);
    this.#timers.set(runId, timer.unref());
  }

  /** The task becomes due if it is parked. A run that has started ignores the message, and one that has ended has no inbox. */
  async wake(runId: string): Promise<void> {
    const { runtime, store, log } = this.#options;
    const message = encodeMessage(runId, { type: "start" });
    const send = () => store.send([message]);
    try {
      await retryUntilReachable(runtime, send, () => this.#isClosed);
    } catch (error) {
      if (!isTransient(error))
        log.error(`Run ${runId} could not be woken; it may wait for an event of the past.`, error);
    }
  }

  /** Wakes all runs now: the fence of the worker is, or is about to be, invalid, so that no late park is accepted any more. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const [runId, timer] of this.#timers) {
      this.#options.runtime.clearTimeout(timer);
      void this.wake(runId);
    }
    this.#timers.clear();
  }
}
