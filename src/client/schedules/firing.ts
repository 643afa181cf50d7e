/**
 * Fires schedules: reads those that must be looked at, has `planFiring` decide, computes the inputs of the runs that begin,
 * and commits each decision together with its runs, if the schedule is still as it was read. Any number of processes may do
 * this at the same time.
 */
import { encode } from "../../core/encoding/encode.js";
import {
  AlreadyActiveError,
  InvalidStateError,
  TimeoutError,
  WorkflowNotFoundError,
} from "../../core/errors/errors.js";
import { toSafeThrown } from "../../core/errors/safe-thrown.js";
import { sentenceOf } from "../../core/errors/sentence-of.js";
import { type Firing, planFiring } from "../../core/schedule/plan-firing.js";
import type { Occurrence, RunSchedule, ScheduleState } from "../../core/schedule/schedule-data.js";
import type { Logger } from "../../define/context.js";
import type { ScheduleDefinition } from "../../define/schedule/schedule.js";
import type { Runtime, Timer } from "../../runtime/runtime.js";
import { waitAtMost } from "../../runtime/wait.js";
import type {
  NewRun,
  RefusedStart,
  ScheduleChange,
  ScheduleRecord,
  Store,
  WorkflowRecord,
} from "../../store/contract/store.js";
import { publishStatus } from "../../telemetry/publish.js";
import { publishOccurrence } from "../../telemetry/publish-occurrence.js";
import type { IdSource } from "../start/new-id.js";
import { newRunFactory } from "../start/new-run.js";
import { registrationOf } from "../start/registration.js";
import { readSituations, type Situation } from "./situations.js";
import { changeOf, type StoredSchedule, toOccurrenceRecord, toStoredSchedule } from "./stored-schedule.js";

export interface FiringServices {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly ids: IdSource;
  /** The registry's records of these workflows, by name. */
  readWorkflows(names: readonly string[]): Promise<Workflows>;
  /** Requests the cancellation of a run that is open. */
  cancel(runId: string, reason: string): Promise<void>;
}

/** How many schedules were changed by a look, and how many had been changed by another process meanwhile. */
export interface FiringProgress {
  readonly changed: number;
  readonly lost: number;
}

type Workflows = ReadonlyMap<string, WorkflowRecord>;

export type ScheduleDefinitions = ReadonlyMap<string, ScheduleDefinition>;

/** How many schedules are looked at together; their changes are one transaction. */
const schedulesPerLook = 100;
const maxRefusals = 20;
/** An input function that takes longer has failed. */
const inputTimeoutMs = 10_000;
/** Schedules whose inputs are computed within this time do not wait for the others. */
const fastInputMs = 1_000;

export class ScheduleFiring {
  readonly #services: FiringServices;

  constructor(services: FiringServices) {
    this.#services = services;
  }

  /**
   * Looks at the schedules of these sets that are due; null if there are none. If some were changed, more may be due.
   *
   * @param definitions the schedules that this process has in its code
   */
  async fireDue(setKeys: readonly string[], definitions: ScheduleDefinitions): Promise<FiringProgress | null> {
    const { store } = this.#services;
    const due = await store.schedules.due({ setKeys, limit: schedulesPerLook });
    if (due === null) return null;
    const changed = await this.fire(due.schedules, due.now, definitions);
    return { changed, lost: due.schedules.length - changed };
  }

