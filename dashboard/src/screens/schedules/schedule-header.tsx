/** The head of the page of a schedule: its status, its rule, what it does now, and what can be done with it. */
import { href } from "../../router/router.js";
import { databaseNow, secondTick } from "../../shell/me.js";
import { CopyButton } from "../../ui/copy.js";
import { escapeHidden, formatCount, plural } from "../../ui/format.js";
import { Note } from "../../ui/page.js";
import { Status } from "../../ui/status.js";
import { formatDuration, formatRelative, Time } from "../../ui/time.js";
import { ScheduleActions } from "./actions/schedule-actions.js";
import { isLate, type Schedule } from "./schedule.js";
import css from "./schedule.module.css";
import { ZoneInstant } from "./zone-instant.js";

export function ScheduleHeader({ schedule }: { readonly schedule: Schedule }) {
  const { name, status, rule } = schedule;
  return (
    <header class={css.header}>
      <div class={css.title}>
        <Status state={status} />
        <h1>{escapeHidden(name)}</h1>
        <CopyButton text={name} what="the name of the schedule" />
        <ScheduleActions schedule={schedule} />
      </div>
      <p class={css.rule} data-part="rule">
        {escapeHidden(rule)}
      </p>
      <Standing schedule={schedule} />
    </header>
  );
}

/** What the schedule does now, or why it does nothing. */
function Standing({ schedule }: { readonly schedule: Schedule }) {
  void secondTick.value;
  const now = databaseNow();
  return (
    <div class={css.standing} data-part="standing">
      {isLate(schedule) ? <Late {...schedule} /> : <Sentence schedule={schedule} now={now} />}
      <Work {...schedule} />
    </div>
  );
}

interface Props {
  readonly schedule: Schedule;
  readonly now: number;
}

function Late({ app, nextFor, timeZone, lateMs }: Schedule) {
  return (
    <Note tone="failed" action={<a href={href("/workers")}>See the workers</a>}>
      <strong>It is late by {formatDuration(lateMs)}: </strong>
      {nextFor === null ? "it" : <ZoneInstant at={nextFor} zone={timeZone} />} has passed, and no live worker fires it.
      {app === null ? " Start a worker." : ` Start a worker of the application “${escapeHidden(app)}”.`}
    </Note>
  );
}

function Sentence({ schedule, now }: Props) {
  const { status } = schedule;
  if (status === "paused") return <Paused schedule={schedule} now={now} />;
  if (status === "retired") return <Retired {...schedule} />;
  if (status === "ended") return <Ended {...schedule} />;
  return <Active schedule={schedule} now={now} />;
}

function Active({ schedule: { nextFor, nextAt, timeZone, jitterMs }, now }: Props) {
  if (nextFor === null || nextAt === null) return <p>It has no next occurrence.</p>;
  const delay = Date.parse(nextAt) - Date.parse(nextFor);
  return (
    <p>
      The next run starts <strong>{formatRelative(Date.parse(nextAt), now)}</strong>, for{" "}
      <ZoneInstant at={nextFor} zone={timeZone} withZone />
      {jitterMs > 0 && delay > 0 ? `, ${formatDuration(delay)} after it because of the jitter` : ""}.
    </p>
  );
}

function Paused({ schedule: { pausedAt, pausedBy, pausedUntil, pauseReason, timeZone }, now }: Props) {
  const by = pausedBy === null ? "" : ` by ${escapeHidden(pausedBy)}`;
  return (
    <Note tone="paused">
      <strong>Paused{by}</strong> {pausedAt === null ? null : <Time at={pausedAt} />}
      {pauseReason === null ? ", without a reason." : `: ${escapeHidden(pauseReason)}`} It starts no runs{" "}
      {pausedUntil === null ? (
        "until it is resumed."
      ) : (
        <>
          and resumes by itself {formatRelative(Date.parse(pausedUntil), now)},{" "}
          <ZoneInstant at={pausedUntil} zone={timeZone} withZone />.
        </>
      )}
    </Note>
  );
}

function Retired({ app }: Schedule) {
  return (
    <Note tone="canceled">
      <strong>Retired: </strong>the code of the application “{escapeHidden(app ?? "")}” does not contain it any more, so
      it starts no runs. When a worker declares it again, it goes on. If it is not coming back, delete it.
    </Note>
  );
}

function Ended({ maxRuns, acceptedRuns }: Schedule) {
  const hasAllRuns = maxRuns !== null && acceptedRuns >= maxRuns;
  return (
    <Note tone="canceled">
      <strong>Ended: </strong>
      {hasAllRuns
        ? `it has had all of its ${formatCount(maxRuns)} runs.`
        : "its rule has no further instants, so it starts no more runs."}
    </Note>
  );
}

/** What is under way besides the regular runs. */
function Work({ openRuns, waiting, backfillWaiting, failedInARow }: Schedule) {
  const parts = [
    openRuns === 0 ? null : `${plural(openRuns, "run is", "runs are")} open`,
    waiting === 0 ? null : `${plural(waiting, "occurrence waits", "occurrences wait")}`,
    backfillWaiting === 0
      ? null
      : `${plural(backfillWaiting, "occurrence of a backfill waits", "occurrences of a backfill wait")}`,
    failedInARow === 0 ? null : `${plural(failedInARow, "run has", "runs in a row have")} failed`,
  ].filter((part) => part !== null);
  return parts.length === 0 ? null : (
    <p class={css.muted} data-part="work">
      {parts.join(" · ")}
    </p>
  );
}
