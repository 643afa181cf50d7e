/** What the end of a run writes: its row, the news for its parent, and the cancellation of its children. */
import { encode } from "../encoding/encode.js";
import type { Failure } from "../encoding/error-record.js";
import { type Message, mailToParent } from "./message.js";
import type { Birth, Next, TerminalStatus } from "./transition.js";

export interface End {
  readonly status: TerminalStatus;
  /** Encoded. */
  readonly output: string | null;
  readonly error: Failure | null;
}

/** What a run that was an attempt at a node of a graph tells the run of the graph beside its end. */
export type AttemptReport = Parameters<typeof mailToParent>[4];

export interface Finish {
  readonly next: Extract<Next, { kind: "finish" }>;
  /** To its parent, and to the children that it leaves behind. */
  readonly mail: readonly Message[];
}

/**
 * @param startedAt when its code began; null: it never did
 * @param dismissed messages to the children that are canceled with it, see `dismissChildren`
 */
export function finishRun(
  run: Birth,
  { status, output, error }: End,
  startedAt: number | "now" | null,
  dismissed: readonly Message[],
  attempt?: AttemptReport,
): Finish {
  const toParent = mailToParent(run, status, output, error, attempt);
  return {
    next: { kind: "finish", status, output, error: encodeError(error), startedAt },
    mail: toParent === null ? dismissed : [...dismissed, toParent],
  };
}

/** However large it is: a run must be able to end. */
const encodeError = (error: Failure | null): string | null =>
  error === null ? null : encode(error, { what: "error", limit: Number.POSITIVE_INFINITY });
