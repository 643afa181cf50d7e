/** The page of one schedule: what it does, what became of its occurrences, and when it fires next. */
import type { Answer } from "../../api/api.js";
import { schedulePath } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { href } from "../../router/router.js";
import { escapeHidden } from "../../ui/format.js";
import { Empty, Failure, Loading, PageHeading, useTitle } from "../../ui/page.js";
import type { ScreenProps } from "../screen-props.js";
import { Ledger } from "./ledger.js";
import { NextOccurrences } from "./next-occurrences.js";
import { OutcomeStrip } from "./outcome-strip.js";
import { ledgerPageSize } from "./schedule.js";
import css from "./schedule.module.css";
import { ScheduleHeader } from "./schedule-header.js";
import { Settings } from "./settings.js";

export function ScheduleScreen({ params }: ScreenProps) {
  const name = params.schedule as string;
  return <SchedulePage key={name} name={name} />;
}

function SchedulePage({ name }: { readonly name: string }) {
  useTitle(name);
  const { data: schedule, error } = useQuery<Answer<"getSchedule">>(schedulePath(name), { maxPayload: 16_000 });
  if (error?.status === 404) return <NoSchedule name={name} />;
  if (schedule === undefined) return error === null ? <Loading lines={8} /> : <Failure error={error} />;
  return (
    <>
      <ScheduleHeader schedule={schedule} />
      <OutcomeStrip schedule={schedule} />
      <div class={css.columns}>
        <NextOccurrences schedule={schedule} />
        <Settings schedule={schedule} />
      </div>
      <Ledger name={name} zone={schedule.timeZone} />
    </>
  );
}

/** The ledger of a schedule outlives it. */
function NoSchedule({ name }: { readonly name: string }) {
  const { data } = useQuery<Answer<"listOccurrences">>(schedulePath(name, "occurrences"), { limit: ledgerPageSize });
  const wasDeleted = data !== undefined && data.occurrences.length > 0;
  return (
    <>
      <PageHeading title={escapeHidden(name)} />
      <Empty title={wasDeleted ? "This schedule was deleted" : "There is no such schedule"} icon="schedules">
        {wasDeleted
          ? "It starts no runs. What became of its occurrences is still known."
          : "It may have been deleted, or it is in another database. A schedule appears when a worker that declares it starts."}{" "}
        <a href={href("/schedules")}>See all schedules</a>
      </Empty>
      {wasDeleted ? <Ledger name={name} zone="UTC" /> : null}
    </>
  );
}
