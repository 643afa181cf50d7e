/** Filters that are one click away: all statuses, with their counts. */
import type { Answer } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { href, location } from "../../router/router.js";
import { type RunSearch, searchedStatuses, withTerm } from "../../search/run-search.js";
import { formatCapped } from "../../ui/format.js";
import { StatusIcon } from "../../ui/status.js";
import css from "./status-filters.module.css";

type Counts = Answer<"countRuns">;

/** The numbers that fit the search; null if it asks for more than a workflow, because then none are known. */
function countsFor(counts: Counts | undefined, { filter }: RunSearch): Counts["total"] | null {
  const { workflow, status: _status, ...others } = filter;
  if (counts === undefined || Object.keys(others).length > 0) return null;
  return workflow === undefined ? counts.total : (counts.workflows[workflow] ?? noRuns);
}

const noRuns: Counts["total"] = { pending: 0, running: 0, waiting: 0, paused: 0, failed: 0, canceled: 0 };

export function StatusFilters({ text, search }: { readonly text: string; readonly search: RunSearch }) {
  const { data } = useQuery<Counts>("v1/counts");
  const numbers = countsFor(data, search);
  const current = search.filter.status ?? null;
  return (
    <nav class={css.filters} aria-label="Runs by status">
      <Filter to={withTerm(text, "status", null)} isCurrent={current === null}>
        All
      </Filter>
      {searchedStatuses.map((status) => {
        const count = status === "completed" ? undefined : numbers?.[status];
        return (
          <Filter key={status} to={withTerm(text, "status", status)} isCurrent={current === status}>
            <StatusIcon state={status} />
            <span class={css.word}>{status}</span>
            {count === undefined ? null : (
              <span class={css.count} data-count={status}>
                {formatCapped(count, data?.capped.includes(status) === true)}
              </span>
            )}
          </Filter>
        );
      })}
    </nav>
  );
}

function Filter({
  to,
  isCurrent,
  children,
}: {
  readonly to: string;
  readonly isCurrent: boolean;
  readonly children: preact.ComponentChildren;
}) {
  // The columns and the span of the histogram stay.
  const search = new URLSearchParams(location.value.search);
  search.delete("q");
  if (to !== "") search.set("q", to);
  const text = search.toString();
  return (
    <a
      class={css.filter}
      href={href(`/runs${text === "" ? "" : `?${text}`}`)}
      {...(isCurrent ? { "aria-current": "true" as const } : {})}
    >
      {children}
    </a>
  );
}
