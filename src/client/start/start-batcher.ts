/** Group commit for starts: what is started while one commit is under way goes into the next, all in one transaction. */

import { Batcher, howManyFit } from "../../concurrency/batcher.js";
import { isTransient } from "../../concurrency/retry-until-reachable.js";
import { isKeyed } from "../../core/naming/start-key.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import type { NewRun, Refusal, Store } from "../../store/contract/store.js";
import { inCleanContext } from "../../telemetry/async-context.js";

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
/** The database may be away for this long, a restart, before a start fails. */
const patienceMs = 25_000;
/** Of the commits that may be waiting for a caller's open transaction: each has a connection of the store to itself. */
const mostKeyedCommits = 3;

export class StartBatcher {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #started: (run: NewRun, at: number) => void;
  readonly #free: Batcher<Pending>;
  readonly #keyed: Batcher<Pending>;

  /** @param started told of each run that was made */
  constructor(store: Store, runtime: Runtime, started: (run: NewRun, at: number) => void) {
    this.#store = store;
    this.#runtime = runtime;
    this.#started = started;
    // The starts of many callers share a write: it is told of, and logged, as none of theirs.
    const write = (batch: readonly Pending[]) => inCleanContext(() => this.#write(batch));
    this.#free = new Batcher({ write, fits, mostAtOnce: 1 });
    this.#keyed = new Batcher({ write, fits, mostAtOnce: mostKeyedCommits });
  }

  /** For each run, in their order, whether a key kept it out. */
  start(runs: readonly NewRun[]): Promise<readonly (Refusal | null)[]> {
    return new Promise((resolve, reject) => {
      const group: Group = { refusals: new Array(runs.length).fill(null), open: runs.length, resolve, reject };
      for (let index = 0; index < runs.length; index += 1) {
        const run = runs[index] as NewRun;
        (isKeyed(run) ? this.#keyed : this.#free).add({ run, group, index });
      }
    });
  }

  async #write(batch: readonly Pending[], waitMs = 50, since = this.#runtime.monotonic()): Promise<void> {
    try {
      const result = await this.#store.commit({ fence: null, transitions: [], starts: batch.map(({ run }) => run) });
      if (result.kind !== "committed") throw new RangeError(`A start was answered with "${result.kind}".`);
      for (const one of batch) {
        if (!result.refused.some(({ runId }) => runId === one.run.id)) this.#started(one.run, result.at);
        settle(one, result.refused);
      }
    } catch (error) {
      if (isTransient(error) && this.#runtime.monotonic() - since + waitMs < patienceMs) {
        // Written or not, the ids are ours: a start that is there already is not made again.
        await sleep(this.#runtime, waitMs);
        return this.#write(batch, waitMs * 2, since);
      }
      // One start that cannot be written must not take the others with it.
      if (batch.length === 1) return batch[0]?.group.reject(error);
      for (const one of batch) await this.#write([one]);
    }
  }
}

const fits = (pending: readonly Pending[]) =>
  howManyFit(pending, ({ run }) => 200 + run.input.length, { count: maxBatch, bytes: maxBytes });

function settle({ run, group, index }: Pending, refused: readonly Refusal[]): void {
  if (refused.length > 0) group.refusals[index] = refused.find(({ runId }) => runId === run.id) ?? null;
  group.open -= 1;
  if (group.open === 0) group.resolve(group.refusals);
}
