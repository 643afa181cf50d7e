/** Groups failed and paused runs by their errors. */
import type { Store } from "../../store/contract/store.js";
import { type RunInfo, toRunInfo } from "../inspect/run-info.js";

/** Runs of one workflow that failed, or are paused, because of errors that are alike. */
export interface ErrorInfo {
  /** Identifies the errors; `pawl.runs({ fingerprint })` lists their runs. */
  readonly fingerprint: string;
  /** The name of the workflow. */
  readonly workflow: string;
  /** Whether the runs failed, or are paused and can be resumed. */
  readonly status: "failed" | "paused";
  /** The step that threw; null if code outside of a step did. */
  readonly step: string | null;
  /** The name of the error's class in the latest of these runs. */
  readonly name: string;
  /** The message of the error in the latest of these runs. */
  readonly message: string;
  /** How many runs there are. */
  readonly count: number;
  /** How many of them were created in the last 24 hours. */
  readonly lastDayCount: number;
  /** When the oldest of these runs was created. */
  readonly firstRunAt: Date;
  /** When the newest of these runs was created. */
  readonly lastRunAt: Date;
  /** The id of the latest of these runs. */
  readonly latestRunId: string;
}

/** The errors of failed and paused runs, as `pawl.errors()` returns them. */
export interface ErrorReport {
  /** The groups, those with the newest runs first; at most 200. */
  readonly errors: ErrorInfo[];
  /** Of these, only the newest 10,000 runs were counted. */
  readonly capped: readonly ("failed" | "paused")[];
}

const maxCounted = 10_000;
const maxGroups = 200;
const dayMs = 86_400_000;

export async function readErrors(store: Store): Promise<ErrorReport> {
  const { questions } = store.maintenance;
  const recentSince = (await store.now()) - dayMs;
  const { groups, cappedStatuses } = await questions.errorGroups({ cap: maxCounted, recentSince });
  const listedGroups = groups.slice(0, maxGroups);
  const latestRuns = await store.runsById(listedGroups.map(({ latestRunId }) => latestRunId));
  const infoById = new Map(latestRuns.map((run) => [run.id, toRunInfo(run)]));
  const errors = listedGroups.map((group): ErrorInfo => {
    const { workflow, fingerprint, status, count, latestRunId } = group;
    return {
      ...{ fingerprint, workflow, status },
      ...describe(infoById.get(latestRunId)),
      ...{ count, lastDayCount: group.recentCount },
      firstRunAt: new Date(group.firstCreatedAt),
      lastRunAt: new Date(group.lastCreatedAt),
      latestRunId,
    };
  });
  return { errors, capped: cappedStatuses };
}

/** The latest run may have been resumed or deleted since its group was read. */
function describe(run: RunInfo | undefined): Pick<ErrorInfo, "step" | "name" | "message"> {
  const step = run?.failedStep ?? null;
  if (run?.error != null) return { step, name: run.error.name, message: run.error.message };
  return { step, name: run?.pauseError?.name ?? "Error", message: run?.pauseError?.message ?? "" };
}
