import { useState } from "preact/hooks";
import { post, schedulePath } from "../../../api/api.js";
import { databaseNow } from "../../../shell/me.js";
import { Select, TextField } from "../../../ui/field.js";
import { escapeHidden, plural } from "../../../ui/format.js";
import { showToast } from "../../../ui/toast.js";
import { pauseEquivalent } from "../equivalents.js";
import { catchUpText } from "../schedule-words.js";
import { instantOfLocal, isKnownZone, zoneFieldValue } from "../zone-time.js";
import type { ScheduleDialogProps } from "./dialog-props.js";
import { ScheduleDialog } from "./schedule-dialog.js";

const atADate = "date";
const hourMs = 3_600_000;

const ends = [
  ["", "When it is resumed"],
  ["1 hour", "In an hour"],
  ["8 hours", "In 8 hours"],
  ["1 day", "In a day"],
  ["7 days", "In a week"],
  [atADate, "At a date and time"],
] as const;

export function PauseDialog(props: ScheduleDialogProps) {
  const { schedule } = props;
  const { name, status, openRuns } = schedule;
  const zone = isKnownZone(schedule.timeZone) ? schedule.timeZone : "UTC";
  const [end, setEnd] = useState("");
  const [local, setLocal] = useState(() => zoneFieldValue(zone, databaseNow() + 24 * hourMs));
  const instant = instantOfLocal(zone, local);
  const problem =
    end !== atADate
      ? null
      : instant === null
        ? "This is no date with a time."
        : instant <= databaseNow()
          ? "This time has passed."
          : null;
  const until = end === atADate ? (instant === null ? "" : new Date(instant).toISOString()) : end;
  const isPaused = status === "paused";
  return (
    <ScheduleDialog
      {...props}
      verb={isPaused ? "Change the pause" : "Pause"}
      label={isPaused ? "Change the pause" : "Pause the schedule"}
      icon="pause"
      isComplete={problem === null}
      reasonHint="Shown with the schedule as long as it is paused."
      equivalent={pauseEquivalent(name, until)}
      send={async (reason) => {
        await post(schedulePath(name, "pause"), { ...reason, ...(until === "" ? {} : { until }) });
        showToast(`The schedule ${name} is paused.`);
      }}
    >
      <p>
        {isPaused
          ? "The end, the author and the reason of the pause are replaced."
          : `It starts no runs until the pause ends.${openRuns === 0 ? "" : ` ${plural(openRuns, "run that is", "runs that are")} open ${openRuns === 1 ? "goes" : "go"} on.`}`}{" "}
        {catchUpText(schedule)}
      </p>
      <Select
        label="The pause ends"
        value={end}
        options={ends}
        onChange={(event) => setEnd(event.currentTarget.value)}
      />
      {end === atADate ? (
        <TextField
          label={`Date and time in ${escapeHidden(zone)}`}
          type="datetime-local"
          value={local}
          error={problem}
          onInput={(event) => setLocal(event.currentTarget.value)}
        />
      ) : null}
    </ScheduleDialog>
  );
}
