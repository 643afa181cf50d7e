/** A decision about a run while it is being made: what each family of commands reads and adds to. */
import { type NewEvent, newEvent } from "./event.js";
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
  readonly openWaits: OpenWait[] = [];
  /** In the order in which they become due; those with a `wait` are its time limit. */
  readonly openTimers: { readonly key: string; readonly dueAt: number; readonly wait: OpenWait | null }[] = [];
  /** Received and not consumed, the oldest first. */
  readonly pendingSignals: Signal[];
  /** Of signals that this decision has received. */
  readonly receivedSignalKeys: Set<string>;
  /** By map: the children whose end this decision has heard of. */
  readonly endedMapChildren = new Map<
    string,
    { readonly completed: number[]; readonly failed: number[]; readonly ended: Set<number> }
  >();
  readonly endedNodes = new Set<string>();
  paused: { readonly resumeOn: string | null; readonly recheckAt: number | null; readonly node: string | null } | null;
  isCancelRequested: boolean;
  isCancelForced: boolean;
  isEnded: boolean;
  reattemptAt: number | null;

  constructor(state: RunState, nextSeq: number, withdrawnKeys: ReadonlySet<string> | null) {
    this.state = state;
    this.nextSeq = nextSeq;
    this.pendingSignals = [...state.pendingSignals];
    this.receivedSignalKeys = new Set();
    this.paused = state.paused;
    this.isCancelRequested = state.cancelRequest !== null;
    this.isCancelForced = state.cancelRequest?.force === true;
    this.isEnded = state.ending !== null;
    this.reattemptAt = state.reattemptAt;
    for (const [key, op] of state.ops) if (withdrawnKeys?.has(key) !== true) this.#collectOpen(key, op);
    this.openTimers.sort((a, b) => a.dueAt - b.dueAt);
  }

  #collectOpen(key: string, op: Op): void {
    if (op.kind === "timer" && op.phase === "open") this.openTimers.push({ key, dueAt: op.dueAt, wait: null });
    if (op.kind === "wait" && op.phase === "open") {
      const wait = { key, op };
      this.openWaits.push(wait);
      if (op.dueAt !== null) this.openTimers.push({ key, dueAt: op.dueAt, wait });
    }
  }

  /** @param details `only`: the step that is released; without it, all that the run was paused at */
  resume(by: "operator" | "recheck", details: Omit<EventData["run.resumed"], "by" | "signal"> = {}): void {
    this.paused = null;
    this.events.push(newEvent("run.resumed", {}, { by, ...details }));
  }
}
