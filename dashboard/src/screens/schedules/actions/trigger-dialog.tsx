import { useState } from "preact/hooks";
import { type Answer, ApiError, post, schedulePath } from "../../../api/api.js";
import { runHref } from "../../../router/router.js";
import { Checkbox } from "../../../ui/field.js";
import { plural } from "../../../ui/format.js";
import { Note } from "../../../ui/page.js";
import { showToast } from "../../../ui/toast.js";
import { triggerEquivalent } from "../equivalents.js";
import type { Occurrence, Schedule } from "../schedule.js";
import type { ScheduleDialogProps } from "./dialog-props.js";
import { ScheduleDialog } from "./schedule-dialog.js";

export function TriggerDialog(props: ScheduleDialogProps) {
  const { schedule } = props;
  const { name, workflow, openRuns, overlap } = schedule;
  const [isForced, setForced] = useState(false);
  const meetsOverlap = openRuns > 0 && overlap !== "allowAll";
  return (
    <ScheduleDialog
      {...props}
      verb="Trigger now"
      label={isForced ? "Start a run anyway" : "Trigger now"}
      icon="play"
      reasonHint="Kept in the ledger, with your name if the server knows it."
      equivalent={triggerEquivalent(name, isForced)}
      send={async (reason) => {
        const body = { ...reason, ...(isForced ? { force: true } : {}) };
        tell(name, await post<Answer<"triggerSchedule">>(schedulePath(name, "trigger"), body));
      }}
    >
      <p>
        {meetsOverlap ? "An occurrence of this moment is added." : `A run of ${workflow} starts now.`} The regular
        occurrences stay as they are{schedule.status === "paused" ? ", and the schedule stays paused" : ""}.
        {schedule.computesInput ? " A worker that has the code computes its input." : ""}
      </p>
      {meetsOverlap ? (
        <>
          <Note tone="paused">
            <strong>{plural(openRuns, "run is", "runs are")} open. </strong>
            {isForced ? "The new one starts beside it." : overlapConsequence[overlap]}
          </Note>
          <Checkbox label="Start it although a run is open" isChecked={isForced} onChange={setForced} />
        </>
      ) : null}
    </ScheduleDialog>
  );
}

const overlapConsequence: Readonly<Record<Schedule["overlap"], string>> = {
  skip: "So this occurrence is skipped.",
  bufferOne: "So this occurrence waits for its end, unless another one waits already.",
  bufferAll: "So this occurrence waits for its end.",
  cancelOther: "It is canceled, and the new one starts after its end.",
  allowAll: "",
};

/** What became of the occurrence. Without a run, the dialog stays and says why. */
function tell(name: string, { outcome, runId, error }: Occurrence): void {
  if (runId !== null) showToast(`${name} has started a run.`, "completed", { to: runHref(runId), label: "Open it" });
  else if (outcome === "requested") showToast("Requested: a worker that has the code starts the run.");
  else if (outcome === "buffered") showToast("It starts when the open run has ended.");
  else throw new ApiError(409, { detail: refusalOf(outcome, error) });
}

function refusalOf(outcome: Occurrence["outcome"], error: string | null): string {
  if (outcome === "failed_to_start") return `The run could not be started: ${error ?? "the ledger says why."}`;
  if (outcome === "skipped_overlap")
    return "No run was started, because one is open; the ledger has it as skipped. You can start it anyway.";
  return "No run was started; the ledger says why.";
}
