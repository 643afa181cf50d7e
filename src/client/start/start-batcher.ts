/** Group commit for starts: what is started while one commit is under way goes into the next, all in one transaction. */

import { Batcher, countFitting } from "../../concurrency/batcher.js";
import { isTransient } from "../../concurrency/retry-until-reachable.js";
import { hasUniqueKey } from "../../core/naming/start-key.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import type { NewRun, RefusedStart, Store } from "../../store/contract/store.js";
import { inCleanContext } from "../../telemetry/async-context.js";

/** The starts of one call: it has its answer when all of them do. */
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
/** The database may be away for this long, a restart, before a start fails. */
const retryTimeoutMs = 25_000;
/** Of the commits that may be waiting for a caller's open transaction: each has a connection of the store to itself. */
const maxKeyedCommits = 3;

export class StartBatcher {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #onStarted: (run: NewRun, at: number) => void;
  readonly #unkeyedBatcher: Batcher<PendingStart>;
  readonly #keyedBatcher: Batcher<PendingStart>;

  /** @param onStarted told of each run that was made */
  constructor(store: Store, runtime: Runtime, onStarted: (run: NewRun, at: number) => void) {
    this.#store = store;
    this.#runtime = runtime;
    this.#onStarted = onStarted;
    // The starts of many callers share a write: it is told of, and logged, as none of theirs.
    const write = (batch: readonly PendingStart[]) => inCleanContext(() => this.#write(batch));
    this.#unkeyedBatcher = new Batcher({ write, batchSizeOf, maxConcurrentWrites: 1 });
    this.#keyedBatcher = new Batcher({ write, batchSizeOf, maxConcurrentWrites: maxKeyedCommits });
  }

  /** For each run, in their order, whether a key kept it out. */
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
      if (result.kind !== "committed") throw new RangeError(`A start was answered with "${result.kind}".`);
      for (const one of batch) {
        if (!result.refused.some(({ runId }) => runId === one.run.id)) this.#onStarted(one.run, result.at);
        resolveStart(one, result.refused);
      }
    } catch (error) {
      if (isTransient(error) && this.#runtime.monotonic() - firstTriedAt + waitMs < retryTimeoutMs) {
        // Written or not, the ids are ours: a start that is there already is not made again.
        await sleep(this.#runtime, waitMs);
        return this.#write(batch, waitMs * 2, firstTriedAt);
      }
      // One start that cannot be written must not take the others with it.
      if (batch.length === 1) return batch[0]?.call.reject(error);
      for (const one of batch) await this.#write([one]);
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
