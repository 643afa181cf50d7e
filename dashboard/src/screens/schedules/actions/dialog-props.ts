import type { Schedule } from "../schedule.js";

export interface ScheduleDialogProps {
  /** The schedule as it is now; it may change while the dialog is open. */
  readonly schedule: Schedule;
  /** Why the action is not possible any more, or never was; null if it is. */
  readonly refusal: string | null;
  readonly onClose: () => void;
}
