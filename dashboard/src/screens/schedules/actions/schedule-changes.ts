/** What has happened to a schedule between two looks at it, for a person who is about to act on the earlier one. */
import { type Answer, apiUrl, getJson, schedulePath } from "../../../api/api.js";
import { escapeHidden } from "../../../ui/format.js";
import type { Schedule } from "../schedule.js";

const byText = (by: string | null): string => (by === null ? "" : ` by ${escapeHidden(by)}`);
const reasonText = (reason: string | null): string => (reason === null ? "." : `: ${escapeHidden(reason)}`);

/** Sentences about what matters for any action. That it has fired meanwhile does not. */
export function changesBetween(seen: Schedule, now: Schedule): readonly string[] {
  if (seen.createdAt !== now.createdAt) return ["It was deleted, and another one of this name was created."];
  return [statusChange(seen, now), seen.rule === now.rule ? null : `Its rule is now: ${escapeHidden(now.rule)}`].filter(
    (change) => change !== null,
  );
}

function statusChange(seen: Schedule, now: Schedule): string | null {
  if (now.status === "paused") {
    const isSame =
      seen.status === "paused" &&
      seen.pausedBy === now.pausedBy &&
      seen.pauseReason === now.pauseReason &&
      seen.pausedUntil === now.pausedUntil;
    const word = seen.status === "paused" ? "Its pause was changed" : "It was paused";
    return isSame ? null : `${word}${byText(now.pausedBy)}${reasonText(now.pauseReason)}`;
  }
  if (seen.status === now.status) return null;
  if (seen.status === "paused" && now.status === "active") return "It was resumed.";
  return `It was ${seen.status}, and is ${now.status} now.`;
}

export const readSchedule = (name: string): Promise<Schedule> =>
  getJson<Answer<"getSchedule">>(apiUrl(schedulePath(name), { maxPayload: 16_000 }));
