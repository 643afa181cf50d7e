/** Retries a failed run: creates a new, linked run that continues from the failed step. */

import { InvalidStateError } from "../../core/errors/errors.js";
import { frozenDagVersion, graphRoute } from "../../core/naming/route.js";
import { heroKeyOf } from "../../core/naming/start-key.js";
import { retryIdOf, retryParentNode } from "../../core/run/lineage.js";
import type { HeroPolicy } from "../../core/run/stored-schema.js";
import { defaultHeroPolicy } from "../../define/hero.js";
import type { NewRun, RefusedStart, RunRecord, Store } from "../../store/contract/store.js";

export interface RetryResult {
  readonly run: NewRun | RunRecord;
  /** Whether this call created the retry; false if an open retry existed before. */
  readonly isNew: boolean;
  /** Set if the store rejected the retry because its hero has another active run; otherwise null. */
  readonly refusal: RefusedStart | null;
}

/**
 * Commits the new run, whose row names the run that it retries. The worker that starts the new run copies the recorded
 * results into its log, because only the worker has the code and can wait for children that are still being canceled.
 */
export async function retryRun(
  store: Store,
  run: RunRecord,
  startedBy: Pick<NewRun, "startedBy">,
  hero: HeroPolicy = defaultHeroPolicy,
): Promise<RetryResult> {
  if (run.status !== "failed")
    throw new InvalidStateError(`Run ${run.id} is ${run.status}; only a run that has failed can be retried.`, {
      runId: run.id,
      status: run.status,
    });
  let lastInLine = run;
  let existingRetry = await store.run(retryIdOf(lastInLine.id));
  // If the retry was canceled, the new run retries that retry instead of `run`. Each run then has one retry at most, so no
  // two open runs use the same idempotency keys.
  for (; existingRetry?.status === "canceled"; existingRetry = await store.run(retryIdOf(lastInLine.id)))
    lastInLine = existingRetry;
  if (existingRetry !== null) return { run: checkOpen(run, existingRetry), isNew: false, refusal: null };
  const retry = createSuccessor(lastInLine, startedBy, hero);
  const result = await store.commit({ fence: null, transitions: [], starts: [retry] });
  const [refusal = null] = result.kind === "committed" ? result.refused : [];
  const isNew = refusal === null && result.kind === "committed" && (await isStartOf(store, retry, result.at));
  return { run: retry, isNew, refusal };
}

/**
 * Whether the row of the run is the one that was just written. The store takes a start with an id that exists for a
 * repetition, and two callers that retry a run at the same moment use the same id.
 */
async function isStartOf(store: Store, retry: NewRun, at: number): Promise<boolean> {
  const stored = await store.run(retry.id);
  return stored === null || (stored.createdAt === at && stored.startedBy === retry.startedBy);
}

/**
 * Makes the run that retries `run`. It does not get the idempotency key of the start, which stays with the first run. The
 * retry of a child has no parent, because the parent has already continued without the child.
 */
function createSuccessor(run: RunRecord, startedBy: Pick<NewRun, "startedBy">, hero: HeroPolicy): NewRun {
  const {
    status: _s,
    output: _o,
    error: _e,
    waiting: _w,
    createdAt: _c,
    startedAt: _a,
    finishedAt: _f,
    startedBy: _b,
    ...inherited
  } = run;
  const heroKey =
    run.heroType === null || hero.allowMultiple ? null : heroKeyOf(run.workflow, run.heroType, run.heroId);
  return {
    ...inherited,
    id: retryIdOf(run.id),
    startKey: null,
    ...startedBy,
    parentId: null,
    parentNode: retryParentNode(null, run.id),
    parentIndex: null,
    parentAttempt: null,
    heroKey,
    due: { kind: "now" },
    ...(run.version === frozenDagVersion ? { route: graphRoute } : {}),
  };
}

function checkOpen(run: RunRecord, retry: RunRecord): RunRecord {
  if (retry.finishedAt === null) return retry;
  const advice = retry.status === "failed" ? "; retry that one" : "";
  throw new InvalidStateError(`Run ${run.id} was retried as run ${retry.id}, which is ${retry.status}${advice}.`, {
    runId: run.id,
    status: run.status,
  });
}
