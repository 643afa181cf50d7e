/** Success, durations, waits and the queue of a workflow, over the runs of the last day. */
import type { Answer } from "../../api/api.js";
import type { QueryState } from "../../api/queries.js";
import { formatCapped, formatCount, formatPercent } from "../../ui/format.js";
import { Failure, Loading, Section } from "../../ui/page.js";
import { formatDuration } from "../../ui/time.js";
import css from "./workflow.module.css";
import { runsHref } from "./workflow-links.js";

type MetricsAnswer = Answer<"getMetrics">;
type Distribution = MetricsAnswer["durations"];

export function Metrics({ metrics: { data, error } }: { readonly metrics: QueryState<MetricsAnswer> }) {
  return (
    <Section title="Last 24 hours" aside={data?.truncated === true ? "The newest 10,000 runs are counted." : undefined}>
      {data === undefined ? (
        error === null ? (
          <Loading lines={2} />
        ) : (
          <Failure error={error} />
        )
      ) : (
        <Numbers metrics={data} />
      )}
    </Section>
  );
}

function Numbers({ metrics }: { readonly metrics: MetricsAnswer }) {
  const { workflow, successRate, durations, waits, queue } = metrics;
  const runs = metrics.runs as Readonly<Record<string, number>>;
  const count = (status: string) => runs[status] ?? 0;
  const link = (status: string) =>
    count(status) === 0 ? "0" : <a href={runsHref({ workflow, status })}>{formatCount(count(status))}</a>;
  return (
    <dl class={css.numbers}>
      <Group title="Success" main={successRate === null ? "–" : formatPercent(successRate)}>
        <Detail name="Completed">{formatCount(count("completed"))}</Detail>
        <Detail name="Failed">{link("failed")}</Detail>
        <Detail name="Canceled">{link("canceled")}</Detail>
      </Group>
      <Group title="Open" main={formatCount(count("active"))}>
        <Detail name="Paused">{link("paused")}</Detail>
        <Detail name="Waiting">{link("waiting")}</Detail>
        <Detail name="Pending">{link("pending")}</Detail>
      </Group>
      <Percentiles title="Duration, median" values={durations} />
      <Percentiles title="Wait until begun, median" values={waits} />
      <Group title="Due in the queue" main={formatCapped(queue.depth, queue.depthCapped)}>
        <Detail name="Oldest">{queue.oldestAgeMs === null ? "–" : formatDuration(queue.oldestAgeMs)}</Detail>
        <Detail name="Executing">{formatCount(queue.executing)}</Detail>
        <Detail name="Queue">{queue.paused === null ? "open" : "paused"}</Detail>
      </Group>
    </dl>
  );
}

function Percentiles({ title, values }: { readonly title: string; readonly values: Distribution }) {
  const text = (value: number | null) => (value === null ? "–" : formatDuration(value));
  return (
    <Group title={title} main={text(values.p50)}>
      <Detail name="p95">{text(values.p95)}</Detail>
      <Detail name="p99">{text(values.p99)}</Detail>
      <Detail name="Mean">{text(values.mean)}</Detail>
    </Group>
  );
}

interface GroupProps {
  readonly title: string;
  readonly main: string;
  readonly children: preact.ComponentChildren;
}

function Group({ title, main, children }: GroupProps) {
  return (
    <div class={css.number}>
      <dt>{title}</dt>
      <dd class={css.main}>{main}</dd>
      {children}
    </div>
  );
}

function Detail({ name, children }: { readonly name: string; readonly children: preact.ComponentChildren }) {
  return (
    <dd class={css.detail}>
      <span>{name}</span>
      <span>{children}</span>
    </dd>
  );
}
