/**
 * The note that a parked run leaves in its row (`waiting`): what it waits for, for people, and how far its code had come,
 * for the next owner. It is written, typed and read here alone.
 */
import type { RunState } from "./state.js";
import type { ParkingNote } from "./stored-schema.js";
import { currentStep, waitingFor } from "./waiting.js";

const emptyNote: ParkingNote = { waitingFor: [] };

/** @param seenVersion null when it is not known what the code has seen: it is run then, which is always right, if not always needed */
export function writeParkingNote(state: RunState, seenVersion: number | null): string {
  const paused = state.paused === null ? {} : { paused: state.paused.reason, pausedAt: state.paused.at };
  const step = currentStep(state);
  const note: ParkingNote = {
    ...(seenVersion === null ? {} : { seenVersion }),
    seq: state.seq,
    waitingFor: waitingFor(state),
    ...paused,
    ...(step === null ? {} : { step }),
  };
  return JSON.stringify(note);
}

/** Of a run that was paused before its log could be folded. */
export const writePauseNote = (reason: string, pausedAt?: number): string =>
  JSON.stringify({ ...emptyNote, paused: reason, pausedAt });

/** How many answers the code had seen; null when that is not known. */
export const seenVersionIn = (waiting: string | null): number | null => readParkingNote(waiting).seenVersion ?? null;

/** A note that cannot be read counts as none: the code is run then. */
export function readParkingNote(text: string | null): ParkingNote {
  try {
    return parseParkingNote(text);
  } catch {
    return emptyNote;
  }
}

/** @throws TypeError or SyntaxError when it cannot be read */
export function parseParkingNote(text: string | null): ParkingNote {
  if (text === null) return emptyNote;
  const note: unknown = JSON.parse(text);
  // Of a run that has ended: the store has written how many events its log has.
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

const hasKind = (one: unknown) => typeof one === "object" && one !== null && "kind" in one;
