/** The slots of the memory store, by lane, with the steps that wait for one. */
import type { SlotRecord } from "../contract/limits.js";

export interface MemorySlot extends SlotRecord {
  /** Of waiting steps: lower ranks come first. */
  readonly rank: number;
  /** How much of the rate the step takes. */
  readonly units: number;
  /** A slot that is offered to a run that no worker executes, until when; null: none is. */
  readonly offeredUntil?: number | null;
  /** Whether the run has let an offer lapse: its step is out of the line until the run is executed again. */
  readonly isOutOfLine?: boolean;
}

type SlotKey = Pick<SlotRecord, "runId" | "node">;

const keyOf = ({ runId, node }: SlotKey): string => `${runId}\t${node}`;

export class MemorySlots {
  readonly #byLane = new Map<string, Map<string, MemorySlot>>();

  /** How many slots are held. */
  inUse(lane: string): number {
    let count = 0;
    for (const { isWaiting } of this.#of(lane).values()) if (!isWaiting) count += 1;
    return count;
  }

  /** The steps that wait, in their order. */
  waiting(lane: string): readonly MemorySlot[] {
    return [...this.#of(lane).values()]
      .filter(({ isWaiting, isOutOfLine }) => isWaiting && isOutOfLine !== true)
      .sort((a, b) => a.rank - b.rank || a.at - b.at || compare(keyOf(a), keyOf(b)));
  }

  /** The steps of the lane whose runs no worker executes. */
  parked(lane: string): readonly MemorySlot[] {
    return [...this.#of(lane).values()].filter(isParkedStep);
  }

  get(lane: string, key: SlotKey): MemorySlot | undefined {
    return this.#of(lane).get(keyOf(key));
  }

  has(lane: string, key: SlotKey): boolean {
    return this.#of(lane).has(keyOf(key));
  }

  put(slot: MemorySlot): void {
    let slots = this.#byLane.get(slot.lane);
    if (slots === undefined) this.#byLane.set(slot.lane, (slots = new Map()));
    slots.set(keyOf(slot), slot);
  }

  release(lane: string, key: SlotKey): void {
    this.#of(lane).delete(keyOf(key));
    if (this.#of(lane).size === 0) this.#byLane.delete(lane);
  }

  releaseWhere(isReleased: (slot: SlotRecord) => boolean): void {
    for (const [lane, slots] of this.#byLane)
      for (const slot of slots.values()) if (isReleased(slot)) this.release(lane, slot);
  }

  /** Ordered by run, then by lane, then by node. */
  all(): MemorySlot[] {
    const slots = [...this.#byLane.values()].flatMap((ofLane) => [...ofLane.values()]);
    return slots.sort((a, b) => compare(a.runId, b.runId) || compare(a.lane, b.lane) || compare(a.node, b.node));
  }

  #of(lane: string): Map<string, MemorySlot> {
    return this.#byLane.get(lane) ?? new Map();
  }
}

const isParkedStep = ({ owner, node }: SlotRecord): boolean => owner === null && node !== "";

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
