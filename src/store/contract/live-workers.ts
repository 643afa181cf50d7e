/** Which workers would execute a task. */
import type { Runtime } from "../../runtime/runtime.js";
import type { RunRecord, Store, TaskRecord, WorkerRecord } from "./store.js";

/** Those that are marked as live and have been heard of lately: one that was killed stays marked until another finds out. */
export async function findLiveWorkers(store: Store, runtime: Runtime): Promise<WorkerRecord[]> {
  const [workers, now] = await Promise.all([store.workers(), store.now()]);
  return workers.filter((worker) => isWorkerLive(worker, now, runtime));
}

/** Silent only if our own clock says so, too: in tests the store's clock goes its own way. */
export function isWorkerLive(
  { live, heartbeatAt, leaseMs }: Pick<WorkerRecord, "live" | "heartbeatAt" | "leaseMs">,
  now: number,
  runtime: Runtime,
): boolean {
  return live && Math.min(now, runtime.now()) - heartbeatAt <= leaseMs;
}

export function canExecute({ routes }: WorkerRecord, task: TaskRecord, run: RunRecord): boolean {
  return routes.some(({ workflow, version }) => workflow === task.route && version === run.version);
}
