/**
 * The id of one element of a batch: the id of the run that has gathered it, and its position. A program can store it like the
 * id of a run, and later gets the result of this element alone.
 */
import { isUuid } from "./ids.js";

export interface RunOrElement {
  readonly runId: string;
  /** The position in the batch, from 0; null: the run as a whole. */
  readonly position: number | null;
}

export const elementIdOf = (runId: string, position: number): string => `${runId}.${position}`;

const positionPattern = /^(0|[1-9]\d{0,5})$/;

/** @returns null if the text is no id of a run or an element */
export function parseRunId(id: string): RunOrElement | null {
  const [runId = "", position, ...others] = id.split(".");
  if (!isUuid(runId) || others.length > 0) return null;
  if (position === undefined) return { runId, position: null };
  return positionPattern.test(position) ? { runId, position: Number(position) } : null;
}
