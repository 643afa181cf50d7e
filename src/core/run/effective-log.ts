/**
 * What a log says now: code that starts over, and operators who send a run elsewhere, make it forget what came before, and
 * the events of that are not in force any more.
 */
import { dataOf, type StoredEvent } from "./event.js";
import { evolve } from "./fold.js";
import { initialState, type RunState } from "./state.js";

export interface EffectiveLog {
  readonly state: RunState;
  /** Without those of calls that were forgotten. */
  readonly events: readonly StoredEvent[];
  /** The numbers of signals that were used up by what was forgotten, or ended a pause. */
  readonly consumedSignals: ReadonlySet<number>;
  /** Timers and waits that lost a race. */
  readonly withdrawnKeys: ReadonlySet<string>;
  /** By map that has its results: the number of the event that brought the last one. */
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

/** What a forgotten wait was given is used up, unless it lost a race and gave that back. */
function dropDiscarded(state: RunState, events: readonly StoredEvent[], consumedSignals: Set<number>): StoredEvent[] {
  const withdrawn = withdrawnKeysIn(events);
  return events.filter((past) => {
    if (past.node === null || state.ops.has(past.node)) return true;
    if (past.type === "wait.completed" && !withdrawn.has(past.node))
      for (const signal of dataOf(past, "wait.completed").signals) consumedSignals.add(signal);
    return false;
  });
}
