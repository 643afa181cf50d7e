/** Checks that every held slot has a holder, and that every run that waits for one will be admitted. */
import { laneOf } from "../../core/limits/lane.js";
import type { AuditedRun, Store } from "../../store/contract/store.js";
import type { Difference } from "./difference.js";

const slotsPerPage = 500;

export async function* leftOverSlots(store: Store): AsyncGenerator<Difference> {
  let afterRunId: string | null = null;
  for (;;) {
    const page: Awaited<ReturnType<typeof store.limits.slots>> = await store.limits.slots({ afterRunId }, slotsPerPage);
    const tasks = new Map((await store.tasks(page.map(({ runId }) => runId))).map((task) => [task.runId, task]));
    for (const { runId, lane, owner, epoch } of page) {
      const task = tasks.get(runId);
      const isHeld = task !== undefined && (owner === null || (task.owner === owner && task.epoch === epoch));
      if (isHeld) continue;
      const { limit, key } = laneOf(lane);
      const text = `Run ${runId} holds a slot of the limit "${limit}" (key "${key}") although ${task === undefined ? "it has ended" : "the worker that took it does not execute the run"}.`;
      yield { kind: "slot.left_over", runId, log: null, table: { lane, owner, epoch }, text };
    }
    const last = page.at(-1);
    if (last === undefined || page.length < slotsPerPage) return;
    afterRunId = last.runId;
  }
}

export async function* tasksWithoutClass(store: Store, rows: readonly AuditedRun[]): AsyncGenerator<Difference> {
  const classIds = new Set(rows.flatMap(({ task }) => task?.classId ?? []));
  if (classIds.size === 0) return;
  const existing = new Set((await store.limits.classes({ ids: [...classIds] }, classIds.size)).map(({ id }) => id));
  for (const { id: runId, task } of rows) {
    if (task?.classId === undefined || existing.has(task.classId)) continue;
    const text = `Run ${runId} waits in a class of limits that does not exist, so it is never admitted.`;
    yield { kind: "task.class_missing", runId, log: null, table: { classId: task.classId }, text };
  }
}
