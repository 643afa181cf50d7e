/** What is written when a run ends: its result, a message to its parent, and messages that cancel its children. */
import { encode } from "../encoding/encode.js";
import type { Failure } from "../encoding/error-record.js";
import { readGathering } from "../gathering/run-gathering.js";
import type { RunSchedule } from "../schedule/schedule-data.js";
import { fingerprintOf, withFingerprint } from "./fingerprint.js";
import { createParentMessage, type Message } from "./message.js";
import type { NextTaskState, RunSpec, TerminalStatus } from "./transition.js";

export interface RunOutcome {
  readonly status: TerminalStatus;
  /** The encoded output. */
  readonly output: string | null;
  readonly error: Failure | null;
  /** The step that made the run fail; absent if no step did. */
  readonly failedStep?: string | null;
}

/** What the run of a node's job reports to the run of the graph in addition to its result: retry delay and duration. */
export type AttemptReport = Parameters<typeof createParentMessage>[4];

export interface FinishWrites {
  readonly next: Extract<NextTaskState, { kind: "finish" }>;
  /** The messages to the parent and to the children that are canceled. */
  readonly messages: readonly Message[];
}

/**
 * @param startedAt when the run's code was first executed; null when it was never executed
 * @param cancelMessages messages to the children that are canceled with the run, see `cancelChildren`
 */
export function finishRun(
  run: RunSpec,
  { status, output, error, failedStep = null }: RunOutcome,
  startedAt: number | "now" | null,
  cancelMessages: readonly Message[],
  attempt?: AttemptReport,
): FinishWrites {
  const parentMessage = createParentMessage(run, status, output, error, attempt);
  return {
    next: {
      kind: "finish",
      status,
      output,
      error: encodeError(status, error, failedStep),
      startedAt,
      ...(run.schedule === undefined || readGathering(run.schedule) !== null
        ? {}
        : { scheduleName: scheduleNameOf(run.schedule) }),
    },
    messages: parentMessage === null ? cancelMessages : [...cancelMessages, parentMessage],
  };
}

const scheduleNameOf = (schedule: string): string => (JSON.parse(schedule) as RunSchedule).name;

/** Encodes the error without a size limit, because a run could not end if its error were refused. */
function encodeError(status: TerminalStatus, error: Failure | null, failedStep: string | null): string | null {
  if (error === null) return null;
  const limits = { label: "error", limitBytes: Number.POSITIVE_INFINITY };
  if (status !== "failed") return encode(error, limits);
  const failure = failedStep === null ? error : { ...error, step: failedStep };
  return encode(withFingerprint(fingerprintOf(error, failedStep), failure), limits);
}
