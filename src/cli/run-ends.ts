/** Hears of the runs that are brought to their end in this process. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { TerminalStatus } from "../store/contract/store.js";
import type { RunStatusChange } from "../telemetry/publish.js";

export interface RunEnd {
  readonly runId: string;
  readonly status: TerminalStatus;
}

/** @returns stops listening */
export function onRunEnd(listener: (end: RunEnd) => void): () => void {
  const hear = (message: unknown) => {
    const { runId, status } = message as RunStatusChange;
    if (status === "completed" || status === "failed" || status === "canceled") listener({ runId, status });
  };
  subscribe("pawl:run", hear);
  return () => unsubscribe("pawl:run", hear);
}
