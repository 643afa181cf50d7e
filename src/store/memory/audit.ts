/** The audit of the memory store. It reads the store's own maps. */
import { dueAtOf } from "../../core/limits/order.js";
import type { Audit, AuditedRun, AuditPage, OrphanTable } from "../contract/audit.js";
import type { GatheredItem } from "../contract/gatherings.js";
import type { InboxRow, StoredEvent } from "../contract/store.js";
import { type MemoryRun, type MemoryTask, publicRouteOf } from "./task.js";

export interface AuditedRows {
  readonly runs: ReadonlyMap<string, MemoryRun>;
  readonly tasks: ReadonlyMap<string, MemoryTask>;
  readonly events: ReadonlyMap<string, readonly StoredEvent[]>;
  readonly inboxes: ReadonlyMap<string, readonly InboxRow[]>;
  readonly cursors: ReadonlyMap<string, ReadonlyMap<string, unknown>>;
  readonly gathered: ReadonlyMap<string, GatheredItem>;
  readonly startDeadlines: ReadonlyMap<string, number>;
}

export class MemoryAudit implements Audit {
  readonly #rows: AuditedRows;

  constructor(rows: AuditedRows) {
    this.#rows = rows;
  }

  async runs(page: AuditPage): Promise<readonly AuditedRun[]> {
    return this.#auditRuns(pageOf(this.#rows.runs.keys(), page));
  }

  async runsById(ids: readonly string[]): Promise<readonly AuditedRun[]> {
    return this.#auditRuns(ids);
  }

  async orphanedRunIds(table: OrphanTable, page: AuditPage): Promise<readonly string[]> {
    const { runs, tasks, events, inboxes, cursors, gathered, startDeadlines } = this.#rows;
    // A SQL store has no rows where this store has an empty list, so an empty list is no orphan here either.
    const nonEmptyKeys = (lists: ReadonlyMap<string, readonly unknown[]>) =>
      [...lists].flatMap(([id, list]) => (list.length > 0 ? id : []));
    const ids = {
      tasks: () => [...tasks.keys()],
      events: () => nonEmptyKeys(events),
      inbox: () => nonEmptyKeys(inboxes),
      cursors: () => [...cursors.keys()],
      gathered: () => [...new Set([...gathered.values()].map(({ runId }) => runId))],
      start_deadlines: () => [...startDeadlines.keys()],
    }[table]();
    const parentRows = table === "inbox" ? tasks : runs;
    return pageOf(
      ids.filter((id) => !parentRows.has(id)),
      page,
    );
  }

  #auditRuns(ids: readonly string[]): AuditedRun[] {
    return ids.flatMap((id) => {
      const run = this.#rows.runs.get(id);
      return run === undefined ? [] : this.#auditRun(run);
    });
  }

  #auditRun(run: MemoryRun): AuditedRun {
    const { id, workflow, version, heroType, heroId, heroKey, startKey } = run;
    const { parentId, parentNode, parentIndex, parentAttempt, status, startedAt, finishedAt } = run;
    const log = this.#rows.events.get(id) ?? [];
    return {
      ...{ id, workflow, version, heroType, heroId, heroKey, startKey },
      ...{ parentId, parentNode, parentIndex, parentAttempt },
      status,
      startedAt,
      finishedAt,
      task: this.#taskOf(id),
      inboxRows: this.#rows.inboxes.get(id)?.length ?? 0,
      lastEventSeq: log.at(-1)?.seq ?? 0,
      bytes: run.input.length + log.length * 100,
    };
  }

  #taskOf(id: string): AuditedRun["task"] {
    const task = this.#rows.tasks.get(id);
    if (task === undefined) return null;
    const { route, state, dueAt, owner, epoch, deliveries, pendingMessages } = task;
    const fields = { version: task.run.version, state, owner, epoch, deliveries, pendingMessages };
    return { ...publicRouteOf(route), ...fields, dueAt: dueAt === null ? null : dueAtOf(dueAt) };
  }
}

function pageOf(ids: Iterable<string>, { after, limit }: AuditPage): string[] {
  return [...ids]
    .filter((id) => after === null || id > after)
    .sort()
    .slice(0, limit);
}
