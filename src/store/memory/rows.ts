/** The rows of the memory store: one map for each table of the SQL stores, and one for each unique key. */

import type { GatheredItem } from "../contract/gatherings.js";
import type {
  CursorRow,
  Fence,
  InboxRow,
  OccurrenceRecord,
  RunRecord,
  ScheduleApp,
  ScheduleRecord,
  SeenRun,
  StoredEvent,
  WorkerRecord,
  WorkflowRecord,
} from "../contract/store.js";
import { MemoryClasses } from "./classes.js";
import { MemorySlots } from "./slots.js";
import type { MemoryRun, MemoryTask } from "./task.js";
import { TaskQueues } from "./task-queues.js";

export class MemoryRows {
  readonly runs = new Map<string, MemoryRun>();
  readonly tasks = new Map<string, MemoryTask>();
  readonly events = new Map<string, StoredEvent[]>();
  readonly inboxes = new Map<string, InboxRow[]>();
  readonly cursors = new Map<string, Map<string, CursorRow>>();
  readonly workers = new Map<string, WorkerRecord>();
  readonly workflows = new Map<string, WorkflowRecord>();
  readonly schedules = new Map<string, ScheduleRecord>();
  readonly occurrences = new Map<string, OccurrenceRecord>();
  readonly scheduleApps = new Map<string, ScheduleApp>();
  /** The run that gathers, by the id of the gathering. */
  readonly gatherings = new Map<string, string>();
  /** By the id of the call. */
  readonly gathered = new Map<string, GatheredItem>();
  readonly startKeys = new Map<string, MemoryRun>();
  readonly heroKeys = new Map<string, MemoryRun>();
  readonly taskQueues = new TaskQueues();
  #taskCount = 0;
  readonly slots = new MemorySlots();
  readonly classes = new MemoryClasses();
  /** By run: the instant by which it must begin. */
  readonly startDeadlines = new Map<string, number>();

  /** The number of the next task. */
  nextOrder(): number {
    this.#taskCount += 1;
    return this.#taskCount;
  }

  /** Whether the run has a task and is as the sender of a message has seen it. */
  isAsSeen(runId: string, { pendingMessages, lastEvent }: SeenRun): boolean {
    const isSameLog = lastEvent === null || (this.events.get(runId)?.length ?? 0) === lastEvent;
    return this.tasks.get(runId)?.pendingMessages === pendingMessages && isSameLog;
  }

  /** Whether the worker is live and has this epoch. */
  isFenceValid(fence: Fence): boolean {
    const worker = this.workers.get(fence.workerId);
    return worker?.live === true && worker.epoch === fence.epoch;
  }

  toRecord(run: MemoryRun): RunRecord {
    const { heroKey: _, ...record } = run;
    return { ...record, status: this.tasks.get(run.id)?.state === "owned" ? "running" : run.status };
  }
}

export const startKeyOf = (run: { readonly workflow: string; readonly startKey: string | null }) =>
  `${run.workflow}\u0000${run.startKey}`;
