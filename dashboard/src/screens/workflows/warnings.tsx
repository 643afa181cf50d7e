/** What keeps the runs of a workflow from moving. */
import type { Answer } from "../../api/api.js";
import { href } from "../../router/router.js";
import { escapeHidden } from "../../ui/format.js";
import { Note } from "../../ui/page.js";
import { Time } from "../../ui/time.js";
import css from "./workflow.module.css";

type MetricsAnswer = Answer<"getMetrics">;

export function Warnings({
  workflow,
  metrics,
}: {
  readonly workflow: string;
  readonly metrics: MetricsAnswer | undefined;
}) {
  if (metrics === undefined) return null;
  const hasWorker = metrics.workers.some(({ live }) => live);
  const { name, paused } = metrics.queue;
  if (hasWorker && paused === null) return null;
  return (
    <div class={css.warnings}>
      {hasWorker ? null : (
        <Note tone="paused" action={<a href={href("/workers")}>Show the workers</a>}>
          <strong>No live worker has “{escapeHidden(workflow)}”.</strong> Its runs wait until one starts. Start a worker
          with the file that defines it: <code>npx pawl worker workflows.ts</code>
        </Note>
      )}
      {paused === null ? null : (
        <Note tone="paused" action={<a href={href("/queues")}>Show the queues</a>}>
          <strong>The queue “{escapeHidden(name)}” is paused</strong>
          {paused.by === null ? "" : ` by ${escapeHidden(paused.by)}`}, <Time at={paused.at} />
          {paused.reason === null || paused.reason === "" ? "." : `: ${escapeHidden(paused.reason)}`}
        </Note>
      )}
    </div>
  );
}
