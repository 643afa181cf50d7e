/** The steps of one run that wait for a slot. While a step waits for its slot, the run is not parked, unless it does nothing else. */
import type { Semaphore } from "../../concurrency/semaphore.js";

/** What a step waits in. */
export interface SlotGate extends Pick<Semaphore, "acquire"> {
  /**
   * Gives the wait to the run, which is about to be parked. Resolves to false if the step has got its slot meanwhile. Absent: a
   * run that waits here cannot be parked.
   */
  readonly leave?: () => Promise<boolean>;
}

interface Wait {
  readonly gate: SlotGate;
  /** The key of the step; "" if no step waits. */
  readonly key: string;
  /** Stops waiting, and frees what the step holds meanwhile. */
  cancel(): void;
  /** Frees what the step holds meanwhile; the run goes on waiting without a worker. */
  onLeft: (() => void) | null;
  /** Waits again, if the run is not parked after all. */
  restart: (() => void) | null;
}

export interface WaitOptions {
  /** Called if the wait is canceled or left. */
  readonly onCanceled?: (() => void) | null;
  readonly key?: string;
  readonly restart?: () => void;
}

export class SlotQueue {
  /** Created when the first step has to wait. */
  #waits: Set<Wait> | null = null;
  /** Those that belong to the run now, although it is not parked yet. */
  #left: Wait[] = [];
  #hasLeftAny = false;

  get waitingCount(): number {
    return this.#waits?.size ?? 0;
  }

  /** The keys of the steps whose waits belong to the run. */
  get leftKeys(): readonly string[] {
    return this.#left.map(({ key }) => key);
  }

  /** Whether a wait of this turn may have belonged to the run without a worker. */
  get hasLeftAny(): boolean {
    return this.#hasLeftAny;
  }

  /** Whether all steps that wait may go on waiting without a worker. */
  get canLeaveAll(): boolean {
    for (const { gate, restart } of this.#waits ?? []) if (gate.leave === undefined || restart === null) return false;
    return true;
  }

  /**
   * Calls `onAcquired` with the function that releases the slot, at once if a slot is free.
   */
  enqueue(gate: SlotGate, onAcquired: (release: () => void) => void, options: WaitOptions = {}): void {
    const { onCanceled = null, key = "", restart = null } = options;
    let isAcquired = false;
    const cancel = () => {
      release();
      onCanceled?.();
    };
    const wait: Wait = { gate, key, cancel, onLeft: onCanceled, restart };
    const release = gate.acquire((releaseSlot) => {
      isAcquired = true;
      this.#waits?.delete(wait);
      onAcquired(releaseSlot);
    });
    if (!isAcquired) (this.#waits ??= new Set()).add(wait);
  }

  /** Gives all waits to the run. Those of steps that get their slots meanwhile stay as they are. */
  async leaveAll(): Promise<void> {
    this.#hasLeftAny = true;
    const leaving = [...(this.#waits ?? [])].filter(({ gate }) => gate.leave !== undefined);
    await Promise.all(
      leaving.map(async (wait) => {
        const isLeft = await wait.gate.leave?.();
        if (isLeft === true && this.#waits?.delete(wait)) this.#left.push(wait);
      }),
    );
  }

  /** The run is not parked: its steps wait as before. */
  returnAll(): void {
    const left = this.#left;
    this.#left = [];
    for (const { onLeft, restart } of left) {
      onLeft?.();
      restart?.();
    }
  }

  /** Cancels all waits, because no step of the run may start any more. */
  cancelAll(): void {
    for (const { cancel } of this.#left) cancel();
    this.#left = [];
    this.cancelWaits();
  }

  /** Cancels the waits that do not belong to the run. */
  cancelWaits(): void {
    if (this.#waits === null) return;
    for (const { cancel } of this.#waits) cancel();
    this.#waits.clear();
  }

  /** The run is parked, or another worker owns it: what it waits for is its own affair. */
  close(): void {
    for (const { onLeft } of this.#left) onLeft?.();
    this.#left = [];
    this.cancelAll();
  }
}
