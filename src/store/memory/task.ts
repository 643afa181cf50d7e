/** A run and its task, as the memory store keeps them. */
import type { ActiveStatus, RunRecord, TaskRecord, TerminalStatus } from "../contract/store.js";

export interface MemoryRun extends Omit<RunRecord, "status"> {
  status: ActiveStatus | TerminalStatus;
  heroKey: string | null;
  output: string | null;
  error: string | null;
  waiting: string | null;
  startedAt: number | null;
  finishedAt: number | null;
}

export interface MemoryTask {
  readonly run: MemoryRun;
  /** At birth the run's workflow and priority; a park may change them. */
  route: string;
  priority: number;
  state: TaskRecord["state"];
  dueAt: number | null;
  owner: string | null;
  epoch: number | null;
  deliveries: number;
  pendingMessages: number;
  isFresh: boolean;
  /** Raised at every change of state or due time: heap entries of an older stamp are stale. */
  revision: number;
}
