/** Addresses that the screens about workflows lead to. */
import { href } from "../../router/router.js";
import { quote } from "../../search/tokens.js";

/** The list of runs with a search: `runsHref({ workflow: "order", status: "paused" })`. */
export function runsHref(qualifiers: Readonly<Record<string, string>>): string {
  const search = Object.entries(qualifiers).map(([name, value]) => `${name}:${quote(value)}`);
  return href(`/runs?${new URLSearchParams({ q: search.join(" ") })}`);
}

export const workflowPath = (workflow: string): string => `/workflows/${encodeURIComponent(workflow)}`;

export const startPath = (workflow: string): string => `${workflowPath(workflow)}?start=1`;
