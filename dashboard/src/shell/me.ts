/** Who uses the dashboard and what they may do, and the clock of the database. */
import { signal } from "@preact/signals";
import { type Answer, apiUrl, getJson } from "../api/api.js";

export type Me = Answer<"getMe">;
export type Permission = Me["permissions"][number];

export const me = signal<Me | null>(null);
/** How far the clock of the database is ahead of this browser's, in milliseconds. */
const clockOffsetMs = signal(0);

export async function loadMe(): Promise<void> {
  const askedAt = Date.now();
  const answer = await getJson<Me>(apiUrl("v1/me"));
  // Whole milliseconds: the API takes no fractions in instants.
  clockOffsetMs.value = Math.round(Date.parse(answer.now) - (askedAt + Date.now()) / 2);
  me.value = answer;
}

export const may = (permission: Permission): boolean => me.value?.permissions.includes(permission) ?? false;

/** The time by the clock of the database: times of runs are compared with it, never with the clock of the browser. */
export const databaseNow = (): number => Date.now() + clockOffsetMs.value;

/** Advances every second, for texts such as "5 s ago". */
export const secondTick = signal(0);
setInterval(() => {
  if (document.visibilityState === "visible") secondTick.value += 1;
}, 1_000);
