/**
 * The schedules that an application declares in its code. Each set of definitions has a key and an instant at which it was
 * first seen. In force is, of the sets of live workers, the one that was first seen last: so the old workers of a rolling
 * release change nothing, and a roll-back brings the old set back when the last new worker has ended.
 */
import { StoreError } from "../../core/errors/errors.js";
import { sha256Hex } from "../../core/naming/ids.js";
import { nextInstant } from "../../core/schedule/instants.js";
import { newScheduleState, type ScheduleState, type ScheduleStatus } from "../../core/schedule/schedule-data.js";
import type { Logger } from "../../define/context.js";
import type { ScheduleDefinition } from "../../define/schedule/schedule.js";
import { randomHex } from "../../runtime/random-hex.js";
import type { Runtime } from "../../runtime/runtime.js";
import { findLiveWorkers } from "../../store/contract/live-workers.js";
import type { ScheduleApp, ScheduleChange, ScheduleRecord, Store } from "../../store/contract/store.js";
import { changeOf, dueAtOf, isDue, toStoredSchedule } from "./stored-schedule.js";

interface KnownSet {
  readonly key: string;
  readonly firstSeenAt: number;
}

export interface ScheduleSetOptions {
  readonly store: Store;
  readonly log: Logger;
  readonly runtime: Runtime;
  readonly app: string;
  readonly definitions: readonly ScheduleDefinition[];
}

const schedulesPerPage = 500;
/** Older sets are forgotten; one that comes back after that counts as new. */
const keptSets = 50;
const maxAttempts = 20;

export class ScheduleSet {
  readonly key: string;
  readonly #options: ScheduleSetOptions;
  /** The names that were reported as belonging to another owner. */
  readonly #reportedNames = new Set<string>();

  constructor(options: ScheduleSetOptions) {
    this.#options = options;
    const hashes = options.definitions.map(({ name, hash }) => `${name}\u0000${hash}`).sort();
    this.key = sha256Hex(JSON.stringify([options.app, hashes])).slice(0, 32);
  }

  /** Makes this set the one in force, unless that of another live worker is newer. Returns whether it is in force. */
  async claim(): Promise<boolean> {
    const { store, runtime, app } = this.#options;
    for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
      const [row, workers, now] = await Promise.all([
        store.schedules.app(app),
        findLiveWorkers(store, runtime),
        store.now(),
      ]);
      const sets = this.#withOwnSet(row, now);
      const liveKeys = new Set([this.key, ...workers.flatMap(({ scheduleSet }) => scheduleSet ?? [])]);
      const inForce = sets.findLast(({ key }) => liveKeys.has(key)) as KnownSet;
      const isInForce = inForce.key === this.key;
      if (await this.#write(row, sets, isInForce, now)) return isInForce;
    }
    throw new StoreError(
      `The schedules of application "${app}" kept changing while they were registered; start again.`,
      {
        transient: true,
      },
    );
  }