  /** Looks at these schedules now. Returns how many of them were changed; the others have changed meanwhile. */
  async fire(records: readonly ScheduleRecord[], now: number, definitions: ScheduleDefinitions): Promise<number> {
    const { store } = this.#services;
    const unusable: Unusable[] = [];
    const schedules = records.flatMap((record) => readOrNote(record, unusable) ?? []);
    const situations = await readSituations(store, schedules, now);
    const plans = situations.flatMap((situation) => planOrNote(situation, unusable) ?? []);
    const beginning = plans.filter(({ firing }) => firing.begins.length > 0);
    // Read beforehand: a database that cannot be reached is no reason to record that a run has failed to start.
    const workflows = await this.#services.readWorkflows([
      ...new Set(beginning.map(({ situation }) => situation.schedule.data.workflow)),
    ]);
    const ready: Decision[] = [];
    const deciding = plans.map(async (plan) => {
      ready.push(await this.#decide(plan, definitions, workflows));
    });
    await waitAtMost(this.#services.runtime, fastInputMs, Promise.all(deciding));
    const changedAtOnce = await this.#commit(ready.splice(0));
    await Promise.all(deciding);
    const changedLater = await this.#commit(ready.splice(0));
    return changedAtOnce + changedLater + (await this.#pauseUnusable(unusable, now));
  }

  /** Pauses the schedules that could not be looked at, so that they are not looked at again and again, and says why. */
  async #pauseUnusable(unusable: readonly Unusable[], now: number): Promise<number> {
    if (unusable.length === 0) return 0;
    const changes = unusable.map(({ record, error }): ScheduleChange => {
      this.#services.log.error(`Schedule "${record.name}" cannot be fired and is paused.`, error);
      const pause = { at: now, until: null, by: null, reason: sentenceOf(toSafeThrown(error)) };
      const row = { ...record, status: "paused" as const, nextAt: null, state: withPause(record.state, pause) };
      return { name: record.name, expectedRevision: record.revision, row, occurrences: [], starts: [] };
    });
    const result = await this.#services.store.schedules.apply({ changes });
    return result.kind === "applied" ? result.names.size : 0;
  }

  async #commit(decisions: readonly Decision[]): Promise<number> {
    if (decisions.length === 0) return 0;
    for (const { firing } of decisions)
      for (const runId of firing.cancelRunIds)
        await this.#services.cancel(runId, "A newer occurrence of its schedule takes its place.");
    return this.#apply(decisions.map(withoutSharedHeroes(new Set())));
  }

  async #decide(
    { situation, firing }: Plan,
    definitions: ScheduleDefinitions,
    workflows: Workflows,
  ): Promise<Decision> {
    const { schedule } = situation;
    const definition = definitions.get(schedule.record.name);
    const usable = definition?.hash === schedule.record.hash ? definition : undefined;
    let decision: Decision = { schedule, firing, starts: [] };
    for (const occurrence of firing.begins) {
      try {
        const run = await this.#createRun(situation, occurrence, usable, workflows);
        decision = { ...decision, starts: [...decision.starts, run] };
      } catch (error) {
        this.#warnOfFailure(schedule.record.name, occurrence, error);
        decision = withFailedStart(decision, occurrence.id, sentenceOf(toSafeThrown(error)));
      }
    }
    return decision;
  }

  async #createRun(
    { schedule, now }: Situation,
    occurrence: Occurrence,
    definition: ScheduleDefinition | undefined,
    workflows: Workflows,
  ): Promise<NewRun> {
    const { data, record } = schedule;
    const workflow = workflows.get(data.workflow);
    if (workflow === undefined) throw new WorkflowNotFoundError(data.workflow);
    const { manual, backfill, missed = 0 } = occurrence.detail;
    const options = {
      ...(data.priority === undefined ? {} : { priority: data.priority }),
      ...(data.tags === undefined ? {} : { tags: data.tags }),
      ...(data.hero === undefined ? {} : { hero: data.hero }),
    };
    const run = newRunFactory({ name: data.workflow, ...registrationOf(workflow) }, options, this.#services.ids)(null);
    const about: RunSchedule = {
      name: record.name,
      scheduledFor: occurrence.scheduledFor,
      firedAt: now,
      missed,
      ...(manual ? { manual } : {}),
      ...(backfill ? { backfill } : {}),
    };
    const input = data.input ?? (await this.#computeInput(definition, about));
    return { ...run, id: occurrence.id, input, schedule: JSON.stringify(about) };
  }

  async #computeInput(definition: ScheduleDefinition | undefined, about: RunSchedule): Promise<string> {
    // The caller fires only schedules whose functions it has; a definition may be missing for a moment during a release.
    if (definition?.computeInput == null)
      throw new InvalidStateError(
        `This process does not have the function that computes the input of schedule "${about.name}".`,
      );
    const { name, scheduledFor, missed, manual = false, backfill = false } = about;
    const occurrence = { schedule: name, scheduledFor: new Date(scheduledFor), missed, manual, backfill };
    const input = await this.#withTimeout(name, async () => definition.computeInput?.(occurrence));
    return encode(input, { label: `the input of schedule "${name}"` });
  }

  /** Code that never settles must not keep this process from firing other schedules. */
  async #withTimeout<T>(name: string, compute: () => Promise<T>): Promise<T> {
    const { runtime } = this.#services;
    let timer: Timer | undefined;
    const timeout = new Promise<never>((_, reject) => {
      const message = `The function that computes the input of schedule "${name}" took more than ${inputTimeoutMs / 1_000} seconds.`;
      timer = runtime.setTimeout(() => reject(new TimeoutError(message)), inputTimeoutMs);
    });
    try {
      return await Promise.race([compute(), timeout]);
    } finally {
      runtime.clearTimeout(timer);
    }
  }

  #warnOfFailure(name: string, { scheduledFor }: Occurrence, error: unknown): void {
    const instant = new Date(scheduledFor).toISOString();
    this.#services.log.error(`Schedule "${name}" could not start its run for ${instant}.`, error);
  }

  /** Commits the decisions. Occurrences whose runs are refused are recorded as such, and the rest is tried again. */
  async #apply(decisions: readonly Decision[]): Promise<number> {
    const { store } = this.#services;
    let remaining = decisions;
    for (let refusals = 0; refusals < maxRefusals; refusals += 1) {
      const result = await store.schedules.apply({ changes: remaining.map(toChange), isFiring: true });
      if (result.kind === "applied") {
        this.#publish(
          remaining.filter(({ schedule }) => result.names.has(schedule.record.name)),
          result.at,
        );
        return result.names.size;
      }
      if (result.kind !== "refused") break;
      remaining = remaining.map((decision) => withRefusedStarts(decision, result.refused));
    }
    return 0;
  }

  #publish(decisions: readonly Decision[], at: number): void {
    const { log } = this.#services;
    for (const { schedule, firing, starts } of decisions) {
      for (const run of starts) publishStatus(log, run, "pending", at);
      for (const occurrence of firing.occurrences)
        if (occurrence.at === firing.at && !hasEnded(occurrence))
          publishOccurrence(log, schedule.record.name, occurrence, newlyCounted(occurrence, schedule));
    }
  }
}

