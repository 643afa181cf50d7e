/** The slots of the memory store, by lane: what a lane has in use is the number of its entries. */
import type { SlotRecord } from "../contract/limits.js";

export class MemorySlots {
  readonly #byLane = new Map<string, Map<string, SlotRecord>>();

  inUse(lane: string): number {
    return this.#byLane.get(lane)?.size ?? 0;
  }

  take(slot: SlotRecord): void {
    let slots = this.#byLane.get(slot.lane);
    if (slots === undefined) this.#byLane.set(slot.lane, (slots = new Map()));
    slots.set(slot.runId, slot);
  }

  releaseWhere(isReleased: (slot: SlotRecord) => boolean): void {
    for (const [lane, slots] of this.#byLane) {
      for (const slot of slots.values()) if (isReleased(slot)) slots.delete(slot.runId);
      if (slots.size === 0) this.#byLane.delete(lane);
    }
  }

  /** Ordered by run, then by lane. */
  all(): SlotRecord[] {
    const slots = [...this.#byLane.values()].flatMap((ofLane) => [...ofLane.values()]);
    return slots.sort((a, b) => compare(a.runId, b.runId) || compare(a.lane, b.lane));
  }
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
