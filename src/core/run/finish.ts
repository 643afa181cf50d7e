/** What the end of a run writes: its row, the news for its parent, and the cancellation of its children. */
import { encode } from "../encoding/encode.js";
import type { Failure } from "../encoding/error-record.js";
import { createParentMessage, type Message } from "./message.js";
import type { NextTaskState, RunSpec, TerminalStatus } from "./transition.js";

export interface RunOutcome {
  readonly status: TerminalStatus;
  /** Encoded. */
  readonly output: string | null;
  readonly error: Failure | null;
}

/** What a run that was an attempt at a node of a graph tells the run of the graph beside its end. */
export type AttemptReport = Parameters<typeof createParentMessage>[4];

export interface FinishWrites {
  readonly next: Extract<NextTaskState, { kind: "finish" }>;
  /** To its parent, and to the children that it leaves behind. */
  readonly messages: readonly Message[];
}

/**
 * @param startedAt when its code began; null: it never did
 * @param cancelMessages messages to the children that are canceled with it, see `dismissChildren`
 */
export function finishRun(
  run: RunSpec,
  { status, output, error }: RunOutcome,
  startedAt: number | "now" | null,
  cancelMessages: readonly Message[],
  attempt?: AttemptReport,
): FinishWrites {
  const parentMessage = createParentMessage(run, status, output, error, attempt);
  return {
    next: { kind: "finish", status, output, error: encodeError(error), startedAt },
    messages: parentMessage === null ? cancelMessages : [...cancelMessages, parentMessage],
  };
}

/** However large it is: a run must be able to end. */
const encodeError = (error: Failure | null): string | null =>
  error === null ? null : encode(error, { label: "error", limitBytes: Number.POSITIVE_INFINITY });
