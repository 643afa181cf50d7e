/** The latest children of a run with their statuses, a page at a time. */
import { useState } from "preact/hooks";
import type { Answer } from "../../../api/api.js";
import { useQuery } from "../../../api/queries.js";
import { href, runHref } from "../../../router/router.js";
import { Button } from "../../../ui/button.js";
import { Id } from "../../../ui/copy.js";
import { escapeHidden } from "../../../ui/format.js";
import { StatusIcon } from "../../../ui/status.js";
import css from "./run-header.module.css";

const pageSize = 6;

export function Children({ runId }: { readonly runId: string }) {
  /** The cursors of the pages before this one, the first page having none. */
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const { data } = useQuery<Answer<"listRuns">>(
    "v1/runs",
    { parentId: runId, limit: pageSize, maxPayload: 0, cursor: cursors.at(-1) },
    { keepPrevious: true },
  );
  if (data === undefined || (data.runs.length === 0 && cursors.length === 0)) return null;
  const { runs, next } = data;
  return (
    <section class={css.children} aria-label="Children">
      <h2>Children</h2>
      <ul>
        {runs.map(({ id, workflow, status }) => (
          <li key={id} class={css.child}>
            <StatusIcon state={status} />
            {escapeHidden(workflow)} <Id id={id} to={runHref(id)} />
          </li>
        ))}
        <li class={css.pages}>
          {cursors.length === 0 ? null : (
            <Button kind="ghost" icon="left" onClick={() => setCursors(cursors.slice(0, -1))}>
              Newer
            </Button>
          )}
          {next === null ? null : (
            <Button kind="ghost" icon="right" onClick={() => setCursors([...cursors, next])}>
              Older
            </Button>
          )}
          {next === null && cursors.length === 0 ? null : (
            <a href={href(`/runs?q=${encodeURIComponent(`parent:${runId}`)}`)}>All children</a>
          )}
        </li>
      </ul>
    </section>
  );
}
