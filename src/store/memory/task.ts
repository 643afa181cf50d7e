/** A run and its task as the memory store keeps them. */
import { baseRouteOf, isClassRoute } from "../../core/naming/route.js";
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
  /** Tasks are numbered in the order in which they were created. */
  readonly order: number;
  /** Initially the route of the new run, by default its workflow's name; a park may set another. */
  route: string;
  /** Initially the priority of the run; a park may set another. */
  priority: number;
  state: TaskRecord["state"];
  dueAt: number | null;
  owner: string | null;
  epoch: number | null;
  deliveries: number;
  pendingMessages: number;
  isFresh: boolean;
  /** Incremented at every change of state or due time: a heap entry with an older revision is stale. */
  revision: number;
}

/** The fields of a record for the route of a task, which may be that of a class. */
export const publicRouteOf = (route: string): Pick<TaskRecord, "route" | "classId"> =>
  isClassRoute(route) ? { route: baseRouteOf(route), classId: route } : { route };
