/** All that the memory store keeps: what are tables elsewhere are maps here. */
import type {
  CursorRow,
  Fence,
  InboxRow,
  RunRecord,
  StoredEvent,
  WorkerRecord,
  WorkflowRecord,
} from "../contract/store.js";
import type { Run, Task } from "./task.js";
import { Shelves } from "./task-queues.js";

export class MemoryRows {
  readonly runs = new Map<string, Run>();
  readonly tasks = new Map<string, Task>();
  readonly events = new Map<string, StoredEvent[]>();
  readonly inboxes = new Map<string, InboxRow[]>();
  readonly cursors = new Map<string, Map<string, CursorRow>>();
  readonly workers = new Map<string, Omit<WorkerRecord, "owned">>();
  readonly workflows = new Map<string, WorkflowRecord>();
  readonly startKeys = new Map<string, Run>();
  readonly heroKeys = new Map<string, Run>();
  readonly shelves = new Shelves();

  /** Whether the worker is live, and in this epoch. */
  holds(fence: Fence): boolean {
    const worker = this.workers.get(fence.workerId);
    return worker?.live === true && worker.epoch === fence.epoch;
  }

  record(run: Run): RunRecord {
    const { heroKey: _, ...record } = run;
    return { ...record, status: this.tasks.get(run.id)?.state === "owned" ? "running" : run.status };
  }
}

export const startKeyOf = (run: { readonly workflow: string; readonly startKey: string | null }) =>
  `${run.workflow}\u0000${run.startKey}`;
