/** How many runs there are in each status; each number opens its list. */
import type { Answer } from "../../api/api.js";
import { href } from "../../router/router.js";
import { formatCapped } from "../../ui/format.js";
import { StatusIcon } from "../../ui/status.js";
import css from "./status-tiles.module.css";

const shown = ["running", "waiting", "pending", "paused", "failed", "canceled"] as const;

export function StatusTiles({ counts }: { readonly counts: Answer<"countRuns"> | undefined }) {
  return (
    <nav class={css.tiles} aria-label="Runs by status">
      {shown.map((status) => (
        <a key={status} class={css.tile} href={href(`/runs?q=status:${status}`)} data-status={status}>
          <span class={css.number}>
            {counts === undefined ? "–" : formatCapped(counts.total[status], counts.capped.includes(status))}
          </span>
          <span class={css.word}>
            <StatusIcon state={status} />
            <span aria-hidden="true">{status}</span>
          </span>
        </a>
      ))}
    </nav>
  );
}
