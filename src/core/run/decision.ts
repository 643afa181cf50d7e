/** A decision about a run while it is being made: what each family of commands reads and adds to. */
import { event, type NewEvent } from "./event.js";
import type { Op, RunState, Signal, WaitOp } from "./state.js";
import type { EventData } from "./stored-schema.js";

export type OpenWait = { readonly key: string; readonly op: WaitOp };

/** The state with the events decided so far laid over it: they are not stamped yet, so they cannot be folded in. */
export class Decision {
  readonly events: NewEvent[] = [];
  readonly state: RunState;
  /** The number that the first of `events` will have. */
  readonly nextSeq: number;
  /** What is still open, the oldest first. */
  readonly waits: OpenWait[] = [];
  /** In the order in which they become due; those with a `wait` are its time limit. */
  readonly timers: { readonly key: string; readonly dueAt: number; readonly wait: OpenWait | null }[] = [];
  /** Received and not consumed, the oldest first. */
  readonly signals: Signal[];
  /** Of signals that this decision has received. */
  readonly keys: Set<string>;
  /** By map: the children whose end this decision has heard of. */
  readonly settled = new Map<
    string,
    { readonly completed: number[]; readonly failed: number[]; readonly ended: Set<number> }
  >();
  readonly nodesEnded = new Set<string>();
  paused: { readonly resumeOn: string | null; readonly recheckAt: number | null; readonly node: string | null } | null;
  cancelRequested: boolean;
  cancelForced: boolean;
  ended: boolean;
  reattemptAt: number | null;

  constructor(state: RunState, nextSeq: number, withdrawing: ReadonlySet<string> | null) {
    this.state = state;
    this.nextSeq = nextSeq;
    this.signals = [...state.signals];
    this.keys = new Set();
    this.paused = state.paused;
    this.cancelRequested = state.cancel !== null;
    this.cancelForced = state.cancel?.force === true;
    this.ended = state.ending !== null;
    this.reattemptAt = state.reattemptAt;
    for (const [key, op] of state.ops) if (withdrawing?.has(key) !== true) this.#note(key, op);
    this.timers.sort((a, b) => a.dueAt - b.dueAt);
  }

  #note(key: string, op: Op): void {
    if (op.kind === "timer" && op.phase === "open") this.timers.push({ key, dueAt: op.dueAt, wait: null });
    if (op.kind === "wait" && op.phase === "open") {
      const wait = { key, op };
      this.waits.push(wait);
      if (op.dueAt !== null) this.timers.push({ key, dueAt: op.dueAt, wait });
    }
  }

  /** @param more `only`: the step that is released; without it, all that the run was paused at */
  resume(by: "operator" | "recheck", more: Omit<EventData["run.resumed"], "by" | "signal"> = {}): void {
    this.paused = null;
    this.events.push(event("run.resumed", {}, { by, ...more }));
  }
}
