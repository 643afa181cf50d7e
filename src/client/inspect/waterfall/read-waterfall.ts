/** Reads what the waterfall of a run is computed from: at most one window of its log. */
import { RunNotFoundError } from "../../../core/errors/errors.js";
import { dagOf, type FrozenDag } from "../../../core/graph/frozen-dag.js";
import { dataOf, type StoredEvent } from "../../../core/run/event.js";
import type { RunRecord, Store } from "../../../store/contract/store.js";
import { isReadable, registrationOf } from "../../start/registration.js";
import { checkEventsReadable, rethrowAsRunDamage } from "../damaged-data.js";
import { readNextStep } from "../next-step.js";
import type { PlannedNode } from "../nodes.js";
import { readLogPage } from "../run-log.js";
import { type Waterfall, waterfallOf } from "./waterfall.js";

/** The most events that one waterfall is computed from. */
export const maxWindow = 5_000;

export interface WaterfallRequest {
  /** The window begins after the event with this number; undefined: the window ends with the last event. */
  readonly after?: number | undefined;
  /** How many events the window has at most. */
  readonly limit?: number | undefined;
  readonly expand?: string | undefined;
}

/** @throws RunNotFoundError if there is no such run */
export async function readWaterfall(store: Store, runId: string, request: WaterfallRequest): Promise<Waterfall> {
  const run = await store.run(runId);
  if (run === null) throw new RunNotFoundError(runId);
  const { limit = maxWindow } = request;
  const lastStored = await store.maintenance.questions.lastEventSeq(runId);
  // The terminal event is not stored; it has the number after the last stored event.
  const lastEvent = lastStored + (run.finishedAt === null ? 0 : 1);
  const after = request.after ?? Math.max(0, lastEvent - limit);
  const events = await readLogPage(store, run, { after, limit });
  checkEventsReadable(runId, events);
  const hasLater = (events.at(-1)?.seq ?? after) < lastEvent;
  return rethrowAsRunDamage(runId, async () => {
    const isWhole = after === 0 && !hasLater;
    const [task] = run.startedAt === null && run.finishedAt === null ? await store.tasks([runId]) : [];
    return waterfallOf({
      ...{ run, events, hasLater },
      now: await store.now(),
      dueAt: task?.dueAt ?? null,
      next: isWhole ? await readNextStep(store, run, events) : null,
      declaredNodes: await readDeclaredNodes(store, run, events),
      expand: request.expand ?? null,
    });
  });
}

/** The nodes of the run's own graph, or the steps that its workflow declares; null for a function. */
async function readDeclaredNodes(
  store: Store,
  run: RunRecord,
  events: readonly StoredEvent[],
): Promise<readonly PlannedNode[] | null> {
  const imported = events.findLast(({ type }) => type === "dag.imported");
  const dag = dagOf(run, { importedDag: imported === undefined ? null : dataOf(imported, "dag.imported").dag });
  if (dag !== null) return nodesOfDag(dag);
  const started = events.find(({ type }) => type === "run.started");
  if (started !== undefined && dataOf(started, "run.started").steps === undefined) return null;
  const record = await store.workflow(run.workflow);
  if (record === null || !isReadable(record)) return null;
  return registrationOf(record).nodes;
}

function nodesOfDag({ nodes }: FrozenDag): PlannedNode[] {
  return Object.entries(nodes).map(([id, { name, job, depends_on }]) => ({
    id,
    name,
    kind: job === undefined ? "step" : "job",
    job: job ?? null,
    after: depends_on.map((before) => nodes[before]?.name ?? before),
  }));
}
