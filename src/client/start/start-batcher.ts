/** Group commit for starts: runs that are started during a commit are written together by the next one. */

import { Batcher, countFitting } from "../../concurrency/batcher.js";
import { isTransient } from "../../concurrency/retry-until-reachable.js";
import { hasUniqueKey } from "../../core/naming/start-key.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import type { NewRun, RefusedStart, Store } from "../../store/contract/store.js";
import { inCleanContext } from "../../telemetry/async-context.js";

/** The starts of one call, which resolves when all of them are written. */
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
/** How long the database may be unreachable, during a restart for example, before a start fails. */
const retryTimeoutMs = 25_000;
/** Commits with keys may wait for a caller's open transaction, and each of them occupies a connection of the store. */
const maxKeyedCommits = 3;

export class StartBatcher {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #onStarted: (run: NewRun, at: number) => void;
  readonly #unkeyedBatcher: Batcher<PendingStart>;
  readonly #keyedBatcher: Batcher<PendingStart>;

  /** @param onStarted called for each run that was created */
  constructor(store: Store, runtime: Runtime, onStarted: (run: NewRun, at: number) => void) {
    this.#store = store;
    this.#runtime = runtime;
    this.#onStarted = onStarted;
    // A write serves many callers, so it runs outside of the async context of each of them.
    const write = (batch: readonly PendingStart[]) => inCleanContext(() => this.#write(batch));
    this.#unkeyedBatcher = new Batcher({ write, batchSizeOf, maxConcurrentWrites: 1 });
    this.#keyedBatcher = new Batcher({ write, batchSizeOf, maxConcurrentWrites: maxKeyedCommits });
  }

  /** @returns for each run, in their order, whether it was rejected as a duplicate */
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
        // The commit may have succeeded. Trying again is safe, because the same ids are not created twice.
        await sleep(this.#runtime, waitMs);
        return this.#write(batch, waitMs * 2, firstTriedAt);
      }
      // A start that cannot be written must not fail the others, so each is tried alone.
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
