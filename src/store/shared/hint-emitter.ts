/** Wake-ups: what a commit may have changed for others, and the listeners of this process. */
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
 * The hints of a committed batch. A mailed run may be owned or was just made ready; both kinds of listeners look. A run
 * that nobody owned, written to by a client, may have become due just then, and a claim may have passed it over because
 * its row was locked: workers are told to look again.
 */
export function hintsOfCommit(batch: Batch, result: CommitResult): Hint[] {
  if (result.kind !== "committed") return [];
  const readyRoutes = new Set<string>();
  const receiverIds = new Set<string>();
  const finishedIds: string[] = [];
  let hasReadyOfUnknownRoute = false;
  for (const run of batch.starts) if (hasDueTime(run)) readyRoutes.add(run.route ?? run.workflow);
  for (const transition of batch.transitions) {
    for (const run of transition.newChildren) if (hasDueTime(run)) readyRoutes.add(run.route ?? run.workflow);
    for (const message of transition.messages) receiverIds.add(message.to);
    if (transition.releasedChildIds.length > 0) hasReadyOfUnknownRoute = true;
    const { runId, next } = transition;
    if (next.kind === "finish") finishedIds.push(runId);
    if (next.kind !== "park" || result.notParked.includes(runId)) continue;
    // Whoever is asked for it from now on may not be the one that parked it, and has to learn when to look.
    if (next.route !== undefined && (next.wakeAt !== null || next.wakeInMs !== null)) readyRoutes.add(next.route);
    // Otherwise a run that parks is due again by time or by message; only an immediate wake-up is worth telling.
    else if (next.wakeInMs === 0 || next.keepsDueTime || (batch.fence === null && next.wakeAt !== null))
      hasReadyOfUnknownRoute = true;
  }
  const hints: Hint[] = [];
  // An empty list of workflows means: of some workflow.
  if (hasReadyOfUnknownRoute) hints.push({ kind: "ready", workflows: [] });
  else if (readyRoutes.size > 0) hints.push({ kind: "ready", workflows: [...readyRoutes] });
  if (receiverIds.size > 0) hints.push({ kind: "messages", runIds: [...receiverIds] });
  if (finishedIds.length > 0) hints.push({ kind: "done", runIds: finishedIds });
  return hints;
}

/** A run that is due later counts too: whoever hears of it learns when to look again. */
const hasDueTime = (run: NewRun) => run.due.kind !== "held" && run.due.kind !== "owned";

export function hintsOfStarts(starts: readonly NewRun[]): Hint[] {
  const workflows = new Set<string>();
  for (const run of starts) if (hasDueTime(run)) workflows.add(run.route ?? run.workflow);
  return workflows.size > 0 ? [{ kind: "ready", workflows: [...workflows] }] : [];
}

export function hintsOfMessages(messages: readonly Message[]): Hint[] {
  return messages.length > 0 ? [{ kind: "messages", runIds: [...new Set(messages.map((message) => message.to))] }] : [];
}
