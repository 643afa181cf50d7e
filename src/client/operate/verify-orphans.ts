/** Finds orphaned rows, whose run or task does not exist, and unreadable rows of workers and workflows. */
import type { OrphanTable, Store } from "../../store/contract/store.js";
import { isReadable } from "../start/registration.js";
import type { Difference, DifferenceKind } from "./difference.js";

const idsPerPage = 500;

const orphanKinds: readonly { readonly table: OrphanTable; readonly kind: DifferenceKind; readonly what: string }[] = [
  { table: "tasks", kind: "task.without_run", what: "has a task" },
  { table: "events", kind: "log.without_run", what: "has a log" },
  { table: "cursors", kind: "cursor.without_run", what: "has a cursor" },
  { table: "gathered", kind: "gathered.without_run", what: "has gathered starts" },
  { table: "start_deadlines", kind: "start_deadline.without_run", what: "has a start deadline" },
  { table: "inbox", kind: "inbox.without_task", what: "has messages in its inbox" },
];

export async function* orphanedRows(store: Store): AsyncGenerator<Difference> {
  for (const { table, kind, what } of orphanKinds) {
    let after: string | null = null;
    for (;;) {
      const page: readonly string[] = await store.maintenance.audit.orphanedRunIds(table, { after, limit: idsPerPage });
      const existingIds = new Set((await store.maintenance.audit.runsById(page)).map(({ id }) => id));
      for (const runId of page) {
        const problem = existingIds.has(runId) ? "has no task that would read them" : "does not exist";
        yield { kind, runId, log: null, table, text: `Run ${runId} ${what} but ${problem}.` };
      }
      const last = page.at(-1);
      if (last === undefined || page.length < idsPerPage) break;
      after = last;
    }
  }
}

export async function* unreadableRows(store: Store): AsyncGenerator<Difference> {
  for (const { name, damage } of await store.workers()) {
    if (damage === undefined) continue;
    const text = `Worker "${name}" has a column "${damage.column}" that cannot be read: ${damage.problem}.`;
    yield { kind: "row.unreadable", runId: null, log: null, table: "workers", text };
  }
  for (const workflow of await store.maintenance.workflows()) {
    if (isReadable(workflow)) continue;
    const text = `Workflow "${workflow.name}" has a registration that cannot be read; a worker that has the workflow writes it again when it starts.`;
    yield { kind: "row.unreadable", runId: null, log: null, table: "workflows", text };
  }
}
