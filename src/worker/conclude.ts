/** The last commit of a run: its row gets its end, its children are sent home, its parent is told. */
import { encode } from "../core/codec.js";
import { dismissChildren } from "../core/dismissal.js";
import type { NewEvent } from "../core/event.js";
import type { Failure } from "../core/failure.js";
import { mailToParent } from "../core/mail.js";
import type { TerminalStatus } from "../store/store.js";
import { attempted } from "./attempted.js";
import type { Turn } from "./turn.js";

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

function writeEnd(turn: Turn, { status, events, output, error }: Conclusion): void {
  const { run, state, outbox } = turn;
  for (const mail of dismissChildren(run.id, state)) outbox.mail.push(mail);
  const mail = mailToParent(run, status, output, error, attempted(turn, status === "failed" ? error : null));
  if (mail !== null) outbox.mail.push(mail);
  const failure = error === null ? null : encode(error, { what: "error", limit: Number.POSITIVE_INFINITY });
  const startedAt = state.startedAt ?? turn.takenAt;
  turn.journal.post(events, { kind: "finish", status, output, error: failure, startedAt }, nothing);
}

const nothing = (): void => {};
