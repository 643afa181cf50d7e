/** When the schedule fires next. Days on which the clocks of its zone change are marked and explained. */
import type { Answer } from "../../api/api.js";
import { schedulePath } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { location, setSearch } from "../../router/router.js";
import { databaseNow, secondTick } from "../../shell/me.js";
import { Button } from "../../ui/button.js";
import { escapeHidden } from "../../ui/format.js";
import { Icon } from "../../ui/icon.js";
import { Empty, Failure, Loading, Note, Section } from "../../ui/page.js";
import { type Column, Table } from "../../ui/table.js";
import { formatInstant, formatRelative } from "../../ui/time.js";
import type { Schedule } from "./schedule.js";
import css from "./schedule.module.css";
import { ZoneInstant } from "./zone-instant.js";
import { describeClockChange } from "./zone-time.js";

type NextInstants = Answer<"getNextInstants">;
type Instant = NextInstants["instants"][number];

const count = 10;
const refreshMs = 5_000;

export function NextOccurrences({ schedule }: { readonly schedule: Schedule }) {
  const { name, status } = schedule;
  const from = location.value.search.get("from");
  const hasEnded = status === "ended";
  const { data, error } = useQuery<NextInstants>(
    hasEnded ? null : schedulePath(name, "next"),
    { count, from },
    { keepPrevious: true, minIntervalMs: refreshMs },
  );
  const instants = withinLimit(schedule, data?.instants ?? [], from !== null);
  const last = instants.at(-1);
  return (
    <Section
      title={from === null ? "The next ten occurrences" : "Later occurrences"}
      aside={
        <>
          {from === null ? null : (
            <Button kind="ghost" icon="left" onClick={() => setSearch({ from: null })}>
              From now
            </Button>
          )}
          {last === undefined || instants.length < count ? null : (
            <Button kind="ghost" icon="right" onClick={() => setSearch({ from: last.at })}>
              Later
            </Button>
          )}
        </>
      }
      isFlush
    >
      {data === undefined && !hasEnded ? error === null ? <Loading lines={5} /> : <Failure error={error} /> : null}
      {hasEnded || (data !== undefined && instants.length === 0) ? (
        <Empty title="There are no further occurrences" icon="schedules" />
      ) : null}
      {instants.length === 0 ? null : (
        <>
          <NotNow {...schedule} />
          <div class={css.next}>
            <Table label="Next occurrences" columns={columnsFor(schedule)} rows={instants} keyOf={({ at }) => at} />
          </div>
        </>
      )}
    </Section>
  );
}

/** A schedule that ends after so many runs has no further occurrences than these. */
function withinLimit({ maxRuns, acceptedRuns }: Schedule, instants: readonly Instant[], isLater: boolean) {
  return maxRuns === null || isLater ? instants : instants.slice(0, Math.max(0, maxRuns - acceptedRuns));
}

function NotNow({ status, pausedUntil, timeZone }: Schedule) {
  if (status === "active") return null;
  const isPaused = status === "paused";
  return (
    <div class={css.notNow}>
      <Note tone={isPaused ? "paused" : "canceled"}>
        {!isPaused ? (
          "It is retired, so these do not run unless it returns."
        ) : pausedUntil === null ? (
          "It is paused, so these do not run until it is resumed."
        ) : (
          <>
            It is paused until <ZoneInstant at={pausedUntil} zone={timeZone} />, so those before do not run in time.
          </>
        )}
      </Note>
    </div>
  );
}

const columnsFor = (schedule: Schedule): readonly Column<Instant>[] => [
  { title: `In ${schedule.timeZone}`, cell: (instant) => <When {...instant} zone={schedule.timeZone} /> },
  { title: "From now", isNumber: true, cell: ({ at }) => <FromNow at={at} /> },
];

function When({ at, local, offset, transitionDay, zone }: Instant & { readonly zone: string }) {
  return (
    <div class={css.instant} data-transition={transitionDay ? "yes" : "no"}>
      <span>
        <time
          class="mono"
          dateTime={at}
          title={`${formatInstant(Date.parse(at), false)} by the clock of your browser · ${formatInstant(Date.parse(at), true)}`}
        >
          {escapeHidden(local)}
        </time>{" "}
        <span class={`${css.muted} mono`}>{escapeHidden(offset)}</span>
      </span>
      {transitionDay ? (
        <>
          <span class={css.clocks}>
            <Icon name="clock" size={12} /> clocks change
          </span>
          <span class={css.explanation}>{describeClockChange(zone, Date.parse(at))}</span>
        </>
      ) : null}
    </div>
  );
}

function FromNow({ at }: { readonly at: string }) {
  void secondTick.value;
  return <span class={css.muted}>{formatRelative(Date.parse(at), databaseNow())}</span>;
}
