/** What every tab of the page of a run gets. */
import type { Run } from "../../actions/run-actions.js";

export interface RunTabProps {
  readonly run: Run;
  /** The number of the last event that is stored, as of the latest answer. */
  readonly lastEvent: number;
  /** The event that the page shows the run as of (`?event=`); null: the present. */
  readonly asOf: number | null;
  /** The key of the selected step in the log (`?step=`); null: none. */
  readonly selectedStep: string | null;
  readonly onSelectStep: (step: string | null) => void;
}
