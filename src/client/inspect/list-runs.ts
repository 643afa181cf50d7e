/** Lists runs, newest first, a page at a time. */
import { InvalidInputError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { isUuid } from "../../core/naming/ids.js";
import { checkName } from "../../core/naming/names.js";
import type { HeroRef } from "../../define/hero.js";
import { heroId } from "../../define/hero.js";
import { type AnyWorkflow, nameOf } from "../../define/resolve.js";
import type { RunStatus, Store } from "../../store/contract/store.js";
import { parseInstant } from "../start/new-run.js";
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
  /** How many runs a page has, 1 to 1,000. Default 50. */
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
  "limit",
  "cursor",
] satisfies (keyof RunsFilter)[]);

const maxPageSize = 1_000;

export async function listRuns(
  store: Store,
  filter: RunsFilter,
): Promise<{ readonly runs: RunInfo[]; readonly next: string | null }> {
  checkOptions("runs()", filter, runsFilterKeys, "filter");
  const limit = filter.limit ?? 50;
  if (!Number.isInteger(limit) || limit < 1 || limit > maxPageSize)
    throw new InvalidInputError(`runs({ limit }) must be between 1 and ${maxPageSize}, not ${limit}.`);
  const { workflow, hero, idempotencyKey: key, cursor } = filter;
  const rows = await store.runs({
    limit: limit + 1,
    ...(workflow === undefined ? {} : { workflow: nameOf(workflow) }),
    ...(filter.status === undefined ? {} : { status: checkStatus(filter.status) }),
    ...(filter.active === undefined ? {} : { active: filter.active }),
    ...(hero === undefined ? {} : { heroType: hero.type, heroId: heroId(hero) }),
    ...(key === undefined ? {} : { startKey: checkName("idempotency key", key) }),
    ...(filter.tag === undefined ? {} : { tag: filter.tag }),
    ...(filter.parentId === undefined ? {} : { parentId: filter.parentId }),
    ...(filter.createdAfter === undefined ? {} : { createdAfter: parseInstant("createdAfter", filter.createdAfter) }),
    ...(filter.createdBefore === undefined
      ? {}
      : { createdBefore: parseInstant("createdBefore", filter.createdBefore) }),
    ...(cursor === undefined ? {} : { after: readCursor(cursor) }),
  });
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    runs: page.map((run) => toRunInfo(run)),
    next: rows.length > limit && last !== undefined ? writeCursor(last) : null,
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
  const [createdAt, id] = Buffer.from(cursor, "base64url").toString().split(":");
  if (id !== undefined && isUuid(id) && Number.isFinite(Number(createdAt))) return { createdAt: Number(createdAt), id };
  throw new InvalidInputError("runs({ cursor }) must be the `next` of another page.");
}
