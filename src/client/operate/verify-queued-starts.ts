/** Checks that runs which wait for the end of another run (`onConflict`) will be let go by it. */
import { dataOf } from "../../core/run/event.js";
import { decodeMessage } from "../../core/run/message.js";
import type { RunState } from "../../core/run/state.js";
import type { AuditedRun, InboxRow, RunRecord, Store } from "../../store/contract/store.js";
import { findRunBefore, originOf } from "../start/start-origin.js";
import type { Findings } from "./difference.js";

/** Whether the row says that the run waits for another one. */
export const isQueued = (run: RunRecord): boolean => originOf(run).after !== undefined;

export async function checkQueuedStart(
  store: Store,
  { row, run }: { readonly row: AuditedRun; readonly run: RunRecord },
  state: RunState | null,
  findings: Findings,
): Promise<void> {
  const { task } = row;
  const isHeld = task !== null && task.state === "parked" && task.dueAt === null && task.pendingMessages === 0;
  if (!isHeld || state === null || state.startedAt !== null || !isQueued(run)) return;
  if (state.paused !== null && state.becameDueWhilePaused) return;
  const before = await findRunBefore(store, run);
  if (before === null)
    findings.add("task.stuck", `waits for the end of run ${originOf(run).after}, which has ended.`, { table: task });
  else if (!(await knowsOf(store, before.id, row.id)))
    findings.add("task.stuck", `waits for the end of run ${before.id}, whose log does not have it.`, { table: task });
}

/** Whether the log or the inbox of the run says that the other run waits for its end. */
async function knowsOf(store: Store, before: string, waiting: string): Promise<boolean> {
  // The inbox first: a message that its owner moves to the log meanwhile is then seen twice, not missed.
  const inbox = (await store.inbox([before])).get(before) ?? [];
  const log = (await store.logs([before])).get(before) ?? [];
  return (
    log.some((event) => event.type === "run.start_queued" && dataOf(event, "run.start_queued").run === waiting) ||
    inbox.some((row) => isQueueStart(row, waiting))
  );
}

function isQueueStart(row: InboxRow, waiting: string): boolean {
  try {
    const command = decodeMessage(row);
    return command?.type === "queueStart" && command.run === waiting;
  } catch {
    return false;
  }
}
