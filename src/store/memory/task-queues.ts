/** What is due, and what will be: for each route a heap of either. */
import type { Route } from "../contract/store.js";
import { Heap } from "./heap.js";
import type { Task } from "./task.js";

interface Shelf {
  readonly ready: Heap<Slot>;
  readonly parked: Heap<Slot>;
}

/** What the heaps are ordered by is copied: a task that changes must not move the stale entries that it left behind. */
interface Slot {
  readonly task: Task;
  readonly stamp: number;
  readonly priority: number;
  readonly dueAt: number;
}

export class Shelves {
  readonly #shelves = new Map<string, Shelf>();

  put(task: Task, dueAt: number | null, now: number): void {
    task.stamp += 1;
    task.dueAt = dueAt;
    task.state = dueAt !== null && dueAt <= now ? "ready" : "parked";
    if (dueAt === null) return;
    const { stamp, priority } = task;
    const shelf = this.#shelf({ workflow: task.route, version: task.run.version });
    shelf[task.state === "ready" ? "ready" : "parked"].push({ task, stamp, priority, dueAt });
  }

  /** Takes the first of a route that are due, and tells when the next will be. */
  take(route: Route, now: number, limit: number): { readonly due: readonly Task[]; readonly nextDueAt: number | null } {
    const shelf = this.#shelves.get(keyOf(route));
    if (shelf === undefined) return { due: [], nextDueAt: null };
    const next = takeDue(shelf, now);
    const due: Task[] = [];
    for (let slot = dropStale(shelf.ready); slot !== undefined && due.length < limit; slot = dropStale(shelf.ready)) {
      shelf.ready.pop();
      due.push(slot.task);
    }
    return { due, nextDueAt: next?.dueAt ?? null };
  }

  #shelf(route: Route): Shelf {
    const key = keyOf(route);
    let shelf = this.#shelves.get(key);
    if (shelf === undefined) {
      shelf = { ready: new Heap(higherPriorityThenEarlier), parked: new Heap(earlier) };
      this.#shelves.set(key, shelf);
    }
    return shelf;
  }
}

const higherPriorityThenEarlier = (a: Slot, b: Slot) =>
  a.priority !== b.priority ? a.priority > b.priority : a.dueAt < b.dueAt;
const earlier = (a: Slot, b: Slot) => a.dueAt < b.dueAt;
const keyOf = ({ workflow, version }: Route) => `${workflow}\u0000${version}`;

/** Moves what has become due to the ready heap; returns the first that has not. */
function takeDue(shelf: Shelf, now: number): Slot | undefined {
  for (;;) {
    const slot = dropStale(shelf.parked);
    if (slot === undefined || slot.dueAt > now) return slot;
    shelf.parked.pop();
    slot.task.state = "ready";
    shelf.ready.push(slot);
  }
}

function dropStale(heap: Heap<Slot>): Slot | undefined {
  for (;;) {
    const slot = heap.peek();
    if (slot === undefined || slot.stamp === slot.task.stamp) return slot;
    heap.pop();
  }
}
