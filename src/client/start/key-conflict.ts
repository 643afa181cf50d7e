/**
 * Starts with a key that another run has: the new run waits for the end of that run, takes over the key of a run that has
 * ended, or replaces what a run was started with that has not begun.
 *
 * The key always belongs to the run that was started last. The run before it records in its log that the new run waits
 * (`run.start_queued`), and its last commit lets that run begin. The new run, the move of the key and the record, or the
 * message that leads to it, are one commit, for which the run before is locked: it cannot end without knowing of the new run.
 */
import { AlreadyActiveError, StoreError } from "../../core/errors/errors.js";
import { readGathering } from "../../core/gathering/run-gathering.js";
import { newEvent } from "../../core/run/event.js";
import { fold } from "../../core/run/fold.js";
import { encodeMessage } from "../../core/run/message.js";
import { parkNotStarted } from "../../core/run/park.js";
import type { CommandAudit } from "../../core/run/stored-schema.js";
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
import { cancelIfOpen } from "../command/cancel-if-open.js";
import { isBusy, type QueueStart, queueTransition } from "../command/queue-handover.js";
import type { RunCommands } from "../command/run-commands.js";
import type { OnConflict } from "./new-run.js";
import { originOf } from "./start-origin.js";

export type LatePolicy = Exclude<OnConflict, "attach" | "fail">;

export interface KeyConflictServices {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly commands: RunCommands;
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

/** @param mayBeWritten whether an earlier commit of this start may still be executed, which makes the run wait for another */
export type StartAgain = (run: NewRun, mayBeWritten: boolean) => Promise<RefusedStart | null>;

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
  async resolve(run: NewRun, refusal: RefusedStart, policy: LatePolicy, start: StartAgain): Promise<ConflictResult> {
    const key = JSON.stringify([run.workflow, run.startKey, run.heroKey]);
    const before = this.#lastByKey.get(key);
    const resolving = (async () => {
      await before?.catch(() => {});
      // Another start of this process has changed who has the key.
      const current = before === undefined ? refusal : await start(run, false);
      return current === null ? createdNow(run) : this.#resolve(run, current, policy, start);
    })();
    this.#lastByKey.set(key, resolving);
    try {
      return await resolving;
    } finally {
      if (this.#lastByKey.get(key) === resolving) this.#lastByKey.delete(key);
    }
  }

  async #resolve(run: NewRun, refusal: RefusedStart, policy: LatePolicy, start: StartAgain): Promise<ConflictResult> {
    const { runtime, store } = this.#services;
    let holder = refusal.existing.id;
    let mayBeWritten = false;
    let uncertain: StoreError | null = null;
    for (let tries = 1; tries <= maxTries; tries += 1) {
      try {
        const result = await this.#try(run, holder, policy, uncertain);
        if (result instanceof StoreError) uncertain = result;
        else if (result !== null) return result;
      } catch (error) {
        if (error === uncertain || !(error instanceof StoreError && error.transient)) throw error;
        mayBeWritten = true;
        // The answer may be lost although the run was written.
        if ((await store.run(run.id)) !== null) return { ...createdNow(run), startsAfter: holder };
      }
      if (uncertain === null) {
        const next = await start(run, mayBeWritten);
        if (next === null) return createdNow(run);
        holder = next.existing.id;
      }
      if (tries > 3) await sleep(runtime, runtime.random() * Math.min(50, 2 ** tries));
    }
    throw new StoreError(
      `The key of the start changed hands ${maxTries} times while run ${run.id} was started; try again.`,
      {
        transient: true,
      },
    );
  }

