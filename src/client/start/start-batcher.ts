/** Group commit for starts: runs that are started while a commit is in progress are written together by the next commit. */

import { Batcher, countFitting } from "../../concurrency/batcher.js";
import { isTransient } from "../../concurrency/retry-until-reachable.js";
import { hasUniqueKey } from "../../core/naming/start-key.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import type { NewRun, RefusedStart, Store } from "../../store/contract/store.js";
import { inCleanContext } from "../../telemetry/async-context.js";

/** One call of `start`. Its promise resolves when all its runs are written. */
interface StartCall {
  readonly refusals: (RefusedStart | null)[];
  openCount: number;
  readonly resolve: (refusals: readonly (RefusedStart | null)[]) => void;
  readonly reject: (error: unknown) => void;
}

interface PendingStart {
  readonly run: NewRun;
  readonly call: StartCall;
  readonly index: number;
}

const maxBatchSize = 500;
const maxBytes = 4 * 1024 * 1024;
/** How long a start is retried while the database is unreachable, during a restart for example, before the start fails. */
const retryTimeoutMs = 25_000;
/**
 * A commit of runs with unique keys may have to wait for a caller's open transaction that uses the same key, and occupies a
 * connection of the store meanwhile. This limits how many connections such commits occupy.
 */
const maxKeyedCommits = 3;

export class StartBatcher {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #onStarted: (run: NewRun, at: number) => void;
  readonly #unkeyedBatcher: Batcher<PendingStart>;
  readonly #keyedBatcher: Batcher<PendingStart>;

  /** @param onStarted is called for each run that was created, and not for duplicates */
  constructor(store: Store, runtime: Runtime, onStarted: (run: NewRun, at: number) => void) {
    this.#store = store;
    this.#runtime = runtime;
    this.#onStarted = onStarted;
    // One write contains runs of many callers, so it must not run in the async context (trace, for example) of one of them.
    const write = (batch: readonly PendingStart[]) => inCleanContext(() => this.#write(batch));
    this.#unkeyedBatcher = new Batcher({ write, batchSizeOf, maxConcurrentWrites: 1 });
    this.#keyedBatcher = new Batcher({ write, batchSizeOf, maxConcurrentWrites: maxKeyedCommits });
  }

  /** @returns for each run, in the order of `runs`, the refusal if the store rejected it as a duplicate, otherwise null */
  start(runs: readonly NewRun[]): Promise<readonly (RefusedStart | null)[]> {
    return new Promise((resolve, reject) => {
      const call: StartCall = { refusals: new Array(runs.length).fill(null), openCount: runs.length, resolve, reject };
      for (let index = 0; index < runs.length; index += 1) {
        const run = runs[index] as NewRun;
        (hasUniqueKey(run) ? this.#keyedBatcher : this.#unkeyedBatcher).add({ run, call, index });
      }
    });
  }

  async #write(batch: readonly PendingStart[], waitMs = 50, firstTriedAt = this.#runtime.monotonic()): Promise<void> {
    try {
      const result = await this.#store.commit({ fence: null, transitions: [], starts: batch.map(({ run }) => run) });
      if (result.kind !== "committed") throw new RangeError(`The store returned "${result.kind}" for a start.`);
      for (const start of batch) {
        if (!result.refused.some(({ runId }) => runId === start.run.id)) this.#onStarted(start.run, result.at);
        resolveStart(start, result.refused);
      }
    } catch (error) {
      if (isTransient(error) && this.#runtime.monotonic() - firstTriedAt + waitMs < retryTimeoutMs) {
        // The commit may have succeeded although it threw. Repeating it is safe: the store does not create an id twice.
        await sleep(this.#runtime, waitMs);
        return this.#write(batch, waitMs * 2, firstTriedAt);
      }
      // One run that cannot be written must not fail the other runs of the batch, so each run is written alone.
      if (batch.length === 1) return batch[0]?.call.reject(error);
      for (const start of batch) await this.#write([start]);
    }
  }
}

const batchSizeOf = (pending: readonly PendingStart[]) =>
  countFitting(pending, ({ run }) => 200 + run.input.length, { count: maxBatchSize, bytes: maxBytes });

function resolveStart({ run, call, index }: PendingStart, refused: readonly RefusedStart[]): void {
  if (refused.length > 0) call.refusals[index] = refused.find(({ runId }) => runId === run.id) ?? null;
  call.openCount -= 1;
  if (call.openCount === 0) call.resolve(call.refusals);
}
