/** Group commit for starts: what is started while one commit is under way goes into the next, all in one transaction. */
import { StoreError } from "../core/errors.js";
import type { NewRun, Refusal, Store } from "../store/store.js";

export interface Started {
  readonly at: number;
  readonly refusal: Refusal | null;
}

interface Pending {
  readonly run: NewRun;
  readonly resolve: (started: Started) => void;
  readonly reject: (error: unknown) => void;
}

const maxBatch = 250;
const maxBytes = 4 * 1024 * 1024;
/** The database may be away for about 25 seconds, a restart, before a start fails. */
const longestWaitMs = 12_800;

const isTransient = (error: unknown) => error instanceof StoreError && error.transient;

export class Starter {
  readonly #store: Store;
  #pending: Pending[] = [];
  #flushing = false;

  constructor(store: Store) {
    this.#store = store;
  }

  start(run: NewRun): Promise<Started> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ run, resolve, reject });
      if (this.#flushing) return;
      this.#flushing = true;
      queueMicrotask(() => void this.#flush());
    });
  }

  async #flush(): Promise<void> {
    while (this.#pending.length > 0) {
      await this.#write(this.#take());
    }
    this.#flushing = false;
  }

  #take(): Pending[] {
    let count = 0;
    for (let bytes = 0; count < this.#pending.length && count < maxBatch && bytes < maxBytes; count += 1) {
      bytes += 200 + (this.#pending[count] as Pending).run.input.length;
    }
    return this.#pending.splice(0, count);
  }

  async #write(batch: readonly Pending[], waitMs = 50): Promise<void> {
    try {
      const result = await this.#store.commit({ fence: null, transitions: [], starts: batch.map(({ run }) => run) });
      if (result.kind !== "committed") throw new RangeError(`A start was answered with "${result.kind}".`);
      for (const { run, resolve } of batch) {
        resolve({ at: result.at, refusal: result.refused.find((refusal) => refusal.runId === run.id) ?? null });
      }
    } catch (error) {
      if (isTransient(error) && waitMs <= longestWaitMs) {
        // Written or not, the ids are ours: a start that is there already is not made again.
        await new Promise((resolve) => setTimeout(resolve, waitMs));
        return this.#write(batch, waitMs * 2);
      }
      // One start that cannot be written must not take the others with it.
      if (batch.length === 1) return batch[0]?.reject(error);
      for (const one of batch) await this.#write([one]);
    }
  }
}
