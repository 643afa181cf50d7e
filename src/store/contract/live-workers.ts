/** Which workers are live, and whether a worker can execute a task. */
import type { Runtime } from "../../runtime/runtime.js";
import type { RunRecord, Store, TaskRecord, WorkerRecord } from "./store.js";

/** Workers whose lease has not expired. A worker that was killed stays marked `live` until it is reaped. */
export async function findLiveWorkers(store: Store, runtime: Runtime): Promise<WorkerRecord[]> {
  const [workers, now] = await Promise.all([store.workers(), store.now()]);
  return workers.filter((worker) => isWorkerLive(worker, now, runtime));
}

/**
 * A lease has expired only if both the store's and this process's clock say so: in tests the store's clock may be
 * virtual and far ahead of the real time that heartbeats use.
 */
export function isWorkerLive(
  { live, heartbeatAt, leaseMs }: Pick<WorkerRecord, "live" | "heartbeatAt" | "leaseMs">,
  now: number,
  runtime: Runtime,
): boolean {
  return live && Math.min(now, runtime.now()) - heartbeatAt <= leaseMs;
}

/** Whether the worker has registered the task's route in the version of the run. */
export function canExecute({ routes }: WorkerRecord, task: TaskRecord, run: RunRecord): boolean {
  return routes.some(({ workflow, version }) => workflow === task.route && version === run.version);
}
