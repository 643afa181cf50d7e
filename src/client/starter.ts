/** Group commit for starts: what is started while one commit is under way goes into the next, all in one transaction. */
import { StoreError } from "../core/errors.js";
import type { NewRun, Refusal, Store } from "../store/store.js";

/** The starts of one call: it has its answer when all of them do. */
interface Group {
  readonly refusals: (Refusal | null)[];
  open: number;
  readonly resolve: (refusals: readonly (Refusal | null)[]) => void;
  readonly reject: (error: unknown) => void;
}

interface Pending {
  readonly run: NewRun;
  readonly group: Group;
  readonly index: number;
}

const maxBatch = 500;
const maxBytes = 4 * 1024 * 1024;
/** The database may be away for about 25 seconds, a restart, before a start fails. */
const longestWaitMs = 12_800;

const isTransient = (error: unknown) => error instanceof StoreError && error.transient;

export class Starter {
  readonly #store: Store;
  readonly #started: (run: NewRun, at: number) => void;
  #pending: Pending[] = [];
  #flushing = false;

  /** @param started told of each run that was made */
  constructor(store: Store, started: (run: NewRun, at: number) => void) {
    this.#store = store;
    this.#started = started;
  }

  /** For each run, in their order, whether a key kept it out. */
  start(runs: readonly NewRun[]): Promise<readonly (Refusal | null)[]> {
    return new Promise((resolve, reject) => {
      const group: Group = { refusals: new Array(runs.length).fill(null), open: runs.length, resolve, reject };
      for (let index = 0; index < runs.length; index += 1) {
        this.#pending.push({ run: runs[index] as NewRun, group, index });
      }
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
      for (const one of batch) {
        if (!result.refused.some(({ runId }) => runId === one.run.id)) this.#started(one.run, result.at);
        settle(one, result.refused);
      }
    } catch (error) {
      if (isTransient(error) && waitMs <= longestWaitMs) {
        // Written or not, the ids are ours: a start that is there already is not made again.
        await new Promise((resolve) => setTimeout(resolve, waitMs));
        return this.#write(batch, waitMs * 2);
      }
      // One start that cannot be written must not take the others with it.
      if (batch.length === 1) return batch[0]?.group.reject(error);
      for (const one of batch) await this.#write([one]);
    }
  }
}

function settle({ run, group, index }: Pending, refused: readonly Refusal[]): void {
  if (refused.length > 0) group.refusals[index] = refused.find(({ runId }) => runId === run.id) ?? null;
  group.open -= 1;
  if (group.open === 0) group.resolve(group.refusals);
}
