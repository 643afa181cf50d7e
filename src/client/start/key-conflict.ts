/**
 * Starts with a key that another run has: the new run waits for the end of that run, takes over the key of a run that has
 * ended, or replaces what a run was started with that has not begun.
 *
 * The key always belongs to the run that was started last. The run before it records in its log that the new run waits
 * (`run.start_queued`), and its last commit lets that run begin. The record comes first; the new run is written only while the
 * run before it is locked and open. So a run that was recorded but never written costs a message that no run receives, and a
 * run that was written is always let go.
 */
import { AlreadyActiveError, InvalidStateError, RunNotFoundError, StoreError } from "../../core/errors/errors.js";
import { newEvent } from "../../core/run/event.js";
import { fold } from "../../core/run/fold.js";
import { parkNotStarted } from "../../core/run/park.js";
import { createTransition } from "../../core/run/transition.js";
import type { Logger } from "../../define/context.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import type {
  AuditedRun,
  Batch,
  KeyMove,
  NewRun,
  NextTaskState,
  RefusedStart,
  Store,
} from "../../store/contract/store.js";
import { publishStatus } from "../../telemetry/publish.js";
import { isBusy } from "../command/queue-handover.js";
import type { RunCommands } from "../command/run-commands.js";
import type { IdSource } from "./new-id.js";
import type { OnConflict } from "./new-run.js";
import { originOf } from "./start-origin.js";

export type LatePolicy = Exclude<OnConflict, "attach" | "fail">;

export interface KeyConflictServices {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly commands: Pick<RunCommands, "send">;
  readonly ids: IdSource;
}

/** What became of the start. `id` is the run that the caller gets. */
export interface ConflictResult {
  readonly id: string;
  readonly created: boolean;
  /** Whether the run was replaced; null if the caller has not asked for that. */
  readonly replaced: boolean | null;
  /** The open run for whose end the new run waits; null if it does not wait. */
  readonly startsAfter: string | null;
}

const maxTries = 200;

export class KeyConflicts {
  readonly #services: KeyConflictServices;
  /** By key: the last start of this process with the key. Starts with one key go one after another. */
  readonly #lastByKey = new Map<string, Promise<unknown>>();

  constructor(services: KeyConflictServices) {
    this.#services = services;
  }

  /**
   * @param refusal why the store has refused the run
   * @param start starts the run as if there were no other; returns why it is refused again
   */
  async resolve(
    run: NewRun,
    refusal: RefusedStart,
    policy: LatePolicy,
    start: (run: NewRun) => Promise<RefusedStart | null>,
  ): Promise<ConflictResult> {
    const key = JSON.stringify([run.workflow, run.startKey, run.heroKey]);
    const before = this.#lastByKey.get(key);
    const resolving = (async () => {
      await before?.catch(() => {});
      // Another start of this process has changed who has the key.
      const current = before === undefined ? refusal : await start(run);
      return current === null ? createdNow(run) : this.#resolve(run, current, policy, start);
    })();
    this.#lastByKey.set(key, resolving);
    try {
      return await resolving;
    } finally {
      if (this.#lastByKey.get(key) === resolving) this.#lastByKey.delete(key);
    }
  }

  async #resolve(
    run: NewRun,
    refusal: RefusedStart,
    policy: LatePolicy,
    start: (run: NewRun) => Promise<RefusedStart | null>,
  ): Promise<ConflictResult> {
    const { runtime, ids, store } = this.#services;
    let current: NewRun = run;
    let holder = refusal.existing.id;
    for (let tries = 1; tries <= maxTries; tries += 1) {
      try {
        const result = await this.#try(current, holder, policy);
        if (result !== null) return result;
      } catch (error) {
        if (!(error instanceof StoreError && error.transient)) throw error;
        // The answer may be lost although the run was written.
        if ((await store.run(current.id)) !== null) return { ...createdNow(current), startsAfter: holder };
      }
      // The log of another run may say that this id waits for its end, so the next try has an id of its own.
      current = { ...run, id: ids.next() };
      const next = await start(current);
      if (next === null) return createdNow(current);
      holder = next.existing.id;
      if (tries > 3) await sleep(runtime, runtime.random() * Math.min(50, 2 ** tries));
    }
    throw new StoreError(
      `The key of the start changed hands ${maxTries} times while run ${run.id} was started; try again.`,
      {
        transient: true,
      },
    );
  }

