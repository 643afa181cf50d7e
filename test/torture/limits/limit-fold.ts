/** The state of the tables of limits at each point of their history, computed without the library. */
import type { HistoryEntry } from "./limit-history.js";
import { LimitValues } from "./limit-values.js";

export interface Owner {
  readonly owner: string;
  readonly epoch: number;
}

export interface Slot {
  readonly lane: string;
  /** The attempt of a step; "" if the run has the slot. */
  readonly node: string;
  /** Null: the run holds it until it ends. */
  readonly owner: Owner | null;
}

export interface RunState {
  /** Null while no worker owns the run. */
  owner: Owner | null;
  hasTask: boolean;
  /** Whether a worker has ever owned it. */
  hasBegun: boolean;
  route: string;
  state: number;
  /** By lane and node, also those that a step only waits for. */
  readonly slots: Map<string, Slot>;
}

/** A time during which one worker owned a run. */
export interface Turn {
  readonly runId: string;
  readonly worker: string;
  readonly from: number;
  until: number;
  /** Whether others took the run, because the worker counted as dead. */
  wasTaken: boolean;
}

/** A time during which a step held a slot. */
export interface StepHold extends Turn {
  readonly lane: string;
  readonly node: string;
}

const noLimit = new LimitValues();

export class LimitFold {
  readonly runs = new Map<string, RunState>();
  readonly turns: Turn[] = [];
  readonly stepHolds: StepHold[] = [];
  /** What holds a slot, by lane: runs and steps. */
  readonly holders = new Map<string, Set<string>>();
  /** How many steps wait, by lane. */
  readonly waitingSteps = new Map<string, Set<string>>();
  readonly lanesOfClass = new Map<string, readonly string[]>();
  /** How many runs wait in each class. */
  readonly waiting = new Map<string, number>();
  readonly pids = new Map<string, number>();
  readonly #limits = new Map<string, LimitValues>();
  readonly #openTurns = new Map<string, Turn>();
  readonly #openHolds = new Map<string, StepHold>();
  /** The epochs of live workers. */
  readonly #epochs = new Map<string, number>();

  run(id: string): RunState {
    const empty = () => ({ owner: null, hasTask: false, hasBegun: false, route: "", state: 0, slots: new Map() });
    return getOrMake(this.runs, id, empty);
  }

  inUse(lane: string): number {
    return this.holders.get(lane)?.size ?? 0;
  }

  limitOf(lane: string): LimitValues {
    return this.#limits.get(lane.slice(0, lane.indexOf("\t"))) ?? noLimit;
  }

  apply(entry: HistoryEntry): void {
    const { what, id, value, at } = entry;
    switch (what) {
      case "slot_taken":
      case "slot_changed":
      case "slot_freed":
        this.#applySlot(entry);
        return;
      case "task_added":
      case "task_changed":
      case "task_removed":
        this.#applyTask(entry);
        return;
      case "class_added":
        this.lanesOfClass.set(id, JSON.parse(entry.detail as string) as readonly string[]);
        return;
      case "class_removed":
        return;
      case "limit_set":
        getOrMake(this.#limits, id, () => new LimitValues()).set(entry.detail as string, entry.override, at);
        return;
      case "limit_seen":
        this.#limits.get(id)?.see(entry.detail as string, entry.override, at);
        return;
      case "worker_set":
        this.pids.set(id, value as number);
        if (entry.state === 1) this.#epochs.set(id, entry.epoch as number);
        else this.#epochs.delete(id);
    }
  }

  #applySlot({ what, id, lane: laneOrNull, node: nodeOrNull, waits, owner, epoch, at }: HistoryEntry): void {
    const [lane, node] = [laneOrNull as string, nodeOrNull ?? ""];
    const { slots } = this.run(id);
    const key = `${lane}\n${node}`;
    const holder = `${id}\n${node}`;
    const holders = getOrMake(this.holders, lane, () => new Set<string>());
    const waiting = getOrMake(this.waitingSteps, lane, () => new Set<string>());
    const slotOwner = owner === null ? null : { owner, epoch: epoch as number };
    holders.delete(holder);
    waiting.delete(holder);
    slots.delete(key);
    if (what === "slot_freed") return this.#endHold(`${holder}\n${lane}`, slotOwner, at);
    slots.set(key, { lane, node, owner: slotOwner });
    // A step of a parked run that has let its offer lapse neither holds a slot nor stands in the line.
    const hasLapsed = waits === null && owner === null && node !== "";
    if (!hasLapsed) (waits === 1 ? waiting : holders).add(holder);
    if (waits === 1 || node === "" || slotOwner === null) return;
    const hold = { ...turnOf(id, slotOwner, at), lane, node };
    this.stepHolds.push(hold);
    this.#openHolds.set(`${holder}\n${lane}`, hold);
  }

  #endHold(key: string, owner: Owner | null, at: number): void {
    const hold = this.#openHolds.get(key);
    if (hold === undefined || owner === null) return;
    Object.assign(hold, { until: at, wasTaken: this.isDead(owner) });
    this.#openHolds.delete(key);
  }

  isDead({ owner, epoch }: Owner): boolean {
    return this.#epochs.get(owner) !== epoch;
  }

  #applyTask({ what, id, owner, epoch, state, route, at }: HistoryEntry): void {
    const run = this.run(id);
    const before = run.owner;
    this.#countWaiting(run, -1);
    const isOwned = what !== "task_removed" && owner !== null;
    run.owner = isOwned ? { owner, epoch: epoch as number } : null;
    run.hasTask = what !== "task_removed";
    run.hasBegun ||= isOwned;
    run.state = state as number;
    run.route = route as string;
    this.#countWaiting(run, 1);
    if (isSame(before, run.owner)) return;
    const turn = this.#openTurns.get(id);
    if (turn !== undefined && before !== null) Object.assign(turn, { until: at, wasTaken: this.isDead(before) });
    this.#openTurns.delete(id);
    if (run.owner === null) return;
    const next = turnOf(id, run.owner, at);
    this.turns.push(next);
    this.#openTurns.set(id, next);
  }

  #countWaiting({ hasTask, owner, state, route }: RunState, change: number): void {
    if (!hasTask || owner !== null || state !== 1) return;
    const count = (this.waiting.get(route) ?? 0) + change;
    if (count === 0) this.waiting.delete(route);
    else this.waiting.set(route, count);
  }
}

const turnOf = (runId: string, { owner: worker }: Owner, from: number): Turn => ({
  ...{ runId, worker, from, until: Number.POSITIVE_INFINITY, wasTaken: false },
});

function getOrMake<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

export const isSame = (a: Owner | null, b: Owner | null): boolean =>
  a === b || (a !== null && b !== null && a.owner === b.owner && a.epoch === b.epoch);
