/** What the run and its steps have reported about their progress. */
import type { Answer } from "../../../api/api.js";
import { runPath } from "../../../api/api.js";
import { useQuery } from "../../../api/queries.js";
import { escapeHidden, formatCount } from "../../../ui/format.js";
import { formatDuration } from "../../../ui/time.js";
import css from "./run-header.module.css";

type Reported = Answer<"getRunProgress">["progress"][number];

/** A run with more resumable steps shows the latest reports. */
const maxShown = 5;

export function Progress({ runId }: { readonly runId: string }) {
  const { data } = useQuery<Answer<"getRunProgress">>(runPath(runId, "progress"));
  const reports = [...(data?.progress ?? [])].sort((a, b) => Date.parse(b.at) - Date.parse(a.at)).slice(0, maxShown);
  if (reports.length === 0) return null;
  return (
    <ul class={css.progress} aria-label="Progress">
      {reports.map((report) => (
        <li key={report.node}>
          <span>{report.node === "" ? "The run" : escapeHidden(report.node)}</span>
          <progress
            aria-label={`Progress of ${report.node === "" ? "the run" : report.node}`}
            {...(report.total === null ? {} : { max: Math.max(1, report.total), value: report.done })}
          />
          <span class={css.progressText}>{textOf(report)}</span>
        </li>
      ))}
    </ul>
  );
}

function textOf({ done, total, rate, etaMs, message }: Reported): string {
  return [
    total === null ? formatCount(done) : `${formatCount(done)} of ${formatCount(total)}`,
    rate === null ? null : `${rate < 10 ? rate.toFixed(1) : formatCount(Math.round(rate))} per second`,
    etaMs === null || etaMs === 0 ? null : `${formatDuration(etaMs)} to go`,
    message === null ? null : escapeHidden(message),
  ]
    .filter((part) => part !== null)
    .join(" · ");
}
