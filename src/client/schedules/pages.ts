/** The pages of `pawl.schedules`: their sizes, and their positions as text. */
import { InvalidInputError } from "../../core/errors/errors.js";
import type { OccurrencePosition } from "../../store/contract/store.js";

export const maxPageSize = 1_000;

export const writeCursor = (name: string): string => Buffer.from(name).toString("base64url");

export const writePosition = ({ scheduledFor, id }: OccurrencePosition): string => writeCursor(`${scheduledFor}:${id}`);

export function checkLimit(call: string, limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxPageSize) return limit;
  throw new InvalidInputError(`${call} takes a limit between 1 and ${maxPageSize}, not ${String(limit)}.`);
}

export function readCursor(cursor: string): string {
  const name = typeof cursor === "string" ? Buffer.from(cursor, "base64url").toString() : "";
  if (name !== "" && writeCursor(name) === cursor) return name;
  throw new InvalidInputError("schedules.list({ cursor }) must be the `next` of another page.");
}

export function readPosition(cursor: string): OccurrencePosition {
  const [scheduledFor = "", id, ...rest] = Buffer.from(String(cursor), "base64url").toString().split(":");
  if (id !== undefined && /^[0-9a-f-]{36}$/.test(id) && /^-?\d{1,15}$/.test(scheduledFor) && rest.length === 0)
    return { scheduledFor: Number(scheduledFor), id };
  throw new InvalidInputError("schedules.occurrences({ cursor }) must be the `next` of another page.");
}
