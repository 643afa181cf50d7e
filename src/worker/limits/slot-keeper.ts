/** The slots that the runs of a session hold: which commits give them back, and to which lanes. */
import { readParkingNote, withOpenLanes } from "../../core/run/parking-note.js";
import type { Transition } from "../../store/contract/store.js";
import type { LaneWaker } from "./lane-waker.js";

interface HeldLanes {
  /** The lanes in which the run holds a slot while it is executed. */
  readonly executing: readonly string[];
  /** The lanes in which it holds a slot until it ends. */
  readonly open: readonly string[];
}

/** What looks for runs that wait for each other. */
interface CycleWatch {
  /** Whether a run without slots may close a cycle when it begins to wait for children. */
  readonly isUndecided: boolean;
  /** @param lanes those in which the run keeps a slot while it waits for children */
  onWaitingForChildren(lanes: readonly string[]): void;
}

export class SlotKeeper {
  readonly #waker: LaneWaker;
  readonly #lanesOfRuns = new Map<string, HeldLanes>();
  /** How many commits that released this run are durable although their receipts have not arrived. */
  readonly #unacknowledged = new Map<string, number>();

  readonly #cycles: CycleWatch;
  /** The runs whose last commit parks them until children end. */
  readonly #waitForChildren = new Set<string>();

  constructor(waker: LaneWaker, cycles: CycleWatch) {
    this.#waker = waker;
    this.#cycles = cycles;
  }

  /**
   * Called when the run was admitted. If this session still knows its slots, it has released the run before, and the receipt
   * of that commit is on its way.
   */
  hold(runId: string, lanes: readonly string[], openLanes: readonly string[]): void {
    const releasedLanes = this.#lanesOfRuns.get(runId);
    if (releasedLanes !== undefined) {
      this.#unacknowledged.set(runId, (this.#unacknowledged.get(runId) ?? 0) + 1);
      this.#free(releasedLanes.executing);
    }
    this.#lanesOfRuns.set(runId, {
      executing: lanes.filter((lane) => !openLanes.includes(lane)),
      open: openLanes,
    });
  }

  /** Called when another worker owns the run: the transaction that took it from this one has freed its slots. */
  forget(runId: string): void {
    this.#lanesOfRuns.delete(runId);
  }

  /** Makes a transition that parks or finishes a run with slots give them back. */
  withRelease(transition: Transition): Transition {
    const { runId, next } = transition;
    const lanes = this.#lanesOfRuns.get(runId);
    const mayCloseCycle = next.kind === "park" && ((lanes?.open.length ?? 0) > 0 || this.#cycles.isUndecided);
    if (mayCloseCycle && isForChildren(next.waiting)) this.#waitForChildren.add(runId);
    else this.#waitForChildren.delete(runId);
    if (next.kind === "keep" || lanes === undefined) return transition;
    const { executing, open } = lanes;
    const isReleasing = executing.length > 0 || (next.kind === "finish" && open.length > 0);
    const released = isReleasing ? { ...next, releasesSlots: true as const } : next;
    if (released.kind === "park" && open.length > 0)
      return { ...transition, next: { ...released, waiting: withOpenLanes(released.waiting, open) } };
    return isReleasing ? { ...transition, next: released } : transition;
  }

  /** Called when a transition is durable and the worker does not own the run any more. */
  onReleased(runId: string, hasEnded: boolean): void {
    const unacknowledged = this.#unacknowledged.get(runId) ?? 0;
    if (unacknowledged > 1) this.#unacknowledged.set(runId, unacknowledged - 1);
    else this.#unacknowledged.delete(runId);
    const lanes = unacknowledged > 0 ? undefined : this.#lanesOfRuns.get(runId);
    if (this.#waitForChildren.delete(runId) && !hasEnded) this.#cycles.onWaitingForChildren(lanes?.open ?? []);
    if (lanes === undefined) return;
    this.#lanesOfRuns.delete(runId);
    this.#free(hasEnded ? [...lanes.executing, ...lanes.open] : lanes.executing);
  }

  #free(lanes: readonly string[]): void {
    this.#waker.free(lanes.map((lane) => ({ lane, count: 1 })));
  }
}

const isForChildren = (waiting: string | null): boolean =>
  readParkingNote(waiting).waitingFor.some(({ kind }) => kind === "child" || kind === "map");