  /** Returns null if something has changed meanwhile. */
  async #try(run: NewRun, holderId: string, policy: LatePolicy): Promise<ConflictResult | null> {
    const { store, commands } = this.#services;
    const [holder] = await store.maintenance.audit.runsById([holderId]);
    if (holder === undefined) return null;
    const moves = keysOf(holder, run);
    if (moves.length === 0) return null;
    await this.#checkHero(run, holder, moves);
    if (holder.finishedAt !== null) {
      const isWritten = await this.#write(run, { openRunId: null, moves, replacement: null });
      return isWritten ? createdNow(run) : null;
    }
    if (policy === "replace") return this.#replace(run, holder);
    const cancel = policy === "cancelOther" ? { cancel: true as const } : {};
    try {
      const { by, reason } = originOf(run);
      const audit =
        by === undefined && reason === undefined ? {} : { audit: { ...(by && { by }), ...(reason && { reason }) } };
      await commands.send(holderId, { type: "queueStart", run: run.id, ...cancel, ...audit });
    } catch (error) {
      if (error instanceof InvalidStateError || error instanceof RunNotFoundError) return null;
      throw error;
    }
    const startedBy = JSON.stringify({ ...originOf(run), after: holderId });
    const queued: NewRun = { ...run, due: { kind: "held" }, startedBy };
    const isWritten = await this.#write(queued, { openRunId: holderId, moves, replacement: null });
    return isWritten ? { ...createdNow(run), startsAfter: holderId } : null;
  }

  /** A start that has a key and a hero cannot wait for two runs. */
  async #checkHero(run: NewRun, holder: AuditedRun, moves: readonly KeyMove[]): Promise<void> {
    const { workflow, heroKey, heroType, heroId } = run;
    if (heroKey === null || heroType === null || heroId === null || moves.some(({ key }) => key === "heroKey")) return;
    const { store } = this.#services;
    const active = await store.runs({ workflow, heroType, heroId, active: true, limit: 100 });
    const rows = await store.maintenance.audit.runsById(active.map(({ id }) => id));
    const other = rows.find((row) => row.heroKey === heroKey && row.id !== holder.id);
    if (other !== undefined)
      throw new AlreadyActiveError({ workflow, hero: { type: heroType, id: heroId }, runId: other.id });
  }

  async #write(run: NewRun, keyChange: NonNullable<Batch["keyChange"]>): Promise<boolean> {
    const { store, log } = this.#services;
    const result = await store.commit({ fence: null, transitions: [], starts: [run], keyChange });
    if (result.kind !== "committed") return false;
    publishStatus(log, run, "pending", result.at);
    return true;
  }

  /** A run that a worker has taken has begun, and one that has messages is about to begin: both are left as they are. */
  async #replace(run: NewRun, holder: AuditedRun): Promise<ConflictResult | null> {
    const { store, log } = this.#services;
    const id = holder.id;
    const state = fold((await store.logs([id])).get(id) ?? []);
    const [[task], record] = await Promise.all([store.tasks([id]), store.run(id)]);
    if (task === undefined || record === null) return null;
    if (state.startedAt !== null || isBusy(task) || task.deliveries > 0) {
      log.info(`Run ${id} has begun, so a start with its key did not replace it.`);
      return { id, created: false, replaced: false, startsAfter: null };
    }
    const { startBy, due } = run;
    const isHeld = task.dueAt === null;
    const { by: _by, reason: _reason, ...kept } = originOf(record);
    const startedBy = JSON.stringify({ ...originOf(run), ...kept });
    const event = newEvent("run.start_replaced", {}, startBy?.kind === "at" ? { startBy: startBy.ms } : {});
    const { keepsDueTime: _, ...park } = parkNotStarted({ ...state, seq: state.seq + 1 }, false);
    const time = isHeld ? ({ keepsDueTime: true } as const) : wakeOf(due);
    const next: NextTaskState = { ...park, ...time, ...(isHeld ? {} : { priority: run.priority }) };
    const { version, priority, input, tags } = run;
    const replacement = {
      ...{ runId: id, version, priority, input, tags, due: isHeld ? ({ kind: "held" } as const) : due },
      ...(startBy === undefined ? {} : { startBy }),
      ...(startedBy === "{}" ? {} : { startedBy }),
    };
    const result = await store.commit({
      fence: null,
      transitions: [createTransition(id, state.seq, { events: [event], next })],
      starts: [],
      keyChange: { openRunId: null, moves: [], replacement },
    });
    return result.kind === "committed" ? { id, created: false, replaced: true, startsAfter: kept.after ?? null } : null;
  }
}

const createdNow = ({ id }: NewRun): ConflictResult => ({ id, created: true, replaced: null, startsAfter: null });

/** The keys of the new run that the other run has. */
function keysOf({ id, workflow, startKey, heroKey }: AuditedRun, run: NewRun): readonly KeyMove[] {
  const moves: KeyMove[] = [];
  if (run.startKey !== null && workflow === run.workflow && startKey === run.startKey)
    moves.push({ runId: id, key: "startKey", value: run.startKey, to: null });
  if (run.heroKey !== null && heroKey === run.heroKey)
    moves.push({ runId: id, key: "heroKey", value: run.heroKey, to: null });
  return moves;
}

function wakeOf(due: NewRun["due"]): { readonly wakeAt: number | null; readonly wakeInMs: number | null } {
  if (due.kind === "at") return { wakeAt: due.ms, wakeInMs: null };
  return { wakeAt: null, wakeInMs: due.kind === "in" ? due.ms : 0 };
}
