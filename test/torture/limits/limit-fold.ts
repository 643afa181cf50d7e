/** The state of the tables of limits at each point of their history, computed without the library. */
import type { HistoryEntry } from "./limit-history.js";

export interface Owner {
  readonly owner: string;
  readonly epoch: number;
}

export interface RunState {
  /** Null while no worker owns the run. */
  owner: Owner | null;
  hasTask: boolean;
  route: string;
  state: number;
  readonly slots: Map<string, Owner>;
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

/** A value that a limit may have, as far as an admission can know. */
interface Candidate {
  readonly value: number;
  readonly setAt: number;
  /** Admissions that read the clock after this instant do not see the value any more. */
  obsoleteAt: number;
}

/** By then a statement of its own is committed and visible. */
const commitMs = 5_000;
/** An admission reads the limits some time before it reads the clock. */
const readMs = 2_000;

export class LimitFold {
  readonly runs = new Map<string, RunState>();
  readonly turns: Turn[] = [];
  /** The runs that hold a slot, by lane. */
  readonly holders = new Map<string, Set<string>>();
  readonly lanesOfClass = new Map<string, readonly string[]>();
  /** How many runs wait in each class. */
  readonly waiting = new Map<string, number>();
  readonly pids = new Map<string, number>();
  readonly #limits = new Map<string, Candidate[]>();
  readonly #openTurns = new Map<string, Turn>();
  readonly #deadWorkers = new Set<string>();

  run(id: string): RunState {
    let run = this.runs.get(id);
    if (run === undefined)
      this.runs.set(id, (run = { owner: null, hasTask: false, route: "", state: 0, slots: new Map() }));
    return run;
  }

  inUse(lane: string): number {
    return this.holders.get(lane)?.size ?? 0;
  }

  /** The lowest and the highest concurrency that an admission may have read that read the clock at this instant. */
  concurrency(lane: string, readAt: number): { readonly least: number; readonly most: number } {
    const candidates = this.#limits.get(lane.slice(0, lane.indexOf("\t"))) ?? [];
    const values = candidates.filter(({ obsoleteAt }) => readAt <= obsoleteAt).map(({ value }) => value);
    return values.length === 0 ? { least: 0, most: 0 } : { least: Math.min(...values), most: Math.max(...values) };
  }

  apply(entry: HistoryEntry): void {
    const { what, id, lane, value, at } = entry;
    switch (what) {
      case "slot_taken":
      case "slot_changed": {
        const owner = { owner: entry.owner as string, epoch: entry.epoch as number };
        this.run(id).slots.set(lane as string, owner);
        this.#holdersOf(lane as string).add(id);
        return;
      }
      case "slot_freed":
        this.run(id).slots.delete(lane as string);
        this.#holdersOf(lane as string).delete(id);
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
      case "limit_set": {
        const candidates = this.#limits.get(id) ?? [];
        const concurrency = value ?? Number.POSITIVE_INFINITY;
        candidates.push({ value: concurrency, setAt: at, obsoleteAt: Number.POSITIVE_INFINITY });
        this.#limits.set(id, candidates);
        return;
      }
      case "limit_seen":
        this.#seeLimit(this.#limits.get(id) ?? [], value ?? Number.POSITIVE_INFINITY, at);
        return;
      case "worker_set":
        this.pids.set(id, value as number);
        if (entry.state === 1) this.#deadWorkers.delete(id);
        else this.#deadWorkers.add(id);
    }
  }

  /** What was set long before is in force; else the oldest value that this can be. */
  #seeLimit(candidates: readonly Candidate[], value: number, at: number): void {
    const committed = candidates.findLastIndex(({ setAt }) => setAt < at - commitMs);
    const first = candidates.findIndex((one) => one.value === value && one.obsoleteAt === Number.POSITIVE_INFINITY);
    for (const candidate of candidates.slice(0, Math.max(committed, first, 0)))
      candidate.obsoleteAt = Math.min(candidate.obsoleteAt, at + readMs);
  }

  #applyTask({ what, id, owner, epoch, state, route, at }: HistoryEntry): void {
    const run = this.run(id);
    const before = run.owner;
    this.#countWaiting(run, -1);
    const isOwned = what !== "task_removed" && owner !== null;
    run.owner = isOwned ? { owner, epoch: epoch as number } : null;
    run.hasTask = what !== "task_removed";
    run.state = state as number;
    run.route = route as string;
    this.#countWaiting(run, 1);
    if (before !== null && (run.owner === null || !isSame(before, run.owner))) {
      const turn = this.#openTurns.get(id);
      if (turn !== undefined) Object.assign(turn, { until: at, wasTaken: this.#deadWorkers.has(turn.worker) });
      this.#openTurns.delete(id);
    }
    if (run.owner !== null && (before === null || !isSame(before, run.owner))) {
      const turn: Turn = {
        runId: id,
        worker: run.owner.owner,
        from: at,
        until: Number.POSITIVE_INFINITY,
        wasTaken: false,
      };
      this.turns.push(turn);
      this.#openTurns.set(id, turn);
    }
  }

  #countWaiting({ hasTask, owner, state, route }: RunState, change: number): void {
    if (!hasTask || owner !== null || state !== 1) return;
    const count = (this.waiting.get(route) ?? 0) + change;
    if (count === 0) this.waiting.delete(route);
    else this.waiting.set(route, count);
  }

  #holdersOf(lane: string): Set<string> {
    let holders = this.holders.get(lane);
    if (holders === undefined) this.holders.set(lane, (holders = new Set()));
    return holders;
  }
}

export const isSame = (a: Owner, b: Owner): boolean => a.owner === b.owner && a.epoch === b.epoch;
