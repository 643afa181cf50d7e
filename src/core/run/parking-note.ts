/**
 * The note in the row of a parked run (column `waiting`). It says what the run waits for, for display, and which
 * `wakeVersion` the workflow's code has seen, for the next owner. Only this file writes and reads the note.
 */
import { fingerprintOf, withFingerprint } from "./fingerprint.js";
import type { RunState } from "./state.js";
import type { ParkingNote } from "./stored-schema.js";
import { currentStep, waitingFor } from "./waiting.js";

const emptyNote: ParkingNote = { waitingFor: [] };

/**
 * @param seenVersion the `wakeVersion` that the workflow's code has seen; null when it is unknown: the next owner then
 * calls the code, which is always safe
 */
export function writeParkingNote(state: RunState, seenVersion: number | null): string {
  const pauseFields = state.paused === null ? {} : { paused: state.paused.reason, pausedAt: state.paused.at };
  const step = currentStep(state);
  const note: ParkingNote = {
    ...pauseErrorFields(state),
    ...(seenVersion === null ? {} : { seenVersion }),
    seq: state.seq,
    waitingFor: waitingFor(state),
    ...pauseFields,
    ...(step === null ? {} : { step }),
  };
  return JSON.stringify(note);
}

/** A pause that the code asked for with a `PauseError` is no problem to be grouped with others. */
function pauseErrorFields({ paused }: RunState): Pick<ParkingNote, "fingerprint" | "error"> {
  const error = paused?.error ?? null;
  if (paused === null || error === null || error.code === "PAUSE_ERROR") return {};
  const { name, message } = error;
  const shortError = { name, message: message.slice(0, maxMessageLength), step: paused.node };
  return withFingerprint(fingerprintOf(error, paused.node), { error: shortError });
}

/** The log has the whole message. */
const maxMessageLength = 500;

/** The note of a run that was paused because its log could not be folded. */
export const writePauseNote = (reason: string, pausedAt?: number): string =>
  JSON.stringify({ ...emptyNote, paused: reason, pausedAt });

/** Adds the lanes in which the run keeps a slot until it ends. */
export const withOpenLanes = (waiting: string | null, openLanes: readonly string[]): string | null =>
  waiting === null || openLanes.length === 0 ? waiting : JSON.stringify({ ...readParkingNote(waiting), openLanes });

/** Notes that steps of the run may wait for slots of limits while no worker executes it. */
export const withParkedSteps = (waiting: string, mayHaveParkedSteps: boolean): string =>
  mayHaveParkedSteps ? JSON.stringify({ ...readParkingNote(waiting), parkedSteps: true }) : waiting;

export const hasParkedSteps = (waiting: string | null): boolean => readParkingNote(waiting).parkedSteps === true;

/** Adds what the note before it says about slots of limits. */
export const withSlotsOf = (before: string | null, waiting: string): string | null =>
  withOpenLanes(withParkedSteps(waiting, hasParkedSteps(before)), openLanesIn(before));

export const openLanesIn = (waiting: string | null): readonly string[] => readParkingNote(waiting).openLanes ?? [];

/**
 * Whether the log has events that the writer of the note did not know. If no owner has died since, a commit that the server
 * executed late has replaced the note, because every park and every command writes a note about the whole log.
 */
export function isOlderThanLog(waiting: string | null, lastSeq: number): boolean {
  const { seq } = readParkingNote(waiting);
  return seq !== undefined && seq < lastSeq;
}

/** Makes the next owner call the code. */
export function withoutSeenVersion(waiting: string | null): string | null {
  if (waiting === null) return null;
  const { seenVersion: _, ...note } = readParkingNote(waiting);
  return JSON.stringify(note);
}

/** The `RunState.wakeVersion` that the code has seen; null when it is unknown. */
export const seenVersionIn = (waiting: string | null): number | null => readParkingNote(waiting).seenVersion ?? null;

/**
 * Reads a note. An unreadable note is treated as empty: without a `seenVersion`, the next owner calls the workflow's code.
 */
export function readParkingNote(text: string | null): ParkingNote {
  try {
    return parseParkingNote(text);
  } catch {
    return emptyNote;
  }
}

/** @throws TypeError or SyntaxError when the note cannot be read */
export function parseParkingNote(text: string | null): ParkingNote {
  if (text === null) return emptyNote;
  const note: unknown = JSON.parse(text);
  // When a run ends, the store replaces the note by the number of events in its log.
  if (typeof note === "number") return { ...emptyNote, seq: note };
  if (typeof note !== "object" || note === null) throw new TypeError("it is not an object");
  const parsedNote = { ...emptyNote, ...(note as Partial<ParkingNote>) };
  const isValid =
    (parsedNote.seenVersion === undefined || typeof parsedNote.seenVersion === "number") &&
    Array.isArray(parsedNote.waitingFor) &&
    parsedNote.waitingFor.every(hasKind);
  if (!isValid) throw new TypeError("it does not say what the run waits for");
  return parsedNote;
}

const hasKind = (item: unknown) => typeof item === "object" && item !== null && "kind" in item;
