/** The schedules of the memory store. */
import type {
  NewRun,
  OccurrencePosition,
  OccurrenceRecord,
  PendingCount,
  RefusedStart,
  ScheduleApp,
  ScheduleBatch,
  ScheduleRecord,
  ScheduleResult,
  Schedules,
} from "../contract/store.js";
import { compareText } from "../shared/compare-text.js";
import { type HintEmitter, hintsOfStarts } from "../shared/hint-emitter.js";
import { hintsOfScheduleChanges } from "../shared/schedule-hints.js";
import type { MemoryRows } from "./rows.js";

export interface MemorySchedulesPort {
  readonly rows: MemoryRows;
  readonly hints: HintEmitter;
  now(): number;
  /** Creates these runs, or none of them if some are refused. */
  start(starts: readonly NewRun[], at: number): readonly RefusedStart[];
}

export class MemorySchedules implements Schedules {
  readonly #port: MemorySchedulesPort;

  constructor(port: MemorySchedulesPort) {
    this.#port = port;
  }

  async due({ setKeys, limit }: { readonly setKeys: readonly string[]; readonly limit: number }) {
    const now = this.#port.now();
    const due = this.#ofSets(setKeys)
      .filter(({ nextAt }) => nextAt !== null && nextAt <= now)
      .sort((a, b) => (a.nextAt as number) - (b.nextAt as number) || compareText(a.name, b.name));
    return due.length === 0 ? null : { now, schedules: due.slice(0, limit) };
  }

  async nextAt(setKeys: readonly string[]): Promise<number | null> {
    return this.nextAtNow(setKeys);
  }

  nextAtNow(setKeys: readonly string[]): number | null {
    const instants = this.#ofSets(setKeys).flatMap(({ nextAt }) => (nextAt === null ? [] : [nextAt]));
    return instants.length === 0 ? null : Math.min(...instants);
  }

  #ofSets(setKeys: readonly string[]): ScheduleRecord[] {
    return [...this.#port.rows.schedules.values()].filter(({ setKey }) => setKeys.includes(setKey));
  }

  async byName(names: readonly string[]): Promise<readonly ScheduleRecord[]> {
    return [...new Set(names)].sort(compareText).flatMap((name) => this.#port.rows.schedules.get(name) ?? []);
  }

  async list({ after, limit, app }: { readonly after: string | null; readonly limit: number; readonly app?: string }) {
    return [...this.#port.rows.schedules.values()]
      .filter((row) => (after === null || compareText(row.name, after) > 0) && (app === undefined || row.app === app))
      .sort((a, b) => compareText(a.name, b.name))
      .slice(0, limit);
  }

  async pending({ names, kinds, limit }: Parameters<Schedules["pending"]>[0]): Promise<readonly OccurrenceRecord[]> {
    return [...this.#port.rows.occurrences.values()]
      .filter(({ schedule, pending }) => names.includes(schedule) && pending !== null && kinds.includes(pending))
      .sort((a, b) => compareText(a.schedule, b.schedule) || oldestFirst(a, b))
      .slice(0, limit);
  }

  async pendingCounts(names: readonly string[]): Promise<readonly PendingCount[]> {
    const counts = new Map<string, PendingCount>();
    for (const { schedule, pending } of this.#port.rows.occurrences.values()) {
      if (pending === null || !names.includes(schedule)) continue;
      const key = `${schedule}\u0000${pending}`;
      counts.set(key, { schedule, pending, count: (counts.get(key)?.count ?? 0) + 1 });
    }
    return [...counts.values()].sort(
      (a, b) => compareText(a.schedule, b.schedule) || compareText(a.pending, b.pending),
    );
  }

  async occurrences({ schedule, before, limit }: Parameters<Schedules["occurrences"]>[0]) {
    return [...this.#port.rows.occurrences.values()]
      .filter((row) => row.schedule === schedule && (before === null || oldestFirst(row, before) < 0))
      .sort((a, b) => oldestFirst(b, a))
      .slice(0, limit);
  }

  async occurrencesById(ids: readonly string[]): Promise<readonly OccurrenceRecord[]> {
    return [...new Set(ids)].flatMap((id) => this.#port.rows.occurrences.get(id) ?? []);
  }

  async app(name: string): Promise<ScheduleApp | null> {
    return this.#port.rows.scheduleApps.get(name) ?? null;
  }

  async setKeysInForce(): Promise<readonly string[]> {
    return [...this.#port.rows.scheduleApps.values()].map(({ setKey }) => setKey);
  }

  async apply(batch: ScheduleBatch): Promise<ScheduleResult> {
    const { changes, app } = batch;
    const { rows, hints } = this.#port;
    if (app !== undefined && (rows.scheduleApps.get(app.row.app)?.revision ?? null) !== app.expectedRevision)
      return { kind: "app changed" };
    const at = this.#port.now();
    const applied = changes.filter(
      ({ name, expectedRevision, row }) =>
        (rows.schedules.get(name)?.revision ?? null) === expectedRevision && (expectedRevision ?? row) !== null,
    );
    const starts = applied.flatMap((change) => change.starts);
    const refused = this.#port.start(starts, at);
    if (refused.length > 0) return { kind: "refused", refused };
    if (app !== undefined)
      rows.scheduleApps.set(app.row.app, { ...app.row, revision: (app.expectedRevision ?? 0) + 1 });
    for (const { name, row, expectedRevision, occurrences } of applied) {
      if (row === null) rows.schedules.delete(name);
      else
        rows.schedules.set(name, {
          ...row,
          // As in the SQL stores, the creation time is never overwritten.
          createdAt: rows.schedules.get(name)?.createdAt ?? row.createdAt,
          revision: expectedRevision === null ? row.revision : expectedRevision + 1,
        });
      for (const occurrence of occurrences) {
        const existing = rows.occurrences.get(occurrence.id);
        const { schedule, incarnation, scheduledFor } = existing ?? occurrence;
        rows.occurrences.set(occurrence.id, { ...occurrence, schedule, incarnation, scheduledFor });
      }
    }
    hints.emit([...hintsOfStarts(starts), ...hintsOfScheduleChanges(applied, batch)]);
    return { kind: "applied", at, names: new Set(applied.map(({ name }) => name)) };
  }

  async deleteOccurrences({ before, limit }: { readonly before: number; readonly limit: number }): Promise<number> {
    const old = [...this.#port.rows.occurrences.values()]
      .filter(({ at, pending }) => at < before && pending === null)
      .sort((a, b) => a.at - b.at)
      .slice(0, limit);
    for (const { id } of old) this.#port.rows.occurrences.delete(id);
    return old.length;
  }
}

const oldestFirst = (a: OccurrencePosition, b: OccurrencePosition) =>
  a.scheduledFor - b.scheduledFor || compareText(a.id, b.id);
