import { remove, schedulePath } from "../../../api/api.js";
import { navigate } from "../../../router/router.js";
import { plural } from "../../../ui/format.js";
import { showToast } from "../../../ui/toast.js";
import { deleteEquivalent } from "../equivalents.js";
import type { ScheduleDialogProps } from "./dialog-props.js";
import { ScheduleDialog } from "./schedule-dialog.js";

export function DeleteDialog(props: ScheduleDialogProps) {
  const { name, openRuns, waiting, backfillWaiting } = props.schedule;
  const pending = waiting + backfillWaiting;
  return (
    <ScheduleDialog
      {...props}
      verb="Delete"
      label="Delete the schedule"
      icon="cross"
      isDangerous
      reasonHint="Written to the log of the server, with your name if the server knows it."
      equivalent={deleteEquivalent(name)}
      send={async (reason) => {
        await remove(schedulePath(name), reason);
        showToast(`The schedule ${name} was deleted.`);
        navigate("/schedules");
      }}
    >
      <p>
        It starts no more runs, and this cannot be undone.
        {openRuns === 0
          ? ""
          : ` ${plural(openRuns, "run that is", "runs that are")} open ${openRuns === 1 ? "goes" : "go"} on.`}
        {pending === 0
          ? ""
          : ` ${plural(pending, "occurrence that waits does", "occurrences that wait do")} not start.`}{" "}
        The ledger stays. A later schedule of the same name has occurrences of its own.
      </p>
    </ScheduleDialog>
  );
}
