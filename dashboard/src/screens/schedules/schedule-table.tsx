import { href, runHref } from "../../router/router.js";
import { databaseNow, secondTick } from "../../shell/me.js";
import { escapeHidden } from "../../ui/format.js";
import { Icon } from "../../ui/icon.js";
import { Status } from "../../ui/status.js";
import { type Column, Table } from "../../ui/table.js";
import { formatDuration, formatRelative, Time } from "../../ui/time.js";
import { Outcome } from "./outcome.js";
import { isLate, type Schedule, scheduleAddress } from "./schedule.js";
import { kindOfLast } from "./schedule-words.js";
import css from "./schedules.module.css";
import { ZoneInstant } from "./zone-instant.js";

export function ScheduleTable({ schedules }: { readonly schedules: readonly Schedule[] }) {
  return (
    <div class={css.table}>
      <Table label="Schedules" columns={columns} rows={schedules} keyOf={({ name }) => name} isStacked />
    </div>
  );
}

const columns: readonly Column<Schedule>[] = [
  { title: "Schedule", cell: (schedule) => <NameCell {...schedule} /> },
  { title: "Rule", cell: (schedule) => <RuleCell {...schedule} /> },
  { title: "Status", cell: (schedule) => <StatusCell {...schedule} /> },
  { title: "Next", cell: (schedule) => <NextCell {...schedule} /> },
  { title: "Last", cell: (schedule) => <LastCell {...schedule} /> },
  { title: "Owner", isMinor: true, cell: ({ app }) => <Owner app={app} /> },
];

function NameCell({ name, workflow }: Schedule) {
  return (
    <div class={css.stack}>
      <a class={css.name} href={href(scheduleAddress(name))} data-schedule>
        {escapeHidden(name)}
      </a>
      <span class={css.muted}>
        starts <a href={href(`/workflows/${encodeURIComponent(workflow)}`)}>{escapeHidden(workflow)}</a>
      </span>
    </div>
  );
}

function RuleCell({ rule, cron }: Schedule) {
  return (
    <div class={css.stack}>
      <span class={css.rule} title={escapeHidden(rule)}>
        {escapeHidden(rule)}
      </span>
      {cron === null ? null : <span class={`${css.muted} mono`}>{escapeHidden(cron)}</span>}
    </div>
  );
}

function StatusCell({ status, pausedUntil, pauseReason }: Schedule) {
  return (
    <div class={css.stack}>
      <span>
        <Status state={status} />
      </span>
      {status !== "paused" ? null : (
        <span class={`${css.muted} ${css.line}`} title={pauseReason === null ? "" : escapeHidden(pauseReason)}>
          {pausedUntil === null ? "until resumed" : <Until at={pausedUntil} />}
        </span>
      )}
    </div>
  );
}

function Until({ at }: { readonly at: string }) {
  void secondTick.value;
  return <>resumes {formatRelative(Date.parse(at), databaseNow())}</>;
}

function NextCell(schedule: Schedule) {
  const { nextFor, nextAt, status, timeZone } = schedule;
  void secondTick.value;
  const now = databaseNow();
  if (status !== "active" || nextFor === null)
    return <span class={css.none}>{status === "paused" && nextFor !== null ? "not while paused" : "none"}</span>;
  return (
    <div class={css.stack}>
      {isLate(schedule) ? (
        <span class={css.late} data-part="late">
          <Icon name="errors" size={12} /> late by {formatDuration(schedule.lateMs)}
        </span>
      ) : (
        <span class={css.when}>{formatRelative(Date.parse(nextAt ?? nextFor), now)}</span>
      )}
      <span class={css.muted}>
        <ZoneInstant at={nextFor} zone={timeZone} />
      </span>
    </div>
  );
}

function LastCell({ last }: Schedule) {
  if (last === null) return <span class={css.none}>never yet</span>;
  const kind = kindOfLast(last.outcome);
  return (
    <div class={css.stack}>
      {last.outcome === "ran" ? (
        <a href={runHref(last.id)}>
          <Outcome kind={kind} />
          <span class="unseen">, open the run</span>
        </a>
      ) : (
        <Outcome kind={kind} />
      )}
      <span class={css.muted}>
        <Time at={last.scheduledFor} />
      </span>
    </div>
  );
}

function Owner({ app }: { readonly app: string | null }) {
  return app === null ? (
    <span class={css.muted} title="It belongs to no application; any worker fires it.">
      API
    </span>
  ) : (
    <span title="The application whose code declares it.">{escapeHidden(app)}</span>
  );
}