  /**
   * Returns null if something has changed meanwhile, and the error of a replacement that the server may still execute.
   *
   * @param uncertain the error of such a replacement by an earlier try
   */
  async #try(
    run: NewRun,
    holderId: string,
    policy: LatePolicy,
    uncertain: StoreError | null,
  ): Promise<ConflictResult | StoreError | null> {
    const { store } = this.#services;
    const [holder] = await store.maintenance.audit.runsById([holderId]);
    const moves = holder === undefined ? [] : keysOf(holder, run);
    // The failed replacement has been executed, or still may be. The same input in another run would be executed twice.
    if (uncertain !== null && (moves.length === 0 || holder?.finishedAt !== null)) throw uncertain;
    if (holder === undefined || moves.length === 0) return null;
    await this.#checkHero(run, holder, moves);
    if (holder.finishedAt !== null) {
      const isWritten = await this.#write(run, { openRun: null, moves, replacement: null });
      return isWritten ? createdNow(run) : null;
    }
    if (policy === "replace") return this.#replace(run, holder);
    return this.#queue(run, holder, policy, moves);
  }

  /** Returns null if the other run has ended or changed meanwhile, or was canceled by this start and has ended at once. */
  async #queue(
    run: NewRun,
    { id, task }: AuditedRun,
    policy: "queue" | "cancelOther",
    moves: readonly KeyMove[],
  ): Promise<ConflictResult | null> {
    const { store, commands } = this.#services;
    const { by, reason, ...origin } = originOf(run);
    const audit: CommandAudit = { ...(by === undefined ? {} : { by }), ...(reason === undefined ? {} : { reason }) };
    const command: QueueStart = {
      ...{ type: "queueStart", run: run.id },
      ...(policy === "cancelOther" ? { cancel: true } : {}),
      ...(by === undefined && reason === undefined ? {} : { audit }),
    };
    const startedBy = JSON.stringify({ ...audit, ...origin, after: id });
    const queued: NewRun = { ...run, due: { kind: "held" }, startedBy };
    const isBusy = task?.state === "owned" || (task?.pendingMessages ?? 0) > 0;
    if (isBusy) {
      const openRun = { id, message: encodeMessage(id, command) };
      const isWritten = await this.#write(queued, { openRun, moves, replacement: null });
      return isWritten ? { ...createdNow(run), startsAfter: id } : null;
    }
    if (policy === "cancelOther" && !(await this.#isBeingCanceled(id))) {
      await cancelIfOpen(commands, id, `Run ${run.id} was started in its place`);
      return null;
    }
    const transition = await queueTransition(store, id, [command], await store.now());
    if (transition === null) return null;
    const openRun = { id, message: null };
    const isWritten = await this.#write(queued, { openRun, moves, replacement: null }, [transition]);
    return isWritten ? { ...createdNow(run), startsAfter: id } : null;
  }

  /** A run that has children, or steps to compensate, does not end by its cancel: a worker has to take it first. */
  async #isBeingCanceled(id: string): Promise<boolean> {
    const log = (await this.#services.store.logs([id])).get(id) ?? [];
    return log.some(({ type }) => type === "run.cancel_requested");
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

  async #write(
    run: NewRun,
    keyChange: NonNullable<Batch["keyChange"]>,
    transitions: Batch["transitions"] = [],
  ): Promise<boolean> {
    const { store, log } = this.#services;
    const result = await store.commit({ fence: null, transitions, starts: [run], keyChange });
    if (result.kind !== "committed") return false;
    publishStatus(log, run, "pending", result.at);
    return true;
  }

  /** A run that a worker has taken has begun, and one that has messages is about to begin: both are left as they are. */
  async #replace(run: NewRun, holder: AuditedRun): Promise<ConflictResult | StoreError | null> {
    const { store, log } = this.#services;
    const id = holder.id;
    const state = fold((await store.logs([id])).get(id) ?? []);
    const [[task], record] = await Promise.all([store.tasks([id]), store.run(id)]);
    if (task === undefined || record === null) return null;
    const collectsList = readGathering(record.schedule)?.list !== undefined;
    if (state.startedAt !== null || isBusy(task) || task.deliveries > 0 || collectsList) {
      const reason = collectsList ? "collects the inputs of debounced starts" : "has begun";
      log.info(`Run ${id} ${reason}, so a start with its key did not replace it.`);
      return { id, created: false, replaced: false, startsAfter: null };
    }
    const { startBy, due } = run;
    const isHeld = task.dueAt === null;
    const { by: _by, reason: _reason, ...kept } = originOf(record);
    const startedBy = JSON.stringify({ ...originOf(run), ...kept });
    const event = newEvent("run.start_replaced", {}, startBy?.kind === "at" ? { startBy: startBy.ms } : {});
    const { keepsDueTime: _, ...park } = parkNotStarted({ ...state, seq: state.seq + 1 }, false, record.waiting);
    const time = isHeld ? ({ keepsDueTime: true } as const) : wakeOf(due);
    const next: NextTaskState = { ...park, ...time, ...(isHeld ? {} : { priority: run.priority }) };
    const { version, priority, input, tags } = run;
    const replacement = {
      ...{ runId: id, version, priority, input, tags, due: isHeld ? ({ kind: "held" } as const) : due },
      ...(startBy === undefined ? {} : { startBy }),
      ...(startedBy === "{}" ? {} : { startedBy }),
    };
    const batch: Batch = {
      fence: null,
      transitions: [createTransition(id, state.seq, { events: [event], next })],
      starts: [],
      keyChange: { openRun: null, moves: [], replacement },
    };
    const isReplaced = await store.commit(batch).then(
      ({ kind }) => kind === "committed",
      async (error: unknown) => {
        const isAnswerLost = error instanceof StoreError && error.transient;
        if (!isAnswerLost) throw error;
        return (await this.#wasReplaced(id, state.seq, run).catch(() => false)) || error;
      },
    );
    if (isReplaced instanceof StoreError) return isReplaced;
    return isReplaced ? { id, created: false, replaced: true, startsAfter: kept.after ?? null } : null;
  }

  /**
   * After a failed commit: whether the run was replaced and only the answer was lost. Otherwise the start would be made again, and
   * if the run has begun meanwhile, its input would be executed twice.
   */
  async #wasReplaced(id: string, lastSeq: number, { input }: NewRun): Promise<boolean> {
    const { store } = this.#services;
    const [next] = await store.log(id, { after: lastSeq, limit: 1 });
    return next?.type === "run.start_replaced" && (await store.run(id))?.input === input;
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
