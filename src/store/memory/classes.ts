/** The classes of waiting runs in the memory store, by id. */
import type { RunClass } from "../../core/limits/lane.js";
import { TurnCounter } from "../../core/limits/order.js";

export interface MemoryClass extends RunClass {
  turn: number;
  blockedOn: string | null;
}

export const byTurn = (a: MemoryClass, b: MemoryClass) => a.turn - b.turn;

export class MemoryClasses extends Map<string, MemoryClass> {
  readonly turns = new TurnCounter();

  /** A class that exists stays as it is. */
  create(runClass: RunClass, at: number): void {
    if (!this.has(runClass.id)) this.set(runClass.id, { ...runClass, turn: this.turns.take(at), blockedOn: null });
  }
}
