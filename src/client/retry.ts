/** Retrying a run that failed: a new run, linked to it, that goes on from where it failed. */
import { InvalidStateError } from "../core/errors.js";
import { fold } from "../core/fold.js";
import { inheritedFrom } from "../core/fork.js";
import { childRunId } from "../core/ids.js";
import { parkingNote } from "../core/waiting.js";
import { anyHero, type HeroPolicy } from "../define/definition.js";
import type { NewRun, Refusal, RunRecord, Store } from "../store/store.js";

/** Makes the new run durable; it has a refusal when its hero has another active run by now. */
export async function retryRun(
  store: Store,
  run: RunRecord,
  hero: HeroPolicy = anyHero,
): Promise<{ readonly run: NewRun; readonly refusal: Refusal | null }> {
  if (run.status !== "failed")
    throw new InvalidStateError(`Run ${run.id} is ${run.status}; only a run that has failed can be retried.`, {
      runId: run.id,
      status: run.status,
    });
  const log = (await store.logs([run.id])).get(run.id) ?? [];
  const retry = await newbornOf(store, run, hero);
  const born = await store.commit({ fence: null, transitions: [], starts: [retry] });
  const refusal = born.kind === "committed" ? (born.refused[0] ?? null) : null;
  if (refusal !== null) return { run: retry, refusal };
  const events = inheritedFrom(run.id, log);
  const at = await store.now();
  const state = fold(events.map((one, index) => ({ ...one, seq: index + 1, at })));
  const none: readonly never[] = [];
  const parked = {
    status: "waiting",
    waiting: parkingNote(state, -1),
    startedAt: "now",
    wakeAt: null,
    wakeIn: 0,
  } as const;
  const next = { kind: "park", ...parked } as const;
  const transition = {
    runId: retry.id,
    after: 0,
    events,
    next,
    drained: none,
    starts: none,
    mail: none,
    release: none,
    cursors: none,
  };
  // If it does not find an empty log, somebody else did the same at the same moment.
  await store.commit({ fence: null, transitions: [transition], starts: [] });
  return { run: retry, refusal: null };
}

/** Held until its log is there. The id is the next that is free: whoever repeats a retry that was cut short completes it. */
async function newbornOf(store: Store, run: RunRecord, hero: HeroPolicy): Promise<NewRun> {
  const {
    status: _s,
    output: _o,
    error: _e,
    waiting: _w,
    createdAt: _c,
    startedAt: _a,
    finishedAt: _f,
    ...birth
  } = run;
  const heroKey =
    run.heroType === null || hero.allowMultiple ? null : JSON.stringify([run.workflow, run.heroType, run.heroId]);
  for (let count = 0; ; count += 1) {
    const id = childRunId(run.id, "retry", count);
    const [existing, log] = [await store.run(id), await store.log(id, { after: 0, limit: 1 })];
    if (existing !== null && log.length > 0) continue;
    const alone = { startKey: null, parentId: null, parentNode: null, parentIndex: null };
    return { ...birth, ...alone, id, heroKey, due: { kind: "held" } };
  }
}