  /** The sets in the order in which they were first seen. */
  #withOwnSet(row: ScheduleApp | null, now: number): readonly KnownSet[] {
    const sets = row === null ? [] : (JSON.parse(row.sets) as KnownSet[]);
    if (sets.some(({ key }) => key === this.key)) return sets;
    // The clock of the database may have gone back, but this set is newer than the others.
    const firstSeenAt = Math.max(now, (sets.at(-1)?.firstSeenAt ?? 0) + 1);
    return [...sets, { key: this.key, firstSeenAt }].slice(-keptSets);
  }

  /** Returns false if something has changed meanwhile, so that all must be read again. */
  async #write(row: ScheduleApp | null, sets: readonly KnownSet[], isInForce: boolean, now: number): Promise<boolean> {
    const { store, app } = this.#options;
    const changes = isInForce ? await this.#changes(now) : [];
    const newRow: ScheduleApp = {
      app,
      setKey: isInForce ? this.key : (row?.setKey ?? ""),
      revision: 0,
      sets: JSON.stringify(sets),
    };
    const isSame = row !== null && row.setKey === newRow.setKey && row.sets === newRow.sets;
    if (isSame && changes.length === 0) return true;
    const result = await store.schedules.apply({
      changes,
      app: { row: newRow, expectedRevision: row?.revision ?? null },
    });
    return result.kind === "applied" && result.names.size === changes.length;
  }

  async #changes(now: number): Promise<ScheduleChange[]> {
    const { definitions } = this.#options;
    const [existing, ofApp] = await Promise.all([this.#readDeclared(), this.#readOwn()]);
    const declaredNames = new Set(definitions.map(({ name }) => name));
    return [
      ...definitions.flatMap((definition) => {
        const record = existing.get(definition.name);
        if (record === undefined) return [this.#create(definition, now)];
        if (!this.#isOwn(record)) return [];
        return this.#update(record, definition, now) ?? [];
      }),
      ...ofApp.filter(({ name }) => !declaredNames.has(name)).flatMap((record) => this.#retire(record) ?? []),
    ];
  }

  async #readDeclared(): Promise<ReadonlyMap<string, ScheduleRecord>> {
    const { store, definitions } = this.#options;
    const records: ScheduleRecord[] = [];
    for (let from = 0; from < definitions.length; from += schedulesPerPage) {
      const names = definitions.slice(from, from + schedulesPerPage).map(({ name }) => name);
      records.push(...(await store.schedules.byName(names)));
    }
    return new Map(records.map((record) => [record.name, record]));
  }

  async #readOwn(): Promise<readonly ScheduleRecord[]> {
    const { store, app } = this.#options;
    const records: ScheduleRecord[] = [];
    for (;;) {
      const page = await store.schedules.list({ after: records.at(-1)?.name ?? null, limit: schedulesPerPage, app });
      records.push(...page);
      if (page.length < schedulesPerPage) return records;
    }
  }

  #isOwn({ name, app }: ScheduleRecord): boolean {
    if (app === this.#options.app) return true;
    if (!this.#reportedNames.has(name)) {
      this.#reportedNames.add(name);
      const owner = app === null ? "was put by the API" : `belongs to application "${app}"`;
      this.#options.log.error(
        `Schedule "${name}" of application "${this.#options.app}" is not registered, because a schedule of this name ${owner}; rename one of them.`,
      );
    }
    return false;
  }

  #create({ name, data, hash }: ScheduleDefinition, now: number): ScheduleChange {
    const row = newScheduleRecord(
      { name, app: this.#options.app, setKey: this.key, hash, data },
      now,
      this.#options.runtime,
    );
    return { name, expectedRevision: null, row, occurrences: [], starts: [] };
  }

  /** A changed rule begins now and does not fire for the past. Otherwise what is due stays due. */
  #update(record: ScheduleRecord, { hash, data, name }: ScheduleDefinition, now: number): ScheduleChange | null {
    const isRetired = record.status === "retired";
    if (record.hash === hash && record.setKey === this.key && !isRetired) return null;
    return redefine(toStoredSchedule(record), { name, hash, setKey: this.key, data }, now);
  }

  #retire(record: ScheduleRecord): ScheduleChange | null {
    if (record.status === "retired" && record.setKey === this.key) return null;
    const changes = { status: "retired", setKey: this.key, nextAt: null } as const;
    return changeOf(toStoredSchedule(record), changes);
  }
}

/** A new schedule. It fires for no instant that has passed. */
export function newScheduleRecord(
  {
    name,
    app,
    setKey,
    hash,
    data,
  }: Pick<ScheduleRecord, "name" | "app" | "setKey" | "hash"> & Pick<ScheduleDefinition, "data">,
  now: number,
  runtime: Runtime,
): ScheduleRecord {
  const nextFor = nextInstant(data.timing, now);
  return {
    name,
    app,
    setKey,
    hash,
    incarnation: randomHex(runtime, 16),
    // Greater than any revision of an earlier schedule of this name, which a process may have read before it was deleted.
    revision: now,
    status: nextFor === null ? "ended" : "active",
    nextFor,
    nextAt: nextFor === null ? null : dueAtOf(name, data, nextFor),
    workflow: data.workflow,
    definition: JSON.stringify(data),
    state: JSON.stringify(newScheduleState),
    createdAt: now,
  };
}

/** Gives a schedule another definition; one that was retired is in force again. */
export function redefine(
  schedule: ReturnType<typeof toStoredSchedule>,
  { name, hash, setKey, data }: Pick<ScheduleRecord, "name" | "hash" | "setKey"> & Pick<ScheduleDefinition, "data">,
  now: number,
): ScheduleChange {
  const { record, state, data: before } = schedule;
  const isSameRule = JSON.stringify(before.timing) === JSON.stringify(data.timing);
  const nextFor = (isSameRule ? record.nextFor : null) ?? nextInstant(data.timing, now);
  const isOver = nextFor === null || (data.maxRuns !== null && state.accepted >= data.maxRuns);
  const status: ScheduleStatus = state.pause !== undefined ? "paused" : isOver ? "ended" : "active";
  const wasRetired = record.status === "retired";
  const newState: ScheduleState = wasRetired ? { ...state, idleUntil: { at: now, outcome: "retired" } } : state;
  const dueAt = status === "active" && nextFor !== null ? dueAtOf(name, data, nextFor) : null;
  const nextAt = status === "paused" ? (state.pause?.until ?? null) : dueAt;
  return changeOf(schedule, {
    hash,
    setKey,
    data,
    status,
    nextFor: isOver && status !== "paused" ? null : nextFor,
    // What waited while it was retired may begin.
    nextAt: wasRetired || isDue(schedule, now) ? now : nextAt,
    state: newState,
  });
}
