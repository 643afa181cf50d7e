/**
 * The effective log: a run's events without the events of forgotten calls. Calls are forgotten when the workflow's code
 * starts over, when an operator moves the run to another step, or when an imported graph no longer has their node.
 */
import { dataOf, type StoredEvent } from "./event.js";
import { evolve } from "./fold.js";
import { initialState, type RunState } from "./state.js";

export interface EffectiveLog {
  readonly state: RunState;
  /** The events of the log, except the events of forgotten calls. */
  readonly events: readonly StoredEvent[];
  /** The numbers of signals that were consumed by forgotten calls, or that ended a pause. */
  readonly consumedSignals: ReadonlySet<number>;
  /** The keys of timers and waits that lost a race, so that the code no longer waits for them. */
  readonly withdrawnKeys: ReadonlySet<string>;
  /** By the key of a settled map: the number of the event that recorded the end of its last child. */
  readonly settledAtSeq: ReadonlyMap<string, number>;
}

export function effectiveLogOf(log: readonly StoredEvent[]): EffectiveLog {
  const state = initialState();
  const consumedSignals = new Set<number>();
  const settledAtSeq = new Map<string, number>();
  let events: StoredEvent[] = [];
  for (const event of log) {
    evolve(state, event);
    if (event.type === "run.resumed") {
      const { signal } = dataOf(event, "run.resumed");
      if (signal !== undefined) consumedSignals.add(signal);
    }
    if (discardsEarlierCalls(event)) events = dropDiscarded(state, events, consumedSignals);
    events.push(event);
    if (event.type === "map.started") settledAtSeq.delete(event.node as string);
    const op = event.node === null || !event.type.startsWith("map.") ? undefined : state.ops.get(event.node);
    if (op?.kind === "map" && op.phase === "settled" && !settledAtSeq.has(event.node as string))
      settledAtSeq.set(event.node as string, event.seq);
  }
  return { state, events, consumedSignals, withdrawnKeys: withdrawnKeysIn(events), settledAtSeq };
}

function discardsEarlierCalls(event: StoredEvent): boolean {
  if (event.type === "run.moved" || event.type === "dag.imported") return true;
  if (event.type === "run.reattempted") return dataOf(event, "run.reattempted").rewind;
  return event.type === "step.reattempted" && dataOf(event, "step.reattempted").rewind === true;
}

const withdrawnKeysIn = (events: readonly StoredEvent[]): Set<string> =>
  new Set(events.filter(({ type }) => type === "wait.withdrawn").map(({ node }) => node as string));

/** Drops the events of forgotten calls. The signals of a forgotten wait stay consumed, unless the wait was withdrawn. */
function dropDiscarded(state: RunState, events: readonly StoredEvent[], consumedSignals: Set<number>): StoredEvent[] {
  const withdrawnKeys = withdrawnKeysIn(events);
  return events.filter((event) => {
    if (event.node === null || state.ops.has(event.node)) return true;
    if (event.type === "wait.completed" && !withdrawnKeys.has(event.node))
      for (const signal of dataOf(event, "wait.completed").signals) consumedSignals.add(signal);
    return false;
  });
}
