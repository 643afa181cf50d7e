/**
 * Finds runs that wait for each other for ever: a run that holds a slot until it ends (`while: "open"`) waits for a child, and the
 * child waits for a slot that can only become free when the run has ended. From each lane that may be part of such a cycle, the
 * chain holder → child → lane that the child waits for is walked. One run of a cycle is refused, with an error that names the
 * chain, so its parent goes on.
 *
 * The walk takes no locks. What it sees stays true as long as nothing from outside intervenes: a holder keeps its slot until it
 * ends, and it cannot end before its child. It is done twice before a run is refused.
 */
import { laneOf } from "../../core/limits/lane.js";
import { valuesInForce } from "../../core/limits/settings.js";
import { childRunId } from "../../core/naming/ids.js";
import { readParkingNote } from "../../core/run/parking-note.js";
import type { Waiting } from "../../core/run/stored-schema.js";
import type { LimitRefusal, StoredLimit } from "../../store/contract/limits.js";
import type { RunRecord, Store, TaskRecord } from "../../store/contract/store.js";

/** A walk gives up after so many runs and lanes: so many do not wait for each other by mistake. */
const maxNodes = 200;
const maxHolders = 50;
const maxChildren = 100;
const maxLanesPerCheck = 100;
/** Once a minute, so many lanes of each limit are looked at without a reason. */
const lanesPerLook = 25;

export class OpenCycles {
  readonly #store: Store;
  readonly #openLimits: ReadonlySet<string>;
  readonly #lanes = new Set<string>();
  /** Lanes of which a walk has met a run that a worker executes, and that may soon wait for a child. */
  readonly #undecided = new Set<string>();
  /** By limit: the last lane that was looked at without a reason. */
  readonly #lookedUpTo = new Map<string, string | null>();

  /** @param openLimits the names of the limits whose slots are held until the end of the run */
  constructor(store: Store, openLimits: ReadonlySet<string>) {
    this.#store = store;
    this.#openLimits = openLimits;
  }

