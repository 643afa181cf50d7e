/** Finds the next step of a run of a class when the log has no event of that step yet. */
import { dataOf } from "../../core/run/event.js";
import { type NextStep, nextStep } from "../../core/run/waiting.js";
import type { RunRecord, Store, StoredEvent } from "../../store/contract/store.js";
import { isReadable, registrationOf } from "../start/registration.js";
import { foldLog } from "./damaged-data.js";

/**
 * Returns null if the run has ended, its workflow is no chain, the steps of the workflow are not registered, or the log
 * already has an event of the current step.
 */
export async function readNextStep(
  store: Store,
  run: RunRecord,
  log: readonly StoredEvent[],
): Promise<NextStep | null> {
  if (run.finishedAt !== null || isFunctionRun(log)) return null;
  const record = await store.workflow(run.workflow);
  if (record === null || !isReadable(record)) return null;
  const { nodes, isChain } = registrationOf(record);
  if (nodes === null || !isChain) return null;
  const state = foldLog(run.id, log);
  const [task] = state.startedAt === null ? await store.tasks([run.id]) : [];
  return nextStep(state, nodes, task?.dueAt ?? null);
}

/** Whether the run was started with a function as its code. A function declares no steps, so its next step is unknown. */
function isFunctionRun(log: readonly StoredEvent[]): boolean {
  const startedEvent = log.find(({ type }) => type === "run.started");
  return startedEvent !== undefined && dataOf(startedEvent, "run.started").steps === undefined;
}
