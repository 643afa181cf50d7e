/** The queues of the memory store: for each route, a heap of ready tasks and a heap of parked ones with a due time. */
import type { Route } from "../contract/store.js";
import { Heap } from "./heap.js";
import type { MemoryTask } from "./task.js";

interface TaskQueue {
  readonly ready: Heap<QueueEntry>;
  readonly parked: Heap<QueueEntry>;
}

/** Copies the values by which a heap is ordered: a later change of the task must not break the order of the heap. */
interface QueueEntry {
  readonly task: MemoryTask;
  readonly revision: number;
  readonly priority: number;
  readonly dueAt: number;
}

export class TaskQueues {
  readonly #queues = new Map<string, TaskQueue>();

  enqueue(task: MemoryTask, dueAt: number | null, now: number): void {
    task.revision += 1;
    task.dueAt = dueAt;
    task.state = dueAt !== null && dueAt <= now ? "ready" : "parked";
    if (dueAt === null) return;
    const { revision, priority } = task;
    const queue = this.#queueOf({ workflow: task.route, version: task.run.version });
    queue[task.state === "ready" ? "ready" : "parked"].push({ task, revision, priority, dueAt });
  }

  /** Removes up to `limit` due tasks of a route, and returns them with the due time of the first parked task. */
  dequeueDue(
    route: Route,
    now: number,
    limit: number,
  ): { readonly due: readonly MemoryTask[]; readonly nextDueAt: number | null } {
    const queue = this.#queues.get(routeKeyOf(route));
    if (queue === undefined) return { due: [], nextDueAt: null };
    const firstParked = promoteDue(queue, now);
    const due: MemoryTask[] = [];
    for (
      let entry = peekValid(queue.ready);
      entry !== undefined && due.length < limit;
      entry = peekValid(queue.ready)
    ) {
      queue.ready.pop();
      due.push(entry.task);
    }
    return { due, nextDueAt: firstParked?.dueAt ?? null };
  }

  #queueOf(route: Route): TaskQueue {
    const key = routeKeyOf(route);
    let queue = this.#queues.get(key);
    if (queue === undefined) {
      queue = { ready: new Heap(isHigherPriorityOrEarlier), parked: new Heap(isEarlier) };
      this.#queues.set(key, queue);
    }
    return queue;
  }
}

const isHigherPriorityOrEarlier = (a: QueueEntry, b: QueueEntry) =>
  a.priority !== b.priority ? a.priority > b.priority : isEarlier(a, b);
/** Runs that one call starts are due at the same instant, and keep their order. */
const isEarlier = (a: QueueEntry, b: QueueEntry) =>
  a.dueAt !== b.dueAt ? a.dueAt < b.dueAt : a.task.order < b.task.order;
const routeKeyOf = ({ workflow, version }: Route) => `${workflow}\u0000${version}`;

/** Moves entries that have become due to the ready heap; returns the first parked entry that is not due. */
function promoteDue(queue: TaskQueue, now: number): QueueEntry | undefined {
  for (;;) {
    const entry = peekValid(queue.parked);
    if (entry === undefined || entry.dueAt > now) return entry;
    queue.parked.pop();
    entry.task.state = "ready";
    queue.ready.push(entry);
  }
}

/** Returns the first entry, after discarding entries whose task has changed since it was enqueued. */
function peekValid(heap: Heap<QueueEntry>): QueueEntry | undefined {
  for (;;) {
    const entry = heap.peek();
    if (entry === undefined || entry.revision === entry.task.revision) return entry;
    heap.pop();
  }
}
