/** Builds rows and changes of schedules, and the operations that most of their tests start with. */
import { newScheduleState } from "../../core/schedule/schedule-data.js";
import type {
  NewRun,
  OccurrenceRecord,
  ScheduleApp,
  ScheduleChange,
  ScheduleRecord,
  ScheduleResult,
  Store,
} from "../../store/contract/store.js";
import { batch, event, finish, newId, newRun, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";

type Applied = Extract<ScheduleResult, { kind: "applied" }>;

export function scheduleRow(overrides: Partial<ScheduleRecord> = {}): ScheduleRecord {
  return {
    name: uniqueName("schedule"),
    app: null,
    setKey: uniqueName("set"),
    hash: "h1",
    incarnation: newId(),
    revision: 1,
    status: "active",
    nextFor: null,
    nextAt: null,
    workflow: "report",
    definition: '{"a":"ü"}',
    state: JSON.stringify(newScheduleState),
    createdAt: 1_000,
    ...overrides,
  };
}

export function newOccurrence(
  { name, incarnation }: ScheduleRecord,
  overrides: Partial<OccurrenceRecord> = {},
): OccurrenceRecord {
  const { scheduledFor = 5_000_000 } = overrides;
  return {
    id: newId(),
    schedule: name,
    incarnation,
    scheduledFor,
    scheduledUntil: scheduledFor,
    count: 1,
    outcome: "ran",
    pending: null,
    at: scheduledFor + 10,
    detail: {},
    ...overrides,
  };
}

type Rest = Partial<Pick<ScheduleChange, "occurrences" | "starts">>;

export const creation = (row: ScheduleRecord, rest: Rest = {}): ScheduleChange => ({
  name: row.name,
  expectedRevision: null,
  row,
  occurrences: [],
  starts: [],
  ...rest,
});

/** @param read the row as it was read */
export const update = (
  read: ScheduleRecord,
  changes: Partial<ScheduleRecord> = {},
  rest: Rest = {},
): ScheduleChange => ({
  ...creation({ ...read, ...changes }, rest),
  expectedRevision: read.revision,
});

export const deletion = ({ name, revision }: ScheduleRecord, rest: Rest = {}): ScheduleChange => ({
  name,
  expectedRevision: revision,
  row: null,
  occurrences: [],
  starts: [],
  ...rest,
});

export function scheduleApp(overrides: Partial<ScheduleApp> = {}): ScheduleApp {
  return { app: uniqueName("app"), setKey: "s1", revision: 0, sets: "[]", ...overrides };
}

/** The JSON of the column `schedule` of a run. */
export const runScheduleOf = (name: string): string =>
  JSON.stringify({ name, scheduledFor: 5_000_000, firedAt: 5_000_010, missed: 0 });

export class ScheduleFixture {
  readonly #fixture: Fixture;

  constructor(fixture: Fixture) {
    this.#fixture = fixture;
  }

  /** Applies changes, and expects that they are written. */
  async apply(changes: readonly ScheduleChange[], store: Store = this.#fixture.store): Promise<Applied> {
    const result = await store.schedules.apply({ changes });
    const expected = { kind: "applied", names: new Set(changes.map(({ name }) => name)) };
    this.#fixture.expect(result, "all changes are written").toMatchObject(expected);
    return result as Applied;
  }

  /** Creates a schedule, and returns its row as it is read. */
  async create(overrides: Partial<ScheduleRecord> = {}, rest: Rest = {}): Promise<ScheduleRecord> {
    const row = scheduleRow(overrides);
    await this.apply([creation(row, rest)]);
    return this.read(row.name);
  }

  async find(name: string, store: Store = this.#fixture.store): Promise<ScheduleRecord | undefined> {
    return (await store.schedules.byName([name]))[0];
  }

  async read(name: string, store: Store = this.#fixture.store): Promise<ScheduleRecord> {
    const row = await this.find(name, store);
    if (row === undefined) throw new Error(`There is no schedule ${name}.`);
    return row;
  }

  ledger(schedule: string): Promise<readonly OccurrenceRecord[]> {
    return this.#fixture.store.schedules.occurrences({ schedule, before: null, limit: 10_000 });
  }

  /** Starts a run of this schedule without an owner. */
  startRunOf(name: string, overrides: Partial<NewRun> = {}): Promise<NewRun> {
    return this.#fixture.start({ ...overrides, schedule: runScheduleOf(name) });
  }
}

/** Ends a run whose log is empty, as a run of this schedule. */
export const endOf = (runId: string, scheduleName: string) =>
  transition(runId, { events: [event("end")], next: finish("completed", { scheduleName }) });

export const endedBatch = (runId: string, scheduleName: string) => batch(null, [endOf(runId, scheduleName)]);

/** A run that starts with a change of this schedule. */
export const runOf = (name: string, overrides: Partial<NewRun> = {}): NewRun =>
  newRun({ schedule: runScheduleOf(name), ...overrides });
