/** Finds the schedules whose runs end with a commit. */
import type { Transition } from "../contract/store.js";
import { compareText } from "./compare-text.js";

const noSchedules: readonly string[] = [];

/** The names in the order in which their rows are locked. Usually there are none, and then no list is made. */
export function endedSchedulesOf(transitions: readonly Transition[]): readonly string[] {
  let names: Set<string> | null = null;
  for (const { next } of transitions)
    if (next.kind === "finish" && next.scheduleName !== undefined) (names ??= new Set()).add(next.scheduleName);
  return names === null ? noSchedules : [...names].sort(compareText);
}
