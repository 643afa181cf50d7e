/** Starts that are gathered by a run that has not begun: debounced starts, and starts of workflows with `batch`. */
import { isDeepStrictEqual } from "node:util";
import { Batcher, countFitting } from "../../concurrency/batcher.js";
import { isTransient } from "../../concurrency/retry-until-reachable.js";
import { decode } from "../../core/encoding/decode.js";
import { InvalidInputError } from "../../core/errors/errors.js";
import type { GatherCall, GatherOutcome } from "../../core/gathering/plan-gathering.js";
import { gatheringIdOf } from "../../core/gathering/run-gathering.js";
import { elementIdOf } from "../../core/naming/element-id.js";
import { type BatchSettings, batchRuleOf } from "../../define/batch.js";
import { keyOfRun, type LimitedRun } from "../../define/limit.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import type { NewRun, RefusedStart, Store } from "../../store/contract/store.js";
import { inCleanContext } from "../../telemetry/async-context.js";
import { type AnyDebounce, checkDebounce, debounceKeyOf } from "./debounce.js";
import { existingRunId } from "./duplicate-start.js";
import type { StartOptions } from "./new-run.js";

/** How a workflow gathers its starts, as far as this process knows. */
export type StartBatching = BatchSettings | { readonly key: "function" } | null;

/** What `start` answers for a start that was gathered. */
export interface GatheredStart {
  /** The id of a run, or of an element of a batch. */
  readonly id: string;
  /** Whether the start was added to a run that an earlier start had created. */
  readonly merged: boolean;
  readonly created: boolean;
}

type ToCall = (run: NewRun) => GatherCall;

/**
 * Checks how the starts of one call are gathered.
 *
 * @param count how many starts the call makes
 * @returns null if each start has a run of its own
 */
export function gatheringOf(
  workflow: string,
  batching: StartBatching,
  options: StartOptions,
  count: number,
): ToCall | null {
  const debounce: AnyDebounce | undefined = options.debounce;
  if (debounce === undefined) return batching === null ? null : batchingOf(workflow, batching, options);
  const rule = checkDebounce(workflow, debounce);
  if (batching !== null)
    throw new InvalidInputError(`Workflow "${workflow}" gathers its starts in batches, so they cannot be debounced.`);
  const other = (["idempotencyKey", "onConflict", "tx", "delay", "startAt"] as const).find(
    (name) => options[name] !== undefined,
  );
  if (other !== undefined)
    throw new InvalidInputError(
      `start("${workflow}") takes either \`debounce\` or \`${other}\`, not both: ${reasons[other]}.`,
    );
  if (count > 1 && typeof debounce.key !== "function") {
    throw new InvalidInputError(
      `The key of the debounce of startMany("${workflow}") must be a function of { input, hero, tags }; with one key, all of these starts would be merged.`,
    );
  }
  // The time in which the run must begin counts from when it is due, which may be up to `max` after the first start.
  const movedMs = rule.kind === "debounce" ? rule.maxMs - rule.quietMs : 0;
  return (created) => {
    const { startBy } = created;
    const run = startBy?.kind === "in" ? { ...created, startBy: { ...startBy, ms: startBy.ms + movedMs } } : created;
    const key = debounceKeyOf(workflow, debounce, () => factsOf(run));
    return { id: gatheringIdOf(rule, key, run), key, rule, run, startKey: null };
  };
}

const reasons = {
  idempotencyKey: "the key of the debounce says which starts are one",
  onConflict: "the key of the debounce says which starts are one",
  tx: "it would keep all other starts with its key waiting until your transaction ends",
  delay: "`quiet` and `max` say when the run is due",
  startAt: "`quiet` and `max` say when the run is due",
} as const;

function batchingOf(workflow: string, batching: Exclude<StartBatching, null>, options: StartOptions): ToCall | null {
  // Such a start is a batch of its own: a batch would keep other starts waiting for the caller's transaction, or for its time.
  const own = (["tx", "delay", "startAt"] as const).find((name) => options[name] !== undefined);
  if (own !== undefined) {
    if (options.idempotencyKey === undefined) return null;
    throw new InvalidInputError(
      `start("${workflow}") takes either \`idempotencyKey\` or \`${own}\`, because the workflow gathers its starts in batches, and a start with \`${own}\` is none of them.`,
    );
  }
  if (options.onConflict !== undefined && options.onConflict !== "attach") {
    throw new InvalidInputError(
      `start("${workflow}") cannot take \`onConflict: "${options.onConflict}"\`, because the workflow gathers its starts in batches: a start with a key that was used before always gets the start that has it.`,
    );
  }
  if (!("size" in batching)) {
    throw new InvalidInputError(
      `The batches of workflow "${workflow}" have a function as their key, which only a process with its code can compute: start it with its definition, or make the key a path such as "input.user".`,
    );
  }
  const rule = batchRuleOf(batching);
  return (gathered) => {
    // A hero may have several batches at a time: one that is executed, and one that gathers.
    const run = { ...gathered, heroKey: null };
    const key = batching.key === null ? "" : keyOfRun(batching.key, factsOf(run));
    return { id: gatheringIdOf(rule, key, run), key, rule, run: { ...run, startKey: null }, startKey: run.startKey };
  };
}

