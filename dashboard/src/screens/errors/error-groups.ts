/** The filters and the order of the list of errors, which are in the address. */
import type { Answer } from "../../api/api.js";
import { quote } from "../../search/tokens.js";

export type ErrorGroup = Answer<"listErrors">["errors"][number];

export const sortings = [
  ["newest", "Newest first"],
  ["count", "Most runs first"],
  ["day", "Most runs in 24 hours first"],
  ["oldest", "Longest known first"],
] as const;

export interface ErrorFilter {
  readonly workflow: string;
  readonly status: string;
  readonly text: string;
  readonly sort: string;
}

export const filterIn = (search: URLSearchParams): ErrorFilter => ({
  workflow: search.get("workflow") ?? "",
  status: search.get("status") ?? "",
  text: search.get("text") ?? "",
  sort: sortings.some(([id]) => id === search.get("sort")) ? (search.get("sort") as string) : "newest",
});

export function selectGroups(groups: readonly ErrorGroup[], filter: ErrorFilter): readonly ErrorGroup[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (group: ErrorGroup) => {
    if (filter.workflow !== "" && group.workflow !== filter.workflow) return false;
    if (filter.status !== "" && group.status !== filter.status) return false;
    const text = [group.name, group.message, group.workflow, group.step, group.fingerprint].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return groups.filter(fits).toSorted(orders[filter.sort] ?? newestFirst);
}

const newestFirst = (a: ErrorGroup, b: ErrorGroup) => Date.parse(b.lastRunAt) - Date.parse(a.lastRunAt);

const orders: Readonly<Record<string, (a: ErrorGroup, b: ErrorGroup) => number>> = {
  newest: newestFirst,
  count: (a, b) => b.count - a.count || newestFirst(a, b),
  day: (a, b) => b.lastDayCount - a.lastDayCount || newestFirst(a, b),
  oldest: (a, b) => Date.parse(a.firstRunAt) - Date.parse(b.firstRunAt),
};

/** Identifies a group: runs of two workflows may have the same fingerprint. */
export const keyOf = ({ workflow, status, fingerprint }: ErrorGroup): string =>
  JSON.stringify([workflow, status, fingerprint]);

/** The search of the list of runs that finds the runs of a group. */
export const searchOf = ({ workflow, status, fingerprint }: ErrorGroup): string =>
  `fingerprint:${fingerprint} workflow:${quote(workflow)} status:${status}`;

const dayMs = 86_400_000;

/** How the errors develop, in a word: whether they are new, and which share of them the last day has. */
export function trendOf({ count, lastDayCount, firstRunAt }: ErrorGroup, now: number): string {
  if (lastDayCount === 0) return "quiet";
  if (now - Date.parse(firstRunAt) < dayMs) return "new";
  return `${Math.round((lastDayCount / count) * 100) || "under 1"} %`;
}