/** Whether it is written because its run has ended. It was published when the run began, perhaps in the same millisecond. */
const hasEnded = ({ outcome, pending }: Occurrence): boolean => outcome === "ran" && pending === null;

/** A row of skipped occurrences grows; those that it had before have been published. */
const newlyCounted = ({ id, count }: Occurrence, { state: { skipped } }: StoredSchedule): number =>
  skipped?.id === id ? count - skipped.count : count;

interface Decision {
  readonly schedule: Situation["schedule"];
  readonly firing: Firing;
  readonly starts: readonly NewRun[];
}

/** A schedule that could not be looked at. */
interface Unusable {
  readonly record: ScheduleRecord;
  readonly error: unknown;
}

/** Null for a damaged row, which is the problem of this schedule alone. */
function readOrNote(record: ScheduleRecord, unusable: Unusable[]): StoredSchedule | null {
  try {
    return toStoredSchedule(record);
  } catch (error) {
    unusable.push({ record, error });
    return null;
  }
}

/** What a schedule does now, before the inputs of its runs are computed. */
interface Plan {
  readonly situation: Situation;
  readonly firing: Firing;
}

/** Null if the instants cannot be computed: this runtime may lack the time zone of this schedule, for example. */
function planOrNote(situation: Situation, unusable: Unusable[]): Plan | null {
  try {
    return { situation, firing: planFiring(situation) };
  } catch (error) {
    unusable.push({ record: situation.schedule.record, error });
    return null;
  }
}

/** A state that cannot be read stays as it is, for people to mend. */
function withPause(state: string, pause: NonNullable<ScheduleState["pause"]>): string {
  try {
    return JSON.stringify({ ...(JSON.parse(state) as ScheduleState), pause });
  } catch {
    return state;
  }
}

function toChange({ schedule, firing, starts }: Decision): ScheduleChange {
  const { status, state, nextFor, nextAt } = firing;
  const occurrences = firing.occurrences.map((occurrence) => toOccurrenceRecord(schedule.record, occurrence));
  return changeOf(schedule, { status, state, nextFor, nextAt }, { occurrences, starts });
}

/** The occurrence has not begun: it is recorded with the reason, and the schedule is looked at again at once. */
function withFailedStart(decision: Decision, id: string, error: string): Decision {
  const { firing } = decision;
  const fail = (occurrence: Occurrence): Occurrence =>
    occurrence.id === id
      ? { ...occurrence, outcome: "failed_to_start", pending: null, detail: { ...occurrence.detail, error } }
      : occurrence;
  const { last } = firing.state;
  return {
    ...decision,
    starts: decision.starts.filter((run) => run.id !== id),
    firing: {
      ...firing,
      nextAt: firing.at,
      occurrences: firing.occurrences.map(fail),
      state: last?.id === id ? { ...firing.state, last: { ...last, outcome: "failed_to_start" } } : firing.state,
    },
  };
}

function withRefusedStarts(decision: Decision, refused: readonly RefusedStart[]): Decision {
  return refused.reduce((current, { runId, existing }) => {
    const run = current.starts.find(({ id }) => id === runId);
    if (run === undefined) return current;
    const { workflow, heroType, heroId } = run;
    const hero = { type: heroType as string, id: heroId as string };
    const { message } = new AlreadyActiveError({ workflow, hero, runId: existing.id });
    return withFailedStart(current, runId, message);
  }, decision);
}

/** Two runs of one commit must not have the same hero: the later one fails to start, as it would a moment later. */
const withoutSharedHeroes =
  (heroKeys: Set<string>) =>
  (decision: Decision): Decision =>
    decision.starts.reduce((current, { id, heroKey }) => {
      if (heroKey === null) return current;
      if (heroKeys.has(heroKey)) return withFailedStart(current, id, "Another run of its hero has just been started.");
      heroKeys.add(heroKey);
      return current;
    }, decision);
