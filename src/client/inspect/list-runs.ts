/** Lists runs, newest first, a page at a time. */
import { InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { isUuid } from "../../core/naming/ids.js";
import { checkName } from "../../core/naming/names.js";
import type { HeroRef } from "../../define/hero.js";
import { heroId } from "../../define/hero.js";
import { type AnyWorkflow, nameOf } from "../../define/resolve.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { RunQuery, RunStatus, Store } from "../../store/contract/store.js";
import { parseInstant } from "../start/new-run.js";
import { explainRows } from "./explain-rows.js";
import { type RunInfo, toRunInfo } from "./run-info.js";

/** The filter of `pawl.runs`. A run is listed if it matches all conditions that are set. */
export interface RunsFilter {
  /** Only runs of this workflow, given by its code or its name. */
  readonly workflow?: AnyWorkflow | string;
  /** Only runs with this status. */
  readonly status?: RunStatus;
  /** true: only runs that have not ended. false: only runs that have ended. */
  readonly active?: boolean;
  /** Only runs of this hero. */
  readonly hero?: HeroRef;
  /** Only runs that were started with this key. A workflow has at most one run for each key. */
  readonly idempotencyKey?: string;
  /** Only runs that have this tag. */
  readonly tag?: string;
  /** Only children of this run, including the jobs of graph nodes. null: only runs that have no parent. */
  readonly parentId?: string | null;
  /** Only runs that were created at this instant or later. */
  readonly createdAfter?: Date | number;
  /** Only runs that were created before this instant. */
  readonly createdBefore?: Date | number;
  /** Only runs that failed, or are paused, because of an error with this fingerprint; see `RunInfo.fingerprint`. */
  readonly fingerprint?: string;
  /** Only runs of this version of their workflow. */
  readonly version?: string;
  /** Only runs that failed or are paused at this step, wait for it, or whose chain is at it. */
  readonly step?: string;
  /** Only runs that failed or are paused because of an error that contains this text. */
  readonly error?: string;
  /** Only runs that have taken at least this long since they started, until their end or until now. */
  readonly tookAtLeast?: Duration;
  /** Only runs that have taken at most this long since they started, until their end or until now. */
  readonly tookAtMost?: Duration;
  /** Explains every run that has not ended in its `explanation`, at the cost of three more reads per page. Default false. */
  readonly explain?: boolean;
  /** How many runs a page has at most, 1 to 1,000. Default 50. */
  readonly limit?: number;
  /** The `next` of the previous page. */
  readonly cursor?: string;
}

const runsFilterKeys = new Set<string>([
  "workflow",
  "status",
  "active",
  "hero",
  "idempotencyKey",
  "tag",
  "parentId",
  "createdAfter",
  "createdBefore",
  "fingerprint",
  "version",
  "step",
  "error",
  "tookAtLeast",
  "tookAtMost",
  "explain",
  "limit",
  "cursor",
] satisfies (keyof RunsFilter)[]);

const maxPageSize = 1_000;

/** A page of runs, as `pawl.runs()` returns it. */
export interface RunsPage {
  /** The runs of this page, newest first. Runs that have not ended are ordered by the time in their ids. */
  readonly runs: RunInfo[];
  /** The `cursor` of the next page; null if this is the last page. */
  readonly next: string | null;
  /**
   * Whether the page ends early, because 10,000 runs were examined and few of them matched; `next` then leads on. No page
   * reads more than that, however many runs there are.
   */
  readonly isCut: boolean;
}

/** Conditions that no index serves are checked run by run, and a page must not read the whole table for them. */
const maxExamined = 10_000;

export async function listRuns(store: Store, filter: RunsFilter, runtime: Runtime): Promise<RunsPage> {
  checkOptions("runs()", filter, runsFilterKeys, "filter");
  const limit = filter.limit ?? 50;
  if (!Number.isInteger(limit) || limit < 1 || limit > maxPageSize)
    throw new InvalidInputError(`runs({ limit }) must be between 1 and ${maxPageSize}, not ${limit}.`);
  const page = await store.maintenance.questions.runs({ ...toRunFilter(filter), limit, maxExamined });
  const explanations = filter.explain === true ? await explainRows(store, page.runs, runtime) : noExplanations;
  return {
    runs: page.runs.map((run) => ({ ...toRunInfo(run), explanation: explanations.get(run.id) ?? null })),
    next: page.next === null ? null : writeCursor(page.next),
    isCut: page.isCut,
  };
}

const noExplanations: ReadonlyMap<string, string> = new Map();

function toRunFilter(filter: RunsFilter): Omit<RunQuery, "limit" | "maxExamined"> {
  const { workflow, hero, idempotencyKey: key, cursor, fingerprint } = filter;
  return {
    ...(workflow === undefined ? {} : { workflow: nameOf(workflow) }),
    ...(filter.status === undefined ? {} : { status: checkStatus(filter.status) }),
    ...(filter.active === undefined ? {} : { active: filter.active }),
    ...(hero === undefined ? {} : { heroType: hero.type, heroId: heroId(hero) }),
    ...(key === undefined ? {} : { startKey: checkName("idempotency key", key) }),
    ...(filter.tag === undefined ? {} : { tag: filter.tag }),
    ...(fingerprint === undefined ? {} : { fingerprint: checkName("fingerprint", fingerprint) }),
    ...searchConditions(filter),
    ...(filter.parentId === undefined ? {} : { parentId: filter.parentId }),
    ...(filter.createdAfter === undefined ? {} : { createdAfter: parseInstant("createdAfter", filter.createdAfter) }),
    ...(filter.createdBefore === undefined
      ? {}
      : { createdBefore: parseInstant("createdBefore", filter.createdBefore) }),
    ...(cursor === undefined ? {} : { after: readCursor(cursor) }),
  };
}

const maxErrorText = 1_000;

function searchConditions({ version, step, error, tookAtLeast, tookAtMost }: RunsFilter): Partial<RunQuery> {
  if (error !== undefined && (typeof error !== "string" || error === "" || error.length > maxErrorText))
    throw new InvalidInputError(`runs({ error }) takes a text of 1 to ${maxErrorText} characters.`);
  return {
    ...(version === undefined ? {} : { version: version === "" ? "" : checkName("version", version) }),
    ...(step === undefined ? {} : { step: checkName("node", step) }),
    ...(error === undefined ? {} : { errorText: error }),
    ...(tookAtLeast === undefined ? {} : { minDurationMs: parseDuration(tookAtLeast, "tookAtLeast") }),
    ...(tookAtMost === undefined ? {} : { maxDurationMs: parseDuration(tookAtMost, "tookAtMost") }),
  };
}

const statuses = new Set<RunStatus>(["pending", "running", "waiting", "paused", "completed", "failed", "canceled"]);

function checkStatus(status: RunStatus): RunStatus {
  if (statuses.has(status)) return status;
  throw new InvalidInputError(`There is no status "${String(status)}"; there are ${[...statuses].join(", ")}.`);
}

const writeCursor = (run: { readonly createdAt: number; readonly id: string }) =>
  Buffer.from(`${run.createdAt}:${run.id}`).toString("base64url");

function readCursor(cursor: string): { readonly createdAt: number; readonly id: string } {
  const [createdAt = "", id, ...rest] = Buffer.from(cursor, "base64url").toString().split(":");
  if (id !== undefined && isUuid(id) && /^\d{1,15}$/.test(createdAt) && rest.length === 0)
    return { createdAt: Number(createdAt), id };
  throw new InvalidInputError("runs({ cursor }) must be the `next` of another page.");
}
