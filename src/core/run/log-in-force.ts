/**
 * What a log says now: code that starts over, and operators who send a run elsewhere, make it forget what came before, and
 * the events of that are not in force any more.
 */
import { dataOf, type StoredEvent } from "./event.js";
import { evolve } from "./fold.js";
import { initialState, type RunState } from "./state.js";

export interface LogInForce {
  readonly state: RunState;
  /** Without those of calls that were forgotten. */
  readonly events: readonly StoredEvent[];
  /** The numbers of signals that were used up by what was forgotten, or ended a pause. */
  readonly spentSignals: ReadonlySet<number>;
  /** Timers and waits that lost a race. */
  readonly withdrawn: ReadonlySet<string>;
  /** By map that has its results: the number of the event that brought the last one. */
  readonly settledBy: ReadonlyMap<string, number>;
}

export function logInForce(log: readonly StoredEvent[]): LogInForce {
  const state = initialState();
  const spentSignals = new Set<number>();
  const settledBy = new Map<string, number>();
  let events: StoredEvent[] = [];
  for (const one of log) {
    evolve(state, one);
    if (one.type === "run.resumed") {
      const { signal } = dataOf(one, "run.resumed");
      if (signal !== undefined) spentSignals.add(signal);
    }
    if (forgets(one)) events = stillInForce(state, events, spentSignals);
    events.push(one);
    if (one.type === "map.started") settledBy.delete(one.node as string);
    const op = one.node === null || !one.type.startsWith("map.") ? undefined : state.ops.get(one.node);
    if (op?.kind === "map" && op.phase === "settled" && !settledBy.has(one.node as string))
      settledBy.set(one.node as string, one.seq);
  }
  return { state, events, spentSignals, withdrawn: withdrawnIn(events), settledBy };
}

function forgets(one: StoredEvent): boolean {
  if (one.type === "run.moved" || one.type === "dag.imported") return true;
  if (one.type === "run.reattempted") return dataOf(one, "run.reattempted").rewind;
  return one.type === "step.reattempted" && dataOf(one, "step.reattempted").rewind === true;
}

const withdrawnIn = (events: readonly StoredEvent[]): Set<string> =>
  new Set(events.filter(({ type }) => type === "wait.withdrawn").map(({ node }) => node as string));

/** What a forgotten wait was given is used up, unless it lost a race and gave that back. */
function stillInForce(state: RunState, events: readonly StoredEvent[], spentSignals: Set<number>): StoredEvent[] {
  const withdrawn = withdrawnIn(events);
  return events.filter((past) => {
    if (past.node === null || state.ops.has(past.node)) return true;
    if (past.type === "wait.completed" && !withdrawn.has(past.node))
      for (const signal of dataOf(past, "wait.completed").signals) spentSignals.add(signal);
    return false;
  });
}
