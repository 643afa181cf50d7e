/** Computes the hints that follow from a commit, and calls the listeners of this process. */
import { startDeadlineOf } from "../../core/run/transition.js";
import type { Batch, CommitResult, Hint, Message, NewRun } from "../contract/store.js";

export class HintEmitter {
  readonly #listeners = new Set<(hint: Hint) => void>();

  watch(listener: (hint: Hint) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(hints: readonly Hint[]): void {
    for (const hint of hints) for (const listener of this.#listeners) listener(hint);
  }
}

/**
 * The hints of a committed batch. A receiver of messages is either owned or was just made ready, so a hint "messages"
 * also makes workers claim, and no hint "ready" is needed for the receiver. A client's commit also sends a hint for an
 * unowned run with a due time: the run may have become due during the commit, and a claim may have skipped its locked
 * row.
 */
export function hintsOfCommit(batch: Batch, result: CommitResult): Hint[] {
  if (result.kind !== "committed") return [];
  const readyRoutes = new Set<string>();
  const receiverIds = new Set<string>();
  const finishedIds: string[] = [];
  let hasScheduledRun = false;
  let hasReadyOfUnknownRoute = false;
  let startDeadline = Number.POSITIVE_INFINITY;
  const addStart = (run: NewRun) => {
    if (hasDueTime(run)) readyRoutes.add(run.route ?? run.workflow);
    if (run.startBy !== undefined)
      startDeadline = Math.min(startDeadline, startDeadlineOf(run, result.at) ?? startDeadline);
  };
  for (const run of batch.starts) addStart(run);
  for (const transition of batch.transitions) {
    for (const run of transition.newChildren) addStart(run);
    for (const message of transition.messages) receiverIds.add(message.to);
    if (transition.releasedChildIds.length > 0) hasReadyOfUnknownRoute = true;
    const { runId, next } = transition;
    if (next.kind === "finish") {
      finishedIds.push(runId);
      if (next.scheduleName !== undefined) hasScheduledRun = true;
    }
    if (next.kind !== "park" || result.notParked.includes(runId)) continue;
    // Workers of the new route may be in another process than the one that parked the run, and must learn the due time.
    if (next.route !== undefined && (next.wakeAt !== null || next.wakeInMs !== null)) readyRoutes.add(next.route);
    // The worker that parked the run knows a later due time itself; only an immediate one needs a hint.
    else if (next.wakeInMs === 0 || next.keepsDueTime || (batch.fence === null && next.wakeAt !== null))
      hasReadyOfUnknownRoute = true;
  }
  const hints: Hint[] = [];
  // An empty list means that the routes are not known.
  if (hasReadyOfUnknownRoute) hints.push({ kind: "ready", workflows: [] });
  else if (readyRoutes.size > 0) hints.push({ kind: "ready", workflows: [...readyRoutes] });
  if (receiverIds.size > 0) hints.push({ kind: "messages", runIds: [...receiverIds] });
  if (finishedIds.length > 0) hints.push({ kind: "done", runIds: finishedIds });
  if (hasScheduledRun) hints.push({ kind: "schedules" });
  if (startDeadline < Number.POSITIVE_INFINITY) hints.push({ kind: "startDeadline", inMs: startDeadline - result.at });
  return hints;
}

/** Also true for a run that is due later: the hint makes workers claim, and the claim's result has the due time. */
const hasDueTime = (run: NewRun) => run.due.kind !== "held" && run.due.kind !== "owned";

export function hintsOfStarts(starts: readonly NewRun[]): Hint[] {
  const workflows = new Set<string>();
  for (const run of starts) if (hasDueTime(run)) workflows.add(run.route ?? run.workflow);
  const hints: Hint[] = workflows.size > 0 ? [{ kind: "ready", workflows: [...workflows] }] : [];
  // The instant of the commit is not known here, so the workers are told to look at once.
  if (starts.some(({ startBy }) => startBy !== undefined)) hints.push({ kind: "startDeadline", inMs: 0 });
  return hints;
}

export function hintsOfMessages(messages: readonly Message[]): Hint[] {
  return messages.length > 0 ? [{ kind: "messages", runIds: [...new Set(messages.map((message) => message.to))] }] : [];
}
