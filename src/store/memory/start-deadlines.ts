/** The start deadlines of the memory store. */
import type { StartDeadline, StartDeadlines } from "../contract/store.js";
import { compareText } from "../shared/compare-text.js";
import type { MemoryRows } from "./rows.js";

export class MemoryStartDeadlines implements StartDeadlines {
  readonly #rows: MemoryRows;
  readonly #now: () => number;

  constructor(rows: MemoryRows, now: () => number) {
    this.#rows = rows;
    this.#now = now;
  }

  async earliest(limit: number) {
    const deadlines = [...this.#rows.startDeadlines]
      .map(([runId, at]) => ({ runId, at }))
      .sort((a, b) => a.at - b.at || compareText(a.runId, b.runId));
    return deadlines.length === 0 ? null : { now: this.#now(), deadlines: deadlines.slice(0, limit) };
  }

  /** How long until the earliest deadline; null if there is none. */
  nextInMs(): number | null {
    const instants = this.#rows.startDeadlines;
    return instants.size === 0 ? null : Math.min(...instants.values()) - this.#now();
  }

  async ofRuns(runIds: readonly string[]): Promise<readonly StartDeadline[]> {
    return runIds.flatMap((runId) => {
      const at = this.#rows.startDeadlines.get(runId);
      return at === undefined ? [] : [{ runId, at }];
    });
  }

  async remove(deadlines: readonly StartDeadline[]): Promise<void> {
    const latest = Math.max(...deadlines.map(({ at }) => at));
    for (const { runId } of deadlines)
      if ((this.#rows.startDeadlines.get(runId) ?? Number.POSITIVE_INFINITY) <= latest)
        this.#rows.startDeadlines.delete(runId);
  }
}
