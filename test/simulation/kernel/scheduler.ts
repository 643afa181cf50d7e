/**
 * The scheduler of a simulated world. Everything that a process waits for (a timer, an immediate, a store call that begins
 * or is answered, a hint, the end of a body) is an event at an instant of simulated time, and nothing else moves that time.
 *
 * Between two events, one real `setImmediate` lets all microtasks run, which are deterministic by themselves.
 */
import { Trace } from "./trace.js";

export interface Process {
  readonly name: string;
  /** False after a crash: what the process was waiting for is dropped. */
  readonly isAlive: boolean;
  /** Until then the process stands still, as after SIGSTOP. */
  readonly frozenUntil: number;
}

export interface ScheduledEvent {
  at: number;
  readonly seq: number;
  /** null: the event belongs to the network or the database, which survive the process. */
  readonly process: Process | null;
  readonly label: string;
  readonly run: () => void;
  isCanceled: boolean;
}

export class Scheduler {
  readonly trace: Trace;
  #now = 0;
  #nextSeq = 1;
  #eventCount = 0;
  readonly #heap: ScheduledEvent[] = [];

  constructor(trace = new Trace()) {
    this.trace = trace;
  }

  /** Simulated milliseconds since the world began. */
  get now(): number {
    return this.#now;
  }

  /** How many events have been executed. */
  get eventCount(): number {
    return this.#eventCount;
  }

  schedule(process: Process | null, delayMs: number, label: string, run: () => void): ScheduledEvent {
    const at = this.#now + Math.max(0, delayMs);
    const event = { at, seq: this.#nextSeq++, process, label, run, isCanceled: false };
    this.#push(event);
    return event;
  }

  /** Resolves after the delay, unless the process crashes before. */
  sleep(process: Process | null, delayMs: number, label: string): Promise<void> {
    return new Promise((resolve) => void this.schedule(process, delayMs, label, resolve));
  }

  /** Executes events until the condition holds. Returns false if no event is left or simulated time has run out. */
  async runUntil(isDone: () => boolean, untilMs: number): Promise<boolean> {
    await drainMicrotasks();
    while (!isDone()) {
      const event = this.#pop();
      if (event === undefined) return false;
      if (event.isCanceled || event.process?.isAlive === false) continue;
      if (event.process !== null && event.process.frozenUntil > Math.max(event.at, this.#now)) {
        event.at = event.process.frozenUntil;
        this.#push(event);
        continue;
      }
      if (event.at > untilMs) {
        this.#push(event);
        return false;
      }
      this.#now = Math.max(this.#now, event.at);
      this.#eventCount += 1;
      this.trace.add(this.#now, event.process?.name ?? "·", event.label);
      event.run();
      await drainMicrotasks();
    }
    return true;
  }

  #push(event: ScheduledEvent): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, heap[parent] as ScheduledEvent)) break;
      heap[at] = heap[parent] as ScheduledEvent;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): ScheduledEvent | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as ScheduledEvent, heap[child] as ScheduledEvent))
        child += 1;
      if (!isBefore(heap[child] as ScheduledEvent, last)) break;
      heap[at] = heap[child] as ScheduledEvent;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

const isBefore = (a: ScheduledEvent, b: ScheduledEvent) => (a.at !== b.at ? a.at < b.at : a.seq < b.seq);

const drainMicrotasks = () => new Promise<void>((resolve) => void setImmediate(resolve));
