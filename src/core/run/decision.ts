/** The state of one call of `decide`, which the functions of the `decide-…` files read and add events to. */
import { type NewEvent, newEvent } from "./event.js";
import type { Op, RunState, Signal, WaitOp } from "./state.js";
import type { EventData } from "./stored-schema.js";

export type OpenWait = { readonly key: string; readonly op: WaitOp };

/**
 * The run's state, and the effects of the events that were decided so far. The effects are kept in separate fields, because
 * events without a timestamp cannot be folded into the state.
 */
export class Decision {
  readonly events: NewEvent[] = [];
  readonly state: RunState;
  /** The number that the first of `events` will have. */
  readonly nextSeq: number;
  /** Open waits, the oldest first. */
  readonly openWaits: OpenWait[] = [];
  /** Open timers in the order of their due times. A timer with a `wait` is the timeout of that wait. */
  readonly openTimers: { readonly key: string; readonly dueAt: number; readonly wait: OpenWait | null }[] = [];
  /** The received signals that no wait or pause has consumed yet, the oldest first. */
  readonly pendingSignals: Signal[];
  /** The keys of the signals that were received in this decision. */
  readonly receivedSignalKeys: Set<string>;
  /** By the key of the map: the indexes of the children whose end was received in this decision. */
  readonly endedMapChildren = new Map<
    string,
    { readonly completed: number[]; readonly failed: number[]; readonly ended: Set<number> }
  >();
  /** The steps and nodes whose end was decided in this decision; in the state they are still open. */
  readonly endedSteps = new Set<string>();
  paused: { readonly resumeOn: string | null; readonly recheckAt: number | null; readonly node: string | null } | null;
  isCancelRequested: boolean;
  isCancelForced: boolean;
  isEnded: boolean;
  reattemptAt: number | null;

  /** Whether the body of a step is running; see `decide`. */
  readonly isExecuting: (key: string) => boolean;

  constructor(
    state: RunState,
    nextSeq: number,
    withdrawnKeys: ReadonlySet<string> | null,
    isExecuting: (key: string) => boolean,
  ) {
    this.state = state;
    this.nextSeq = nextSeq;
    this.isExecuting = isExecuting;
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

  /** @param details `onlyStep` is the step that is resumed; without it, all steps that have paused the run are resumed */
  resume(by: "operator" | "recheck", details: Omit<EventData["run.resumed"], "by" | "signal"> = {}): void {
    this.paused = null;
    this.events.push(newEvent("run.resumed", {}, { by, ...details }));
  }
}
