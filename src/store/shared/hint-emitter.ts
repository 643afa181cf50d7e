/** Wake-ups: what a commit may have changed for others, and the listeners of this process. */
import type { Batch, CommitResult, Hint, Mail, NewRun } from "../contract/store.js";

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
export function hintsOf(batch: Batch, result: CommitResult): Hint[] {
  if (result.kind !== "committed") return [];
  const ready = new Set<string>();
  const mail = new Set<string>();
  const done: string[] = [];
  let anyReady = false;
  for (const run of batch.starts) if (wakesSomebody(run)) ready.add(run.route ?? run.workflow);
  for (const transition of batch.transitions) {
    for (const run of transition.starts) if (wakesSomebody(run)) ready.add(run.route ?? run.workflow);
    for (const message of transition.mail) mail.add(message.to);
    if (transition.release.length > 0) anyReady = true;
    const { runId, next } = transition;
    if (next.kind === "finish") done.push(runId);
    if (next.kind !== "park" || result.kept.includes(runId)) continue;
    // Whoever is asked for it from now on may not be the one that parked it, and has to learn when to look.
    if (next.route !== undefined && (next.wakeAt !== null || next.wakeIn !== null)) ready.add(next.route);
    // Otherwise a run that parks is due again by time or by message; only an immediate wake-up is worth telling.
    else if (next.wakeIn === 0 || next.keepsDue || (batch.fence === null && next.wakeAt !== null)) anyReady = true;
  }
  const hints: Hint[] = [];
  // An empty list of workflows means: of some workflow.
  if (anyReady) hints.push({ kind: "ready", workflows: [] });
  else if (ready.size > 0) hints.push({ kind: "ready", workflows: [...ready] });
  if (mail.size > 0) hints.push({ kind: "mail", runIds: [...mail] });
  if (done.length > 0) hints.push({ kind: "done", runIds: done });
  return hints;
}

/** A run that is due later counts too: whoever hears of it learns when to look again. */
const wakesSomebody = (run: NewRun) => run.due.kind !== "held" && run.due.kind !== "owned";

export function hintsOfStarts(starts: readonly NewRun[]): Hint[] {
  const workflows = new Set<string>();
  for (const run of starts) if (wakesSomebody(run)) workflows.add(run.route ?? run.workflow);
  return workflows.size > 0 ? [{ kind: "ready", workflows: [...workflows] }] : [];
}

export function hintsOfMail(mail: readonly Mail[]): Hint[] {
  return mail.length > 0 ? [{ kind: "mail", runIds: [...new Set(mail.map((message) => message.to))] }] : [];
}
