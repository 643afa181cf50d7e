/** `pawl.schedules`: puts, reads and operates schedules. */
import { InvalidInputError, InvalidStateError, ScheduleNotFoundError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import type { Duration } from "../../core/naming/duration.js";
import { parseDuration } from "../../core/naming/duration.js";
import { sha256Hex } from "../../core/naming/ids.js";
import { checkName } from "../../core/naming/names.js";
import { nextInstants } from "../../core/schedule/instants.js";
import { manualOccurrenceId } from "../../core/schedule/occurrence-id.js";
import type { Occurrence } from "../../core/schedule/schedule-data.js";
import type { AnyWorkflow } from "../../define/resolve.js";
import { type ScheduleOptions, toScheduleData } from "../../define/schedule/schedule.js";
import { randomHex } from "../../runtime/random-hex.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { OccurrenceRecord, ScheduleChange, ScheduleRecord, Store } from "../../store/contract/store.js";
import { parseInstant } from "../start/new-run.js";
import { planBackfill } from "./backfill.js";
import type { ScheduleDefinitions, ScheduleFiring } from "./firing.js";
import { findLateSchedules } from "./late-schedules.js";
import { checkLimit, maxPageSize, readCursor, readPosition, writeCursor, writePosition } from "./pages.js";
import { assertFires, assertFound, changesConstantly } from "./refusals.js";
import { type OccurrenceInfo, readOccurrences, type ScheduleInfo, toScheduleInfo } from "./schedule-info.js";
import {
  auditOf,
  type BackfillResult,
  backfillOptions,
  listOptions,
  occurrencesOptions,
  pauseOptions,
  resumeOptions,
  type ScheduleCommandOptions,
  type ScheduleListOptions,
  triggerOptions,
} from "./schedule-options.js";
import { newScheduleRecord, redefine } from "./schedule-set.js";
import { changeOf, isDue, type StoredSchedule, toOccurrenceRecord, toStoredSchedule } from "./stored-schedule.js";

export interface SchedulesServices {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly firing: ScheduleFiring;
  /** The schedules that workers of this process declare. */
  definitions(): ScheduleDefinitions;
}

/** Other processes change a schedule only when it fires or a person acts, so a few attempts are enough. */
const maxAttempts = 50;
/**
 * Puts, reads and operates schedules: `pawl.schedules`.
 *
 * @example
 * ```ts
 * await pawl.schedules.put("customer-42", { workflow: "report", input: { id: 42 }, every: "1h" });
 * const { nextAt } = await pawl.schedules.get("customer-42");
 * ```
 */
export class Schedules {
  readonly #services: SchedulesServices;

  /** @internal */
  constructor(services: SchedulesServices) {
    this.#services = services;
  }

  /**
   * Creates a schedule, or gives an existing one other options. It belongs to no application, and any worker fires it. Its
   * input is a value. A changed rule does not fire for the past. Throws InvalidStateError if code declares a schedule of
   * this name.
   *
   * @example
   * ```ts
   * await pawl.schedules.put("customer-42", { workflow: "report", input: { id: 42 }, cron: "0 6 * * MON", timeZone: "Europe/Berlin" });
   * ```
   */
  async put<const Scheduled extends AnyWorkflow | string>(
    name: string,
    options: ScheduleOptions<Scheduled>,
  ): Promise<ScheduleInfo> {
    checkName("schedule", name);
    if (typeof (options as { readonly input?: unknown } | null)?.input === "function")
      throw new InvalidInputError(
        `The input of schedule "${name}" must be a value: a function cannot be stored. Declare the schedule in code with schedule("${name}", …) instead.`,
      );
    const data = toScheduleData(name, options as ScheduleOptions);
    const hash = sha256Hex(JSON.stringify(data)).slice(0, 32);
    const definition = { name, app: null, setKey: "", hash, data };
    return this.#change(name, (schedule, now): ScheduleChange | null => {
      if (schedule === null) {
        const row = newScheduleRecord(definition, now, this.#services.runtime);
        return { name, expectedRevision: null, row, occurrences: [], starts: [] };
      }
      const { app } = schedule.record;
      if (app !== null)
        throw new InvalidStateError(
          `Schedule "${name}" is declared by the code of application "${app}"; change it there, or choose another name.`,
        );
      return schedule.record.hash === hash ? null : redefine(schedule, definition, now);
    });
  }

  /** Lists schedules by name, a page at a time. */
  async list(options: ScheduleListOptions = {}): Promise<{
    /** The schedules of this page, ordered by name. */
    readonly schedules: ScheduleInfo[];
    /** The `cursor` of the next page; null if this is the last page. */
    readonly next: string | null;
  }> {
    checkOptions("schedules.list()", options, listOptions);
    const limit = checkLimit("schedules.list()", options.limit ?? 100);
    const { store } = this.#services;
    const after = options.cursor === undefined ? null : readCursor(options.cursor);
    const app = options.app === undefined ? {} : { app: checkName("app", options.app) };
    const records = await store.schedules.list({ after, limit: limit + 1, ...app });
    const page = records.slice(0, limit);
    const [counts, now] = await Promise.all([
      store.schedules.pendingCounts(page.map(({ name }) => name)),
      page.length === 0 ? 0 : store.now(),
    ]);
    const last = page.at(-1);
    return {
      schedules: page.map((record) => toScheduleInfo(record, counts, now)),
      next: records.length > limit && last !== undefined ? writeCursor(last.name) : null,
    };
  }

  /**
   * The schedules that should have fired and have not, the latest first. Schedules are late when no worker that has them is
   * live, or when the workers do not keep up.
   *
   * @param limit how many at most, 1 to 1,000
   */
  async late(limit = 20): Promise<ScheduleInfo[]> {
    return findLateSchedules(this.#services.store, checkLimit("schedules.late()", limit));
  }

  /** Reads one schedule. Throws ScheduleNotFoundError if there is none of this name. */
  async get(name: string): Promise<ScheduleInfo> {
    const { record } = await this.#read(name);
    return this.#infoOf(record);
  }

  /**
   * The next instants of a schedule, without jitter.
   *
   * @param from the instants are after this one; default: now, by the clock of the database
   */
  async next(name: string, count = 10, from?: Date | number): Promise<Date[]> {
    const { data } = await this.#read(name);
    if (!Number.isInteger(count) || count < 1 || count > maxPageSize)
      throw new InvalidInputError(`schedules.next() takes a count from 1 to ${maxPageSize}, not ${String(count)}.`);
    const after = from === undefined ? await this.#services.store.now() : parseInstant("from", from);
    return nextInstants(data.timing, after, count).map((instant) => new Date(instant));
  }

  /**
   * Pauses a schedule: it starts no runs until `resume()`, or until the instant or after the time that `until` gives. Runs
   * that are open go on. Pausing a paused schedule replaces the end, the author and the reason.
   */
  async pause(
    name: string,
    options: ScheduleCommandOptions & {
      /** When it resumes by itself: an instant, or how long from now. Default: it does not. */
      readonly until?: Date | Duration;
    } = {},
  ): Promise<ScheduleInfo> {
    checkOptions("schedules.pause()", options, pauseOptions);
    const { by, reason } = auditOf(options);
    return this.#change(name, (found, now) => {
      const schedule = assertFound(name, found);
      assertFires(schedule, "paused");
      const { until: end } = options;
      const until =
        end === undefined ? null : end instanceof Date ? parseInstant("until", end) : now + parseDuration(end, "until");
      const pause = { at: schedule.state.pause?.at ?? now, until, by: by ?? null, reason: reason ?? null };
      const nextAt = isDue(schedule, now) ? now : until;
      return changeOf(schedule, { status: "paused", nextAt, state: { ...schedule.state, pause } });
    });
  }

  /**
   * Resumes a paused schedule. What it missed is caught up as its `catchUp` says, and its ledger records the rest as paused.
   * Resuming an active schedule changes nothing.
   */
  async resume(name: string, options: ScheduleCommandOptions = {}): Promise<ScheduleInfo> {
    checkOptions("schedules.resume()", options, resumeOptions);
    return this.#change(name, (found, now) => {
      const schedule = assertFound(name, found);
      if (schedule.record.status === "active") return null;
      assertFires(schedule, "resumed");
      const { pause: _, ...state } = schedule.state;
      const resumed = { ...state, failures: 0, idleUntil: { at: now, outcome: "paused" } as const };
      return changeOf(schedule, { status: "active", nextAt: now, state: resumed });
    });
  }

  /**
   * Starts a run now, besides the regular ones, also while the schedule is paused. If a run is open, the overlap policy
   * decides, unless `force` is set. If the input is computed by code that this process does not have, the occurrence is
   * "requested", and a worker with the code starts it.
   */
  async trigger(
    name: string,
    options: ScheduleCommandOptions & {
      /** Starts the run although another one is open. Default false. */
      readonly force?: boolean;
    } = {},
  ): Promise<OccurrenceInfo> {
    checkOptions("schedules.trigger()", options, triggerOptions);
    const { store, runtime, firing } = this.#services;
    const audit = auditOf(options);
    const randomId = randomHex(runtime, 16);
    let id = "";
    await this.#change(name, (found, now) => {
      const schedule = assertFound(name, found);
      if (schedule.record.status === "retired") assertFires(schedule, "triggered");
      id = manualOccurrenceId(name, now, randomId);
      const detail = { manual: true as const, ...(options.force === true ? { force: true as const } : {}), ...audit };
      const range = { scheduledFor: now, scheduledUntil: now, count: 1 };
      const occurrence: Occurrence = { id, ...range, outcome: "requested", pending: "waiting", at: now, detail };
      return changeOf(schedule, { nextAt: now }, { occurrences: [toOccurrenceRecord(schedule.record, occurrence)] });
    });
    await this.#fireIfPossible(name, firing);
    const [occurrence] = await readOccurrences(store, await store.schedules.occurrencesById([id]));
    return occurrence as OccurrenceInfo;
  }

  /** A schedule whose inputs are values can be fired by any process; one with a function only by those that have it. */
  async #fireIfPossible(name: string, firing: ScheduleFiring): Promise<void> {
    const definitions = this.#services.definitions();
    const [schedule, now] = await Promise.all([this.#read(name), this.#services.store.now()]);
    const { record, data } = schedule;
    if (data.input === null && definitions.get(name)?.hash !== record.hash) return;
    await firing.fire([record], now, definitions);
  }

  /**
   * Runs past occurrences that have not run, one after another, the oldest first, beside the regular ones. Each has the
   * identity that it would have had in time, so what has run is left out, however often the backfill is repeated. At most
   * 10,000 occurrences.
   *
   * @example
   * ```ts
   * const { instants } = await pawl.schedules.backfill("nightly_report", { from: new Date("2026-11-01"), dryRun: true });
   * ```
   */
  async backfill(
    name: string,
    options: ScheduleCommandOptions & {
      /** The first instant. */
      readonly from: Date | number;
      /** The last instant. Default: now. */
      readonly to?: Date | number;
      /** Changes nothing and only tells which instants would run. Default false. */
      readonly dryRun?: boolean;
    },
  ): Promise<BackfillResult> {
    checkOptions("schedules.backfill()", options, backfillOptions);
    const { store } = this.#services;
    const from = parseInstant("from", options.from);
    const detail = { backfill: true as const, ...auditOf(options) };
    let result: BackfillResult = { instants: [], alreadyDone: 0 };
    const plan = async (schedule: StoredSchedule, now: number) => {
      const to = Math.min(now, options.to === undefined ? now : parseInstant("to", options.to));
      if (from > to)
        throw new InvalidInputError("schedules.backfill() takes a range that ends after it begins, in the past.");
      const { occurrences, alreadyDone } = await planBackfill(store, schedule, { from, to }, detail, now);
      result = { instants: occurrences.map(({ scheduledFor }) => new Date(scheduledFor)), alreadyDone };
      return occurrences;
    };
    if (options.dryRun === true) {
      const [schedule, now] = await Promise.all([this.#read(name), store.now()]);
      await plan(schedule, now);
      return result;
    }
    await this.#change(name, async (found, now) => {
      const schedule = assertFound(name, found);
      if (schedule.record.status === "retired") assertFires(schedule, "backfilled");
      const occurrences = await plan(schedule, now);
      if (occurrences.length === 0) return null;
      const state = { ...schedule.state, hasBackfill: true as const, ...backfilledUntil(schedule, occurrences) };
      const records = occurrences.map((occurrence) => toOccurrenceRecord(schedule.record, occurrence));
      return changeOf(schedule, { nextAt: now, state }, { occurrences: records });
    });
    return result;
  }

  /** Reads the ledger of a schedule, the newest occurrence first, a page at a time. It outlives the schedule. */
  async occurrences(
    name: string,
    options: {
      /** How many rows a page has at most, 1 to 1,000. Default 50. */
      readonly limit?: number;
      /** The `next` of the previous page. */
      readonly cursor?: string;
    } = {},
  ): Promise<{
    /** The rows of this page, the newest first. */
    readonly occurrences: OccurrenceInfo[];
    /** The `cursor` of the next page; null if this is the last page. */
    readonly next: string | null;
  }> {
    checkName("schedule", name);
    checkOptions("schedules.occurrences()", options, occurrencesOptions);
    const limit = checkLimit("schedules.occurrences()", options.limit ?? 50);
    const before = options.cursor === undefined ? null : readPosition(options.cursor);
    const rows = await this.#services.store.schedules.occurrences({ schedule: name, before, limit: limit + 1 });
    const page = rows.slice(0, limit);
    const last = page.at(-1);
    const hasMore = rows.length > limit && last !== undefined;
    return {
      occurrences: await readOccurrences(this.#services.store, page),
      next: hasMore ? writePosition(last) : null,
    };
  }

  /**
   * Deletes a schedule that was put by the API, or one that its application does not declare any more. Runs that are open go
   * on, and what waits does not start. The ledger stays. A later schedule of the same name has occurrences of its own.
   */
  async delete(name: string): Promise<void> {
    const { store } = this.#services;
    checkName("schedule", name);
    for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
      const [record] = await store.schedules.byName([name]);
      if (record === undefined) throw new ScheduleNotFoundError(name);
      if (record.app !== null && record.status !== "retired")
        throw new InvalidStateError(
          `Schedule "${name}" is declared by the code of application "${record.app}", which would create it again; remove it there.`,
        );
      const now = await store.now();
      const settled = await this.#settlePending(name, now);
      const change: ScheduleChange = {
        name,
        expectedRevision: record.revision,
        row: null,
        occurrences: settled,
        starts: [],
      };
      const result = await store.schedules.apply({ changes: [change] });
      if (result.kind === "applied" && result.names.has(name)) return;
    }
    throw changesConstantly(name);
  }

  async #settlePending(name: string, now: number): Promise<readonly OccurrenceRecord[]> {
    const kinds = ["open", "waiting", "backfill_open", "backfill_waiting"] as const;
    const pending = await this.#services.store.schedules.pending({ names: [name], kinds, limit: 20_000 });
    return pending.map((occurrence) =>
      occurrence.outcome === "ran"
        ? { ...occurrence, pending: null }
        : { ...occurrence, pending: null, outcome: "retired", at: now },
    );
  }

  async #read(name: string): Promise<StoredSchedule> {
    checkName("schedule", name);
    const [record] = await this.#services.store.schedules.byName([name]);
    if (record === undefined) throw new ScheduleNotFoundError(name);
    return toStoredSchedule(record);
  }

  async #infoOf(record: ScheduleRecord): Promise<ScheduleInfo> {
    const { store } = this.#services;
    const [counts, now] = await Promise.all([store.schedules.pendingCounts([record.name]), store.now()]);
    return toScheduleInfo(record, counts, now);
  }

  /** Changes a schedule, again and again until no other process has changed it meanwhile; null changes nothing. */
  async #change(
    name: string,
    decide: (schedule: StoredSchedule | null, now: number) => ScheduleChange | null | Promise<ScheduleChange | null>,
  ): Promise<ScheduleInfo> {
    checkName("schedule", name);
    const { store } = this.#services;
    for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
      const [record] = await store.schedules.byName([name]);
      // Read after the row: what made the schedule due must not look as if it were in the future.
      const now = await store.now();
      const change = await decide(record === undefined ? null : toStoredSchedule(record), now);
      if (change === null) return this.#infoOf(record as ScheduleRecord);
      const result = await store.schedules.apply({ changes: [change] });
      if (result.kind === "applied" && result.names.has(name)) return this.get(name);
    }
    throw changesConstantly(name);
  }
}

/** Remembers that a backfill has taken instants that the schedule has not passed, so that they do not run again. */
function backfilledUntil({ record, state }: StoredSchedule, occurrences: readonly Occurrence[]) {
  const last = occurrences.at(-1)?.scheduledFor;
  if (last === undefined || record.nextFor === null || last < record.nextFor) return {};
  return { backfilledUntil: Math.max(last, state.backfilledUntil ?? last) };
}
