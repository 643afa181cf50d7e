/**
 * Checks that every held slot has a holder, and that every run that waits for one will be admitted.
 *
 * Some things look odd and are none: more slots in use than a limit has, because it was lowered; a class without a run, which the
 * next admission deletes; a lane in which nothing is held, which housekeeping deletes; a class that is blocked although its lane
 * has room, which every worker looks for from time to time.
 */
import { laneOf } from "../../core/limits/lane.js";
import { baseRouteOf, routeSeparator } from "../../core/naming/route.js";
import { hasParkedSteps } from "../../core/run/parking-note.js";
import type { ClassRecord, SlotRecord } from "../../store/contract/limits.js";
import type { AuditedRun, RunRecord, Store } from "../../store/contract/store.js";
import type { Difference } from "./difference.js";

const slotsPerPage = 500;
const classesPerPage = 500;

export async function* leftOverSlots(store: Store): AsyncGenerator<Difference> {
  const known = await readNames(store);
  let afterRunId: string | null = null;
  for (;;) {
    const page: readonly SlotRecord[] = await store.limits.slots({ afterRunId }, slotsPerPage);
    const tasks = new Map((await store.tasks(page.map(({ runId }) => runId))).map((task) => [task.runId, task]));
    for (const { runId, lane, owner, epoch, isWaiting } of page) {
      const { limit, key } = laneOf(lane);
      const what = `${isWaiting ? "waits for" : "holds"} a slot of the limit "${limit}" (key "${key}")`;
      const table = { lane, owner, epoch };
      const task = tasks.get(runId);
      if (!known.has(limit))
        yield {
          kind: "slot.limit_missing",
          runId,
          log: null,
          table,
          text: `Run ${runId} ${what}, which does not exist.`,
        };
      if (task !== undefined && (owner === null || (task.owner === owner && task.epoch === epoch))) continue;
      const why = task === undefined ? "it has ended" : "the worker that took it does not execute the run";
      yield { kind: "slot.left_over", runId, log: null, table, text: `Run ${runId} ${what} although ${why}.` };
    }
    const last = page.at(-1);
    if (last === undefined || page.length < slotsPerPage) return;
    afterRunId = last.runId;
  }
}

const readNames = async (store: Store): Promise<ReadonlySet<string>> =>
  new Set((await store.limits.list()).map(({ name }) => name));

/** Of these runs, those of which a step waits for a slot, or has an offer of one, while no worker executes the run. */
export async function readRunsWithParkedSteps(
  store: Store,
  runs: readonly Pick<RunRecord, "id" | "waiting" | "finishedAt">[],
): Promise<ReadonlySet<string>> {
  const ids = runs.flatMap(({ id, waiting, finishedAt }) =>
    finishedAt === null && hasParkedSteps(waiting) ? [id] : [],
  );
  const slots = ids.length === 0 ? [] : await store.limits.slots({ runIds: ids }, Number.MAX_SAFE_INTEGER);
  return new Set(slots.flatMap(({ runId, node, owner }) => (owner === null && node !== "" ? [runId] : [])));
}

/** Finds classes whose runs no admission would take. */
export async function* stuckClasses(store: Store): AsyncGenerator<Difference> {
  let afterId: string | null = null;
  for (;;) {
    const page: readonly ClassRecord[] = await store.limits.classes({ afterId }, classesPerPage);
    // The names are read after the classes: a limit is registered before runs wait for it.
    const known = page.length === 0 ? new Set<string>() : await readNames(store);
    for (const runClass of page) yield* checkClass(runClass, known);
    const last = page.at(-1);
    if (last === undefined || page.length < classesPerPage) return;
    afterId = last.id;
  }
}

function* checkClass(runClass: ClassRecord, known: ReadonlySet<string>): Generator<Difference> {
  const { id, route, lanes, blockedOn } = runClass;
  const subject = `Workflow "${baseRouteOf(id).split(routeSeparator)[0]}" has runs`;
  const missing = lanes.map((lane) => laneOf(lane).limit).filter((limit) => !known.has(limit));
  if (missing.length > 0) {
    const text = `${subject} that wait for the limit "${missing[0]}", which does not exist, so they are never admitted.`;
    yield { kind: "class.limit_missing", runId: null, log: null, table: runClass, text };
  }
  if (blockedOn !== null && !lanes.includes(blockedOn)) {
    const { limit, key } = laneOf(blockedOn);
    const text = `${subject} that are blocked on the limit "${limit}" (key "${key}"), of which they need no slot.`;
    yield { kind: "class.blocked_elsewhere", runId: null, log: lanes, table: blockedOn, text };
  }
  if (baseRouteOf(id) !== route) {
    const text = `${subject} that wait in a class of another workflow or queue, so no worker asks for it.`;
    yield { kind: "class.route", runId: null, log: baseRouteOf(id), table: route, text };
  }
}

export async function* tasksWithoutClass(store: Store, rows: readonly AuditedRun[]): AsyncGenerator<Difference> {
  const classIds = new Set(rows.flatMap(({ task }) => task?.classId ?? []));
  if (classIds.size === 0) return;
  const classes = await store.limits.classes({ ids: [...classIds] }, classIds.size);
  const versions = new Map(classes.map(({ id, version }) => [id, version]));
  for (const { id: runId, task } of rows) {
    if (task?.classId === undefined || versions.get(task.classId) === task.version) continue;
    const why = versions.has(task.classId) ? "is of another version" : "does not exist";
    const text = `Run ${runId} waits in a class of limits that ${why}, so it is never admitted.`;
    yield { kind: "task.class_missing", runId, log: null, table: { classId: task.classId }, text };
  }
}
