/**
 * What the database has done, in its own order, written down outside of it: the checker compares it with what the tables contain at the end.
 */
import type { SlotRecord, StepSlotRequest, StoredLimit } from "../../../src/store/contract/limits.js";
import type { Batch, CommitResult, Fence } from "../../../src/store/contract/store.js";

export type JournalEntry = {
  readonly seq: number;
  /** By the clock of the database. */
  readonly at: number;
  readonly process: string;
} /** `isLate`: the process was told before that the commit had failed. `isUnanswered`: it will never be told that it succeeded. */ & (
  | {
      readonly kind: "commit";
      readonly batch: Batch;
      readonly result: CommitResult;
      readonly isLate: boolean;
      readonly isUnanswered?: boolean;
    }
  | { readonly kind: "registered"; readonly fence: Fence }
  | {
      readonly kind: "claimed";
      readonly fence: Fence;
      readonly runIds: readonly string[];
      readonly deliveries: readonly number[];
    }
  | { readonly kind: "fenced"; readonly call: string; readonly fence: Fence }
  /** Workers whose runs were freed: their lease had expired, or they had stopped. */
  | { readonly kind: "freed"; readonly workerIds: readonly string[] }
  /** All slots, each time that they have changed. */
  | { readonly kind: "slots"; readonly slots: readonly SlotRecord[] }
  /** All limits, each time that one was registered or overridden. */
  | { readonly kind: "limits"; readonly limits: readonly StoredLimit[] }
  /** Steps that asked for a slot. */
  | { readonly kind: "asked"; readonly steps: readonly StepSlotRequest[] }
  /** Starts that were gathered, by the encoded input of each; also those that had been gathered before. */
  | { readonly kind: "gathered"; readonly inputs: readonly string[] }
  /** Classes of waiting runs were opened, because lanes have free slots. */
  | { readonly kind: "woken"; readonly count: number }
);

type Unnumbered<Entry> = Entry extends unknown ? Omit<Entry, "seq" | "at" | "process"> : never;

export class Journal {
  readonly entries: JournalEntry[] = [];
  #lastSlots = "[]";
  /** By id: the epoch of each live worker. */
  readonly #epochs = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The number of the last entry. */
  get seq(): number {
    return this.entries.length;
  }

  /** The epoch under which the worker is live; null if it is not. */
  epochOf(workerId: string): number | null {
    return this.#epochs.get(workerId) ?? null;
  }

  add(process: string, entry: Unnumbered<JournalEntry>): void {
    if (entry.kind === "registered") this.#epochs.set(entry.fence.workerId, entry.fence.epoch);
    if (entry.kind === "freed") for (const id of entry.workerIds) this.#epochs.delete(id);
    this.entries.push({ ...entry, seq: this.entries.length + 1, at: this.#now(), process } as JournalEntry);
  }

  addSlots(process: string, slots: readonly SlotRecord[]): void {
    if (slots.length === 0 && this.#lastSlots === "[]") return;
    const text = JSON.stringify(slots);
    if (text === this.#lastSlots) return;
    this.#lastSlots = text;
    this.add(process, { kind: "slots", slots });
  }
}
