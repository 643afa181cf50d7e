/** Listens for runs that end in this process. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { TerminalStatus } from "../store/contract/store.js";
import type { RunStatusChange } from "../telemetry/publish.js";

export interface RunEnd {
  readonly runId: string;
  readonly status: TerminalStatus;
}

/** @returns a function that stops listening */
export function onRunEnd(listener: (end: RunEnd) => void): () => void {
  const onMessage = (message: unknown) => {
    const { runId, status } = message as RunStatusChange;
    if (status === "completed" || status === "failed" || status === "canceled") listener({ runId, status });
  };
  subscribe("pawl:run", onMessage);
  return () => unsubscribe("pawl:run", onMessage);
}
