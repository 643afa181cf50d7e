/** Retrying a run that failed: a new run, linked to it, that goes on from where it failed. */

import { InvalidStateError } from "../../core/errors/errors.js";
import { frozenDagVersion, graphRoute } from "../../core/naming/route.js";
import { heroKeyOf } from "../../core/naming/start-key.js";
import { retryIdOf, retryParentNode } from "../../core/run/lineage.js";
import type { HeroPolicy } from "../../core/run/stored-schema.js";
import { defaultHeroPolicy } from "../../define/hero.js";
import type { NewRun, RefusedStart, RunRecord, Store } from "../../store/contract/store.js";

export interface RetryResult {
  readonly run: NewRun | RunRecord;
  /** False: it was there already, and is open. */
  readonly isNew: boolean;
  /** Its hero has another active run by now. */
  readonly refusal: RefusedStart | null;
}

/**
 * Makes the new run durable, in one commit. Which run it goes on for is in its row; what it takes over is written into its
 * log by the worker that begins it, which has the code and can wait for children that are still being canceled.
 */
export async function retryRun(
  store: Store,
  run: RunRecord,
  hero: HeroPolicy = defaultHeroPolicy,
): Promise<RetryResult> {
  if (run.status !== "failed")
    throw new InvalidStateError(`Run ${run.id} is ${run.status}; only a run that has failed can be retried.`, {
      runId: run.id,
      status: run.status,
    });
  let last = run;
  let existing = await store.run(retryIdOf(last.id));
  // A retry that was canceled is gone on for in its place: there is one line of runs, and no key is used by two of them.
  for (; existing?.status === "canceled"; existing = await store.run(retryIdOf(last.id))) last = existing;
  if (existing !== null) return { run: checkOpen(run, existing), isNew: false, refusal: null };
  const retry = createSuccessor(last, hero);
  const result = await store.commit({ fence: null, transitions: [], starts: [retry] });
  return { run: retry, isNew: true, refusal: result.kind === "committed" ? (result.refused[0] ?? null) : null };
}

/** Its key stays with the first run. A run that was a child is on its own: its parent has gone on without it. */
function createSuccessor(run: RunRecord, hero: HeroPolicy): NewRun {
  const {
    status: _s,
    output: _o,
    error: _e,
    waiting: _w,
    createdAt: _c,
    startedAt: _a,
    finishedAt: _f,
    ...inherited
  } = run;
  const heroKey =
    run.heroType === null || hero.allowMultiple ? null : heroKeyOf(run.workflow, run.heroType, run.heroId);
  return {
    ...inherited,
    id: retryIdOf(run.id),
    startKey: null,
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
  const next = retry.status === "failed" ? "; retry that one" : "";
  throw new InvalidStateError(`Run ${run.id} was retried as run ${retry.id}, which is ${retry.status}${next}.`, {
    runId: run.id,
    status: run.status,
  });
}
