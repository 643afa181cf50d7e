/** What the chart of a timeline and its table show. */
import type { OpenGroups } from "./open-groups.js";
import type { Row } from "./waterfall.js";

export interface ChartProps {
  readonly rows: readonly Row[];
  readonly groups: OpenGroups;
  readonly from: number;
  /** The end of the time that is shown. */
  readonly until: number;
  /** Whether `until` is the present. */
  readonly isLive: boolean;
  readonly selectedStep: string | null;
  readonly onSelectStep: (step: string | null) => void;
}
