/** What can be read about limits in the memory store. */
import { laneRangeOf, type RunClass } from "../../core/limits/lane.js";
import type { LaneState } from "../../core/limits/lane-state.js";
import type { ClassRecord, LaneRecord, Limits, LimitUsage, SlotRecord } from "../contract/limits.js";
import { byTurn, type MemoryClass } from "./classes.js";
import type { MemoryRows } from "./rows.js";
import type { MemorySlot } from "./slots.js";

/** What a lane remembers although no slot is held. */
export type Pace = Pick<LaneState, "pacedUntilUs" | "opensAt"> & { readonly looksAt: number | null };

interface LimitTables {
  readonly rows: MemoryRows;
  readonly clock: () => number;
  readonly paces: ReadonlyMap<string, Pace>;
}

export class MemoryLimitReads {
  readonly #rows: MemoryRows;
  readonly #clock: () => number;
  readonly #classes: ReadonlyMap<string, MemoryClass>;
  readonly #paces: ReadonlyMap<string, Pace>;

  constructor({ rows, clock, paces }: LimitTables) {
    this.#rows = rows;
    this.#clock = clock;
    this.#classes = rows.classes;
    this.#paces = paces;
  }

  async usage(names: readonly string[], cap: number): Promise<readonly LimitUsage[]> {
    return names.map((name) => {
      const counted = this.#slotsIn(laneRangeOf(name)).slice(0, cap);
      const waitingSteps = counted.filter(({ isWaiting }) => isWaiting).length;
      return { name, inUse: counted.length - waitingSteps, waitingSteps, isCapped: counted.length >= cap };
    });
  }

  #slotsIn([from, to]: readonly [string, string]) {
    return this.#rows.slots.all().filter(({ lane }) => lane >= from && lane < to);
  }

  async lanes(limit: string, page: Parameters<Limits["lanes"]>[1]): Promise<readonly LaneRecord[]> {
    const [from, to] = laneRangeOf(limit);
    const opening = [...this.#paces].flatMap(([id, { opensAt }]) => (opensAt === null ? [] : [id]));
    const ids = new Set([...this.#rows.slots.all().map(({ lane }) => lane), ...opening]);
    return [...ids]
      .filter((id) => id >= from && id < to && (page.after === null || id > page.after))
      .filter((id) => page.id === undefined || id === page.id)
      .sort(compare)
      .slice(0, page.limit)
      .map((id) => ({
        id,
        inUse: this.#rows.slots.inUse(id),
        waitingSteps: this.#rows.slots.waiting(id).length,
        opensAt: this.#paces.get(id)?.opensAt ?? null,
      }));
  }

  async slots(of: Parameters<Limits["slots"]>[0], limit: number): Promise<readonly SlotRecord[]> {
    const isAskedFor = ({ runId, lane }: SlotRecord) =>
      "lane" in of
        ? lane === of.lane
        : "runIds" in of
          ? of.runIds.includes(runId)
          : of.afterRunId === null || runId > of.afterRunId;
    const slots = this.#rows.slots.all().filter(isAskedFor).slice(0, limit);
    return slots.map(toSlotRecord);
  }

  async holders(lanes: readonly string[], limit: number): Promise<readonly SlotRecord[]> {
    return lanes.flatMap((lane) => {
      const held = this.#rows.slots.all().filter((slot) => slot.lane === lane && !slot.isWaiting);
      return held
        .sort((a, b) => a.at - b.at)
        .slice(0, limit)
        .map(toSlotRecord);
    });
  }

  async classes(of: Parameters<Limits["classes"]>[0], limit: number): Promise<readonly ClassRecord[]> {
    const isAskedFor = ({ id }: RunClass) =>
      "ids" in of ? of.ids.includes(id) : of.afterId === null || id > of.afterId;
    return [...this.#classes.values()]
      .filter(isAskedFor)
      .sort((a, b) => compare(a.id, b.id))
      .slice(0, limit)
      .map((runClass) => ({ ...runClass }));
  }

  async blockedClasses(on: Parameters<Limits["blockedClasses"]>[0], limit: number): Promise<readonly ClassRecord[]> {
    const ranges =
      "limits" in on
        ? on.limits.map((name) => laneRangeOf(name))
        : "nothing" in on
          ? [["", "\t"] as const]
          : on.lanes.map((lane) => [lane, `${lane}\u0000`] as const);
    const classes = [...this.#classes.values()];
    return ranges.flatMap(([from, to]) =>
      classes
        .filter(({ blockedOn }) => (blockedOn ?? "") >= from && (blockedOn ?? "") < to)
        .sort((a, b) => compare(a.blockedOn ?? "", b.blockedOn ?? "") || byTurn(a, b))
        .slice(0, limit)
        .map((runClass) => ({ ...runClass })),
    );
  }

  async heads({ id, version }: Pick<RunClass, "id" | "version">, limit: number): Promise<readonly string[]> {
    const at = this.#clock();
    const { due } = this.#rows.taskQueues.dequeueDue({ workflow: id, version }, at, limit);
    for (const task of due) this.#rows.taskQueues.enqueue(task, task.dueAt, at);
    return due.map(({ run }) => run.id);
  }

  async waiting(classIds: readonly string[], cap: number): Promise<ReadonlyMap<string, number>> {
    return new Map(classIds.map((id) => [id, Math.min(cap, this.#waitingIn(id))]));
  }

  #waitingIn(classId: string): number {
    let count = 0;
    for (const { route, state } of this.#rows.tasks.values()) if (route === classId && state !== "owned") count += 1;
    return count;
  }
}

const toSlotRecord = ({ rank, units, offeredUntil, isOutOfLine, ...record }: MemorySlot): SlotRecord => record;
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
