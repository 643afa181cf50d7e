/** What the dialogs of all actions on a schedule share: they say what has changed since they were opened, and refuse then. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ConfirmDialog } from "../../../actions/confirm-dialog.js";
import { ApiError } from "../../../api/api.js";
import { escapeHidden } from "../../../ui/format.js";
import type { IconName } from "../../../ui/icon.js";
import { Note } from "../../../ui/page.js";
import type { Equivalent } from "../equivalents.js";
import type { Schedule } from "../schedule.js";
import type { ScheduleDialogProps } from "./dialog-props.js";
import { changesBetween, readSchedule } from "./schedule-changes.js";

export function ScheduleDialog({
  schedule,
  refusal,
  verb,
  label,
  icon,
  isDangerous = false,
  isComplete = true,
  reasonHint,
  equivalent,
  send,
  onClose,
  children,
}: ScheduleDialogProps & {
  /** The title, before the name of the schedule. */
  readonly verb: string;
  readonly label: string;
  readonly icon: IconName;
  readonly isDangerous?: boolean;
  readonly isComplete?: boolean;
  readonly reasonHint: string;
  readonly equivalent: Equivalent;
  readonly send: (reason: { readonly reason?: string }) => Promise<void>;
  readonly children: ComponentChildren;
}) {
  // What the person has agreed to: the schedule as it was when they opened this, or when they were told what has changed.
  const [agreed, setAgreed] = useState<Schedule>(schedule);
  const [told, setTold] = useState<readonly string[]>([]);
  const unseen = changesBetween(agreed, schedule);
  const changes = unseen.length > 0 ? unseen : told;
  return (
    <ConfirmDialog
      title={`${verb}: ${schedule.name}`}
      label={label}
      icon={icon}
      permission="schedules"
      isDangerous={isDangerous}
      isComplete={isComplete && refusal === null}
      reasonHint={reasonHint}
      cli={equivalent.cli}
      typescript={equivalent.typescript}
      send={async (reason) => {
        const now = await readSchedule(schedule.name);
        const missed = changesBetween(agreed, now);
        if (missed.length > 0) {
          setAgreed(now);
          setTold(missed);
          throw new ApiError(409, { detail: "Nothing was done, because the schedule has changed meanwhile." });
        }
        await send(reason);
      }}
      onClose={onClose}
    >
      {changes.length === 0 ? null : <Changed changes={changes} />}
      {refusal === null ? children : <Note tone="canceled">This is not possible: {escapeHidden(refusal)}</Note>}
    </ConfirmDialog>
  );
}

function Changed({ changes }: { readonly changes: readonly string[] }) {
  return (
    <div role="status" data-part="changed">
      <Note tone="paused">
        <strong>It has changed since you opened this: </strong>
        {changes.join(" ")}
      </Note>
    </div>
  );
}
