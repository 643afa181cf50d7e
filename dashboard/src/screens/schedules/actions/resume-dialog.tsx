import { post, schedulePath } from "../../../api/api.js";
import { databaseNow } from "../../../shell/me.js";
import { showToast } from "../../../ui/toast.js";
import { resumeEquivalent } from "../equivalents.js";
import type { Schedule } from "../schedule.js";
import { catchUpText } from "../schedule-words.js";
import type { ScheduleDialogProps } from "./dialog-props.js";
import { ScheduleDialog } from "./schedule-dialog.js";

export function ResumeDialog(props: ScheduleDialogProps) {
  const { schedule } = props;
  const { name } = schedule;
  return (
    <ScheduleDialog
      {...props}
      verb="Resume"
      label="Resume the schedule"
      icon="play"
      reasonHint="Written to the log of the server, with your name if the server knows it."
      equivalent={resumeEquivalent(name)}
      send={async (reason) => {
        await post(schedulePath(name, "resume"), reason);
        showToast(`The schedule ${name} is resumed.`);
      }}
    >
      <p>It starts runs again. {missedText(schedule)}</p>
    </ScheduleDialog>
  );
}

/** While it is paused, the next instant stays where it was. */
function missedText(schedule: Schedule): string {
  const { nextFor } = schedule;
  if (nextFor === null || Date.parse(nextFor) > databaseNow()) return "It has missed no occurrence.";
  return `It has missed occurrences. ${catchUpText(schedule)}`;
}