  /** Called with the lanes that the child of a run waits for, and with those of a run that begins to wait for a child. */
  note(lanes: readonly string[]): void {
    for (const lane of lanes) if (this.#openLimits.has(laneOf(lane).limit)) this.#lanes.add(lane);
  }

  /** Notes the next lanes in use: the process that was to look at them may have died. */
  async noteSome(): Promise<void> {
    for (const name of this.#openLimits) {
      const after = this.#lookedUpTo.get(name) ?? null;
      const lanes = await this.#store.limits.lanes(name, { after, limit: lanesPerLook });
      this.note(lanes.map(({ id }) => id));
      this.#lookedUpTo.set(name, lanes.length < lanesPerLook ? null : (lanes.at(-1)?.id as string));
    }
  }

  get hasLanes(): boolean {
    return this.#lanes.size > 0;
  }

  /** Whether a run that begins to wait for a child, and holds no slot itself, may close a cycle. */
  get isUndecided(): boolean {
    return this.#lanes.size + this.#undecided.size > 0;
  }

  /** Called when such a run has begun to wait for a child, and from time to time, because another process may have such runs. */
  lookAgain(): void {
    for (const lane of this.#undecided) this.#lanes.add(lane);
  }

  /** Returns the ids of runs that were refused, because they have closed a cycle. */
  async refuseClosing(): Promise<readonly string[]> {
    const lanes = [...this.#lanes].slice(0, maxLanesPerCheck);
    for (const lane of lanes) {
      this.#lanes.delete(lane);
      this.#undecided.add(lane);
    }
    try {
      const refusals = new Map<string, LimitRefusal>();
      for (const lane of lanes) {
        const walk = await new CycleWalk(this.#store).walk(lane);
        const refusal = walk === "undecided" || walk === null ? null : await this.#confirmed(lane, walk);
        if (refusal !== null) refusals.set(refusal.runId, refusal);
        if (walk !== "undecided") this.#undecided.delete(lane);
      }
      return refusals.size === 0 ? [] : await this.#store.limits.refuse([...refusals.values()]);
    } catch (error) {
      for (const lane of lanes) this.#lanes.add(lane);
      throw error;
    }
  }

  async #confirmed(lane: string, first: LimitRefusal): Promise<LimitRefusal | null> {
    const second = await new CycleWalk(this.#store).walk(lane);
    return second !== "undecided" && second?.runId === first.runId ? second : null;
  }
}

class CycleWalk {
  readonly #store: Store;
  #limits: ReadonlyMap<string, StoredLimit> | null = null;
  #nodeCount = 0;
  #isUndecided = false;
  readonly #stuckLanes = new Map<string, boolean>();
  readonly #stuckRuns = new Map<string, boolean>();
  /** For the chain: the holder of a lane, and the child of a run, that cannot go on. */
  readonly #holderOf = new Map<string, string>();
  readonly #childOf = new Map<string, string>();
  /** The lane of each run that waits in one and cannot go on. */
  readonly #laneOf = new Map<string, string>();

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Of the runs that wait for each other, the one that was started last; null if they can go on. "undecided": it depends on what a
   * run does that is executed or about to be.
   */
  async walk(lane: string): Promise<LimitRefusal | "undecided" | null> {
    if (!(await this.#isLaneStuck(lane))) return this.#isUndecided ? "undecided" : null;
    const closing = [...this.#laneOf]
      .filter(([runId]) => this.#stuckRuns.get(runId) === true)
      .sort()
      .at(-1);
    if (closing === undefined) return null;
    const [runId, blockedLane] = closing;
    return { runId, lane: blockedLane, chain: this.#chainFrom(runId) };
  }

  /** What is on the way counts as stuck: runs that wait for each other hold each other up. */
  async #isLaneStuck(lane: string): Promise<boolean> {
    const known = this.#stuckLanes.get(lane);
    if (known !== undefined) return known;
    this.#stuckLanes.set(lane, true);
    const isStuck = await this.#areHoldersStuck(lane);
    this.#stuckLanes.set(lane, isStuck);
    return isStuck;
  }

  async #areHoldersStuck(lane: string): Promise<boolean> {
    const concurrency = await this.#concurrencyOf(laneOf(lane).limit);
    if (concurrency === null || concurrency > maxHolders || this.#isTooLong()) return false;
    const slots = await this.#store.limits.slots({ lane }, maxHolders + 1);
    const holders = slots.filter(({ isWaiting }) => !isWaiting);
    if (holders.length < concurrency || holders.length > maxHolders) return false;
    for (const { runId, owner, node } of holders)
      if (owner !== null || node !== "" || !(await this.#isRunStuck(runId))) return false;
    this.#holderOf.set(lane, holders[0]?.runId as string);
    return true;
  }

  /** null: slots are not what the limit's runs wait for. */
  async #concurrencyOf(name: string): Promise<number | null> {
    this.#limits ??= new Map((await this.#store.limits.list()).map((limit) => [limit.name, limit]));
    const limit = this.#limits.get(name);
    if (limit === undefined || !limit.isHeldOpen) return null;
    return valuesInForce(limit, limit.override, await this.#store.now()).concurrency;
  }

  async #isRunStuck(runId: string): Promise<boolean> {
    const known = this.#stuckRuns.get(runId);
    if (known !== undefined) return known;
    this.#stuckRuns.set(runId, true);
    const isStuck = await this.#canNotGoOn(runId);
    this.#stuckRuns.set(runId, isStuck);
    return isStuck;
  }

  async #canNotGoOn(runId: string): Promise<boolean> {
    if (this.#isTooLong()) return false;
    const [[task], [run]] = await Promise.all([this.#store.tasks([runId]), this.#store.runsById([runId])]);
    if (task === undefined || run === undefined) return false;
    const isMoving =
      task.pendingMessages > 0 || task.state === "owned" || (task.state === "ready" && task.classId === undefined);
    if (isMoving) this.#isUndecided = true;
    if (isMoving) return false;
    return task.state === "ready" ? this.#isInStuckClass(task) : this.#waitsForStuckChildren(task, run);
  }

  async #isInStuckClass({ runId, classId }: TaskRecord): Promise<boolean> {
    if (classId === undefined) return false;
    const [runClass] = await this.#store.limits.classes({ ids: [classId] }, 1);
    for (const lane of runClass?.lanes ?? []) {
      if (!(await this.#isLaneStuck(lane))) continue;
      this.#laneOf.set(runId, lane);
      return true;
    }
    return false;
  }

  /** A run that has anything else to wait for may go on by itself. */
  async #waitsForStuckChildren({ runId, dueAt }: TaskRecord, { waiting, status }: RunRecord): Promise<boolean> {
    if (dueAt !== null || status !== "waiting") return false;
    const calls = readParkingNote(waiting).waitingFor;
    if (calls.length === 0 || !calls.every(isForChildren)) return false;
    const children = calls.flatMap((call) => childrenOf(runId, call));
    if (children.length > maxChildren) return false;
    const open = await this.#begunOf(children);
    for (const child of open) if (!(await this.#isRunStuck(child))) return false;
    const [first] = open;
    if (first !== undefined) this.#childOf.set(runId, first);
    return first !== undefined;
  }

  /** Without the children of a map that are held back: they begin when others have ended. */
  async #begunOf(children: readonly string[]): Promise<readonly string[]> {
    const tasks = await this.#store.tasks(children);
    const parked = tasks.filter(({ state, dueAt }) => state === "parked" && dueAt === null).map(({ runId }) => runId);
    const runs = parked.length === 0 ? [] : await this.#store.runsById(parked);
    const heldBack = new Set(runs.filter(({ startedAt }) => startedAt === null).map(({ id }) => id));
    return tasks.map(({ runId }) => runId).filter((runId) => !heldBack.has(runId));
  }

  #isTooLong(): boolean {
    this.#nodeCount += 1;
    return this.#nodeCount > maxNodes;
  }

  /** In the order in which the runs wait for each other, until a run comes again. */
  #chainFrom(first: string): readonly string[] {
    const chain: string[] = [];
    const seen = new Set<string>();
    for (let runId: string | undefined = first; runId !== undefined && !seen.has(runId); ) {
      seen.add(runId);
      const lane = this.#laneOf.get(runId);
      const next: string | undefined = lane === undefined ? this.#childOf.get(runId) : this.#holderOf.get(lane);
      if (next === undefined) break;
      chain.push(
        lane === undefined
          ? `run ${runId} waits for its child ${next}`
          : `run ${runId} waits for a slot of the limit ${nameOf(lane)}, which run ${next} holds until it ends`,
      );
      runId = next;
    }
    return chain;
  }
}

function nameOf(lane: string): string {
  const { limit, key } = laneOf(lane);
  return key === "" ? `"${limit}"` : `"${limit}" for the key "${key}"`;
}

const isForChildren = ({ kind }: Waiting): boolean => kind === "child" || kind === "map";

function childrenOf(runId: string, call: Waiting): readonly string[] {
  if (call.kind === "child") return [call.runId];
  if (call.kind !== "map") return [];
  return Array.from({ length: Math.min(call.count, maxChildren + 1) }, (_, index) =>
    childRunId(runId, call.name, index),
  );
}
