/** Whether a worker is well, by its heartbeats. */
import type { Answer } from "../../api/api.js";

export type Worker = Answer<"listWorkers">["workers"][number];

/** `silent`: heartbeats are overdue, and when the lease expires, other workers take its runs. */
export type WorkerState = "live" | "silent" | "gone";

/** Workers send three heartbeats per lease, so half a lease without one is more than a late one. */
export function stateOf({ live, heartbeatAt, leaseMs }: Worker, now: number): WorkerState {
  if (!live) return "gone";
  return now - Date.parse(heartbeatAt) > leaseMs / 2 ? "silent" : "live";
}

/** From here on, people notice that everything in the process waits. */
export const slowLagMs = 200;

export const isSlow = ({ loopLagMs }: Worker): boolean => loopLagMs !== null && loopLagMs >= slowLagMs;

const isBefore = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
export const byName = (a: Worker, b: Worker) => isBefore(a.name, b.name) || isBefore(a.id, b.id);
export const latestFirst = (a: Worker, b: Worker) => isBefore(b.heartbeatAt, a.heartbeatAt);
