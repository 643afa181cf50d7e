/** The questions of the memory store: the executable specification of `store/contract/questions.ts`. */
import { fingerprintIn } from "../../core/run/fingerprint.js";
import type {
  ErrorGroup,
  ErrorGroups,
  FiguresRange,
  MinuteFigures,
  Questions,
  RunPage,
  RunPosition,
  RunQuery,
  StatusCount,
  StatusCounts,
} from "../contract/questions.js";
import type { RunRecord } from "../contract/store.js";
import { matches, newestFirst } from "./filter.js";
import type { MemoryRows } from "./rows.js";
import type { MemoryRun } from "./task.js";

const openStatuses: ReadonlySet<string | undefined> = new Set(["pending", "waiting", "running"]);
const unsuccessfulStatuses = ["paused", "failed", "canceled"] as const;

export class MemoryQuestions implements Questions {
  readonly #rows: MemoryRows;
  readonly #clock: () => number;
  readonly #figures = new Map<string, MinuteFigures>();

  constructor(rows: MemoryRows, clock: () => number) {
    this.#rows = rows;
    this.#clock = clock;
  }

  async runs(query: RunQuery): Promise<RunPage> {
    const { after, limit, maxExamined, fingerprint } = query;
    const isOpenList =
      (query.active === true || openStatuses.has(query.status)) &&
      query.status !== "paused" &&
      query.startKey === undefined &&
      query.heroId === undefined &&
      typeof query.parentId !== "string" &&
      fingerprint === undefined &&
      query.errorText === undefined;
    const order = isOpenList ? byIdDescending : newestFirst;
    const runs = [...this.#rows.runs.values()]
      .filter((run) => (!isOpenList || run.finishedAt === null) && (after === undefined || order(run, after) > 0))
      .sort(order);
    const found: RunRecord[] = [];
    for (const [index, run] of runs.entries()) {
      if (index === maxExamined) return { runs: found, next: positionOf(runs[index - 1] as MemoryRun), isCut: true };
      const record = this.#rows.toRecord(run);
      const hasFingerprint = fingerprint === undefined || this.#fingerprintOf(run) === fingerprint;
      if (!hasFingerprint || !matches(record, query) || !this.#hasQualities(run, query)) continue;
      if (found.length === limit) return { runs: found, next: positionOf(found[limit - 1] as RunRecord), isCut: false };
      found.push(record);
    }
    return { runs: found, next: null, isCut: false };
  }

  async statusCounts({ cap }: { readonly cap: number }): Promise<StatusCounts> {
    const counts: StatusCount[] = [];
    const cappedStatuses: StatusCount["status"][] = [];
    for (const status of unsuccessfulStatuses) {
      const runs = this.#newestUnsuccessful(status, cap);
      if (runs.length >= cap) cappedStatuses.push(status);
      for (const [workflow, ofWorkflow] of groupBy(runs, (run) => run.workflow))
        counts.push({ workflow, status, count: ofWorkflow.length });
    }
    const openRuns = [...this.#rows.tasks.values()]
      .map(({ run }) => run)
      .sort(byIdDescending)
      .slice(0, cap);
    if (openRuns.length >= cap) cappedStatuses.push("pending", "running", "waiting");
    for (const runs of groupBy(openRuns, (run) => `${run.workflow}\u0000${this.#rows.toRecord(run).status}`).values()) {
      const { workflow, status } = this.#rows.toRecord(runs[0] as MemoryRun);
      if (status !== "paused") counts.push({ workflow, status: status as StatusCount["status"], count: runs.length });
    }
    return { counts, cappedStatuses };
  }

  async errorGroups({
    cap,
    recentSince,
  }: {
    readonly cap: number;
    readonly recentSince: number;
  }): Promise<ErrorGroups> {
    const groups: ErrorGroup[] = [];
    const cappedStatuses: ErrorGroup["status"][] = [];
    for (const status of ["failed", "paused"] as const) {
      const runs = this.#newestUnsuccessful(status, cap);
      if (runs.length >= cap) cappedStatuses.push(status);
      for (const ofGroup of groupBy(runs, (run) => `${run.workflow}\u0000${this.#fingerprintOf(run)}`).values()) {
        const { workflow } = ofGroup[0] as MemoryRun;
        const fingerprint = this.#fingerprintOf(ofGroup[0] as MemoryRun);
        if (fingerprint === null) continue;
        const times = ofGroup.map(({ createdAt }) => createdAt);
        groups.push({
          workflow,
          fingerprint,
          status,
          count: ofGroup.length,
          recentCount: times.filter((at) => at >= recentSince).length,
          firstCreatedAt: Math.min(...times),
          lastCreatedAt: Math.max(...times),
          latestRunId: ofGroup
            .map(({ id }) => id)
            .sort()
            .at(-1) as string,
        });
      }
    }
    const latestFirst = (a: ErrorGroup, b: ErrorGroup) =>
      b.lastCreatedAt - a.lastCreatedAt || (a.fingerprint < b.fingerprint ? -1 : 1);
    return { groups: groups.sort(latestFirst), cappedStatuses };
  }

  async lastEventSeq(runId: string): Promise<number> {
    return this.#rows.events.get(runId)?.length ?? 0;
  }

  get figureCount(): number {
    return this.#figures.size;
  }

  async addFigures(figures: readonly MinuteFigures[]): Promise<void> {
    for (const row of figures) {
      const key = `${row.minute}\u0000${row.workflow}`;
      const sum = this.#figures.get(key);
      this.#figures.set(key, sum === undefined ? { ...row } : addUp(sum, row));
    }
  }

  async figures({ from, to, bucketMinutes = 1 }: FiguresRange): Promise<readonly MinuteFigures[]> {
    const sums = new Map<string, MinuteFigures>();
    for (const row of this.#figures.values()) {
      if (row.minute < from || row.minute > to) continue;
      const minute = row.minute - (row.minute % bucketMinutes);
      const key = `${minute}\u0000${row.workflow}`;
      const sum = sums.get(key);
      sums.set(key, sum === undefined ? { ...row, minute } : addUp(sum, row));
    }
    return [...sums.values()].sort((a, b) => a.minute - b.minute || (a.workflow < b.workflow ? -1 : 1));
  }

  async deleteFigures({ before }: { readonly before: number }): Promise<void> {
    for (const [key, { minute }] of this.#figures) if (minute < before) this.#figures.delete(key);
  }

  #hasQualities(run: MemoryRun, { version, step, errorText, minDurationMs, maxDurationMs }: RunQuery): boolean {
    const durationMs = run.startedAt === null ? Number.NaN : (run.finishedAt ?? this.#clock()) - run.startedAt;
    return (
      (version === undefined || run.version === version) &&
      (step === undefined || isAtStep(run, step)) &&
      (errorText === undefined || hasErrorText(run, errorText)) &&
      (minDurationMs === undefined || durationMs >= minDurationMs) &&
      (maxDurationMs === undefined || durationMs <= maxDurationMs)
    );
  }

  #newestUnsuccessful(status: string, cap: number): MemoryRun[] {
    return [...this.#rows.runs.values()]
      .filter((run) => run.status === status)
      .sort(newestFirst)
      .slice(0, cap);
  }

  #fingerprintOf(run: MemoryRun): string | null {
    if (run.status === "failed") return fingerprintIn(run.error);
    return run.status === "paused" ? fingerprintIn(run.waiting) : null;
  }
}

/** In JSON text the quotes inside a string are escaped, so these texts match only where the fields are. */
function isAtStep({ error, waiting }: MemoryRun, step: string): boolean {
  const name = JSON.stringify(step);
  const isIn = (text: string | null, part: string) => text?.includes(part) === true;
  return isIn(error, `"step":${name}`) || isIn(waiting, `"step":${name}`) || isIn(waiting, `"step":{"name":${name}`);
}

function hasErrorText({ status, error, waiting }: MemoryRun, text: string): boolean {
  const stored = status === "failed" ? error : status === "paused" ? waiting : null;
  return stored?.includes(JSON.stringify(text).slice(1, -1)) === true;
}

const byIdDescending = (a: { readonly id: string }, b: { readonly id: string }) =>
  a.id < b.id ? 1 : a.id > b.id ? -1 : 0;

const positionOf = ({ createdAt, id }: RunPosition): RunPosition => ({ createdAt, id });

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

const addUp = (a: MinuteFigures, b: MinuteFigures): MinuteFigures => ({
  ...a,
  began: a.began + b.began,
  completed: a.completed + b.completed,
  failed: a.failed + b.failed,
  canceled: a.canceled + b.canceled,
  paused: a.paused + b.paused,
});
