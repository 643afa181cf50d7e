import type { RunStatus } from "../store/contract/store.js";

/** Every status a run can have, for options and their completion; the compiler reports a missing one. */
const order: Readonly<Record<RunStatus, number>> = {
  pending: 0,
  running: 1,
  waiting: 2,
  paused: 3,
  completed: 4,
  failed: 5,
  canceled: 6,
};

export const runStatuses = Object.keys(order) as readonly RunStatus[];
