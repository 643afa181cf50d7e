/** The facts about a run, in lines that wrap. */
import type { ComponentChildren } from "preact";
import type { Run } from "../../../actions/run-actions.js";
import type { Answer } from "../../../api/api.js";
import { runPath } from "../../../api/api.js";
import { useQuery } from "../../../api/queries.js";
import { href, runHref } from "../../../router/router.js";
import { Id } from "../../../ui/copy.js";
import { escapeHidden, formatCount } from "../../../ui/format.js";
import { Status } from "../../../ui/status.js";
import { Time, Took } from "../../../ui/time.js";
import css from "./run-header.module.css";

const search = (qualifiers: string): string => href(`/runs?q=${encodeURIComponent(qualifiers)}`);
/** Values with spaces or quotes are quoted in a search. */
const quoted = (value: string): string => (/[\s"]/.test(value) ? JSON.stringify(value) : value);

export function RunFacts({ run }: { readonly run: Run }) {
  const { data } = useQuery<Answer<"getRunRetry">>(run.status === "failed" ? runPath(run.id, "retry") : null);
  const retry = data?.retry ?? null;
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    ["Hero", run.hero === null ? null : <Hero {...run.hero} />],
    ["Created", <Time key="created" at={run.createdAt} />],
    ["Started", run.startedAt === null ? null : <Time at={run.startedAt} />],
    ["Took", run.startedAt === null ? null : <Took from={run.startedAt} to={run.finishedAt} />],
    ["Schedule", run.schedule === null ? null : <ScheduleLink name={run.schedule.name} />],
    ["Scheduled for", run.schedule === null ? null : <ScheduledFor {...run.schedule} />],
    ["Parent", run.parentId === null ? null : <Id id={run.parentId} to={runHref(run.parentId)} />],
    ["Retry of", run.retryOf === null ? null : <Id id={run.retryOf} to={runHref(run.retryOf)} />],
    ["Retried by", retry === null ? null : <Retry {...retry} />],
    ["Started by", run.startedBy === null ? null : startedByText(run.startedBy)],
    [
      "Queue",
      run.queue === "" || run.queue === run.workflow ? null : <a href={href("/queues")}>{escapeHidden(run.queue)}</a>,
    ],
    ["Priority", run.priority === 0 ? null : <span class="mono">{run.priority}</span>],
    ["Version", run.version === "" ? null : escapeHidden(run.version)],
    ["Tags", run.tags.length === 0 ? null : <Tags tags={run.tags} />],
  ];
  return (
    <dl class={css.facts}>
      {facts.map(([name, value]) =>
        value === null ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

function Hero({ type, id }: { readonly type: string; readonly id: string }) {
  return (
    <a href={search(`hero:${quoted(`${type}/${id}`)}`)} title="All runs of this hero">
      {escapeHidden(`${type} ${id}`)}
    </a>
  );
}

const ScheduleLink = ({ name }: { readonly name: string }) => (
  <a href={href(`/schedules/${encodeURIComponent(name)}`)}>{escapeHidden(name)}</a>
);

function ScheduledFor({ scheduledFor, missed, manual, backfill }: NonNullable<Run["schedule"]>) {
  const special = [
    manual ? "triggered" : null,
    backfill ? "backfill" : null,
    missed === 0 ? null : `stands for ${formatCount(missed)} missed before it`,
  ].filter((part) => part !== null);
  return (
    <>
      <Time at={scheduledFor} />
      {special.length === 0 ? "" : ` (${special.join(", ")})`}
    </>
  );
}

function Retry({ id, status }: { readonly id: string; readonly status: string }) {
  return (
    <>
      <Id id={id} to={runHref(id)} /> <Status state={status} isSmall />
    </>
  );
}

function Tags({ tags }: { readonly tags: readonly string[] }) {
  return (
    <>
      {tags.map((tag) => (
        <a key={tag} class={css.tag} href={search(`tag:${quoted(tag)}`)}>
          {escapeHidden(tag)}
        </a>
      ))}
    </>
  );
}

function startedByText({ by, reason }: NonNullable<Run["startedBy"]>): string {
  return escapeHidden([by, reason].filter((part) => part !== null).join(": "));
}
