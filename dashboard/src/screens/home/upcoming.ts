/** Which runs continue by themselves, and when. */
import type { Answer } from "../../api/api.js";

type ListedRun = Answer<"listRuns">["runs"][number];

export interface UpcomingRun {
  readonly run: ListedRun;
  readonly at: number;
}

/**
 * The soonest of these runs. A list of runs tells the time in which a run continues only in its explanation.
 *
 * @param now runs that are due already are left out: they wait for a worker, not for a time
 */
export function soonestOf(runs: readonly ListedRun[], now: number, limit: number): readonly UpcomingRun[] {
  return runs
    .flatMap((run) => {
      const [, time] = /\bat (\d{4}-\d\d-\d\dT[\d:.]+Z)\.$/.exec(run.explanation ?? "") ?? [];
      return time === undefined ? [] : [{ run, at: Date.parse(time) }];
    })
    .filter(({ at }) => at > now)
    .sort((a, b) => a.at - b.at)
    .slice(0, limit);
}