const factsOf = ({ input, heroType, heroId, tags }: NewRun): LimitedRun => ({
  input: decode(input),
  hero: heroId === null ? null : { type: heroType, id: heroId },
  tags,
});

interface PendingCall {
  readonly call: GatherCall;
  readonly resolve: (answer: GatheredStart) => void;
  readonly reject: (error: unknown) => void;
}

const maxCallsPerWrite = 500;
const maxBytesPerWrite = 4 * 1024 * 1024;
const retryTimeoutMs = 25_000;

/** Group commit: starts that are made while a write is in progress are written together by the next one. */
export class GatheredStarts {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #onStarted: (run: NewRun, at: number) => void;
  readonly #batcher: Batcher<PendingCall>;

  /** @param onStarted is called for each run that was created */
  constructor(store: Store, runtime: Runtime, onStarted: (run: NewRun, at: number) => void) {
    this.#store = store;
    this.#runtime = runtime;
    this.#onStarted = onStarted;
    const write = (batch: readonly PendingCall[]) => inCleanContext(() => this.#write(batch, false));
    this.#batcher = new Batcher({ write, batchSizeOf, maxConcurrentWrites: 1 });
  }

  start(calls: readonly GatherCall[]): Promise<readonly GatheredStart[]> {
    return Promise.all(
      calls.map(
        (call) => new Promise<GatheredStart>((resolve, reject) => this.#batcher.add({ call, resolve, reject })),
      ),
    );
  }

  async #write(
    batch: readonly PendingCall[],
    mayRepeat: boolean,
    waitMs = 50,
    firstTriedAt = this.#runtime.monotonic(),
  ): Promise<void> {
    try {
      const result = await this.#store.gatherings.gather(
        batch.map(({ call }) => call),
        { mayRepeat },
      );
      if (result.kind === "refused") return await this.#onRefused(batch, result.refused, mayRepeat);
      const created = new Set(result.createdIds);
      batch.forEach((pending, index) => {
        const { run } = pending.call;
        const outcome = result.outcomes[index] as GatherOutcome;
        if (created.has(run.id)) this.#onStarted({ ...run, due: { kind: "in", ms: 0 } }, result.at);
        settle(pending, () => answerOf(pending.call, outcome));
      });
    } catch (error) {
      // The write may have succeeded although it threw. Each call has an id, so that repeating it adds nothing twice.
      if (isTransient(error)) {
        // A database that is unreachable is so for each of the starts: none is tried by itself, which would take as long again.
        if (this.#runtime.monotonic() - firstTriedAt + waitMs >= retryTimeoutMs)
          return batch.forEach(({ reject }) => void reject(error));
        await sleep(this.#runtime, waitMs);
        return this.#write(batch, true, waitMs * 2, firstTriedAt);
      }
      if (batch.length === 1 && mayRepeat) return batch[0]?.reject(error);
      // A start that cannot be written must not fail the others. Two processes may also have used one idempotency key at the
      // same time; then one of them fails, and finds the other's start now.
      for (const pending of batch) await this.#write([pending], true);
    }
  }

  async #onRefused(batch: readonly PendingCall[], refused: readonly RefusedStart[], mayRepeat: boolean): Promise<void> {
    const [only] = batch;
    if (batch.length > 1 || only === undefined) {
      for (const pending of batch) await this.#write([pending], mayRepeat);
      return;
    }
    const { run, startKey } = only.call;
    settle(only, () => ({
      id: existingRunId({ ...run, startKey }, refused[0] as RefusedStart),
      merged: false,
      created: false,
    }));
  }
}

const batchSizeOf = (pending: readonly PendingCall[]) =>
  countFitting(pending, ({ call }) => 200 + call.run.input.length, {
    count: maxCallsPerWrite,
    bytes: maxBytesPerWrite,
  });

function settle({ resolve, reject }: PendingCall, answer: () => GatheredStart): void {
  try {
    resolve(answer());
  } catch (error) {
    reject(error);
  }
}

function answerOf(
  { run, startKey }: GatherCall,
  { runId, position, isMerged, inputOfKey }: GatherOutcome,
): GatheredStart {
  const id = position === null ? runId : elementIdOf(runId, position);
  if (inputOfKey === undefined) return { id, merged: isMerged, created: runId === run.id };
  if (inputOfKey === run.input || isDeepStrictEqual(decode(inputOfKey), decode(run.input)))
    return { id, merged: false, created: false };
  throw new InvalidInputError(
    `Workflow "${run.workflow}" was already started with the idempotency key "${startKey}" and another input, as run ${id}; use another key for another start.`,
    { runId: id },
  );
}
