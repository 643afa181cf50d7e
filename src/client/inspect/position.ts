/** Where a run of a class is, also when its log has nothing of the step yet that it comes to next. */
import { dataOf } from "../../core/run/event.js";
import { type NextStep, nextStep } from "../../core/run/waiting.js";
import type { RunRecord, Store, StoredEvent } from "../../store/contract/store.js";
import { isReadable, registrationOf } from "../start/registration.js";
import { foldLog } from "./damage.js";

/** null: the workflow is no chain of steps, its code is not known, or the log has the step that the run is at. */
export async function readNextStep(
  store: Store,
  run: RunRecord,
  log: readonly StoredEvent[],
): Promise<NextStep | null> {
  if (run.finishedAt !== null || isFunction(log)) return null;
  const known = await store.workflow(run.workflow);
  if (known === null || !isReadable(known)) return null;
  const { nodes, isChain } = registrationOf(known);
  if (nodes === null || !isChain) return null;
  const state = foldLog(run.id, log);
  const [task] = state.startedAt === null ? await store.tasks([run.id]) : [];
  return nextStep(state, nodes, task?.dueAt ?? null);
}

/** It has begun, and its steps are not declared. */
function isFunction(log: readonly StoredEvent[]): boolean {
  const started = log.find(({ type }) => type === "run.started");
  return started !== undefined && dataOf(started, "run.started").steps === undefined;
}
