/** The last commit of a run: its row gets its end, its children are sent home, its parent is told. */
import { encode } from "../core/codec.js";
import { dismissChildren } from "../core/dismissal.js";
import type { NewEvent } from "../core/event.js";
import type { Failure } from "../core/failure.js";
import { mailToParent } from "../core/mail.js";
import type { TerminalStatus } from "../store/store.js";
import { attempted } from "./attempted.js";
import type { Turn } from "./turn.js";
import { pauseIfItFails } from "./user-code.js";

export interface Conclusion {
  readonly status: TerminalStatus;
  /** What is written before the end. */
  readonly events: readonly NewEvent[];
  /** Encoded. */
  readonly output: string | null;
  readonly error: Failure | null;
}

export function conclude(turn: Turn, conclusion: Conclusion): Promise<void> | void {
  if (turn.course.leaving) return;
  turn.course.leaving = true;
  if (!turn.journal.unsettled && turn.outbox.starts.length === 0) return writeEnd(turn, conclusion);
  return turn.settleFirst().then(() => writeEnd(turn, conclusion));
}

function writeEnd(turn: Turn, conclusion: Conclusion): void {
  const { status, events, output, error } = conclusion;
  const { run, state, outbox } = turn;
  const before = outbox.mail.length;
  for (const mail of dismissChildren(run.id, state)) outbox.mail.push(mail);
  const mail = mailToParent(run, status, output, error, attempted(turn, status === "failed" ? error : null));
  if (mail !== null) outbox.mail.push(mail);
  const failure = error === null ? null : encode(error, { what: "error", limit: Number.POSITIVE_INFINITY });
  const startedAt = state.startedAt ?? turn.takenAt;
  turn.onUnended((unwritten) => {
    outbox.putBack({
      ...unwritten,
      events: unwritten.events.slice(0, unwritten.events.length - events.length),
      mail: unwritten.mail.slice(0, before),
    });
    pauseIfItFails(turn, () => readAndConclude(turn, conclusion));
  });
  turn.journal.post(events, { kind: "finish", status, output, error: failure, startedAt }, nothing);
}

/**
 * Messages were acknowledged before the run could end. A signal is recorded, so that a retry finds it. A cancel is obeyed
 * by a run that was about to complete, and so is a pause, unless a step has ended the run: that step cannot be repeated.
 */
async function readAndConclude(turn: Turn, conclusion: Conclusion): Promise<void> {
  const { state, course } = turn;
  await turn.attention.lookNow();
  if (turn.over) return;
  course.leaving = false;
  const endsByStep = conclusion.events.length > 0;
  if (state.cancel !== null && conclusion.status === "completed") {
    if (endsByStep) await turn.submit(conclusion.events);
    return turn.stir();
  }
  if (state.paused !== null && !endsByStep) return turn.stir();
  return conclude(turn, conclusion);
}

const nothing = (): void => {};
