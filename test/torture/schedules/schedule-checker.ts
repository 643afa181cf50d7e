/**
 * Judges the tables of schedules from outside: it reads them with plain SQL, computes the instants of simple rules by itself
 * and shares no code with the library.
 */
import { existsSync, readFileSync } from "node:fs";
import type { RawSql, Row } from "../../support/raw-sql.js";

export interface ScheduleEvidence {
  readonly schedules: readonly Row[];
  readonly occurrences: readonly Row[];
  readonly runs: readonly Row[];
  readonly tasks: readonly Row[];
  /** One row for each commit of the transactional step of a run. */
  readonly effects: readonly Row[];
  /** The ids of the runs, one for each execution of the step that appends a line outside of the database. */
  readonly noted: readonly string[];
}

export interface Judgement {
  readonly violations: readonly string[];
  /** How many instants the ledger accounts for. */
  readonly instants: number;
  /** How many instants have each outcome. */
  readonly outcomes: ReadonlyMap<string, number>;
}

/** The table of the user. No key is unique, so that a row that is written twice is visible twice. */
export const effectsTable =
  "CREATE TABLE schedule_effects (run_id VARCHAR(64) NOT NULL, schedule VARCHAR(64) NOT NULL, scheduled_for BIGINT NOT NULL)";

export async function readEvidence(sql: RawSql, effectsFile: string): Promise<ScheduleEvidence> {
  const lines = existsSync(effectsFile) ? readFileSync(effectsFile, "utf8").split("\n").slice(0, -1) : [];
  return {
    schedules: await sql.query("SELECT name, incarnation, status, next_for, created_at FROM pawl_schedules"),
    occurrences: await sql.query(
      "SELECT id, schedule, incarnation, scheduled_for, scheduled_until, occurrence_count, outcome, pending, detail FROM pawl_occurrences",
    ),
    runs: await sql.query("SELECT id, status, error, schedule FROM pawl_runs"),
    tasks: await sql.query("SELECT run_id FROM pawl_tasks"),
    effects: await sql.query("SELECT run_id, schedule, scheduled_for FROM schedule_effects"),
    noted: lines.map((line) => (JSON.parse(line) as { readonly run: string }).run),
  };
}

/** @param periods the distance of the instants of each schedule, which are its multiples since 1970 */
export function judgeSchedules(evidence: ScheduleEvidence, periods: ReadonlyMap<string, number>): Judgement {
  const { schedules, occurrences, tasks } = evidence;
  const violations: string[] = tasks.map(({ run_id: id }) => `Run ${id} has not ended.`);
  const outcomes = new Map<string, number>();
  let instants = 0;
  for (const schedule of schedules) {
    const period = periods.get(String(schedule.name));
    if (period === undefined) continue;
    const rows = occurrences.filter((row) => row.schedule === schedule.name && isRegular(row));
    for (const row of rows)
      outcomes.set(String(row.outcome), (outcomes.get(String(row.outcome)) ?? 0) + Number(row.occurrence_count));
    instants += checkInstants(schedule, rows, period, violations);
  }
  for (const name of periods.keys())
    if (!schedules.some((schedule) => schedule.name === name)) violations.push(`Schedule ${name} is lost.`);
  checkPending(evidence, violations);
  checkRuns(evidence, violations);
  return { violations, instants, outcomes };
}

const isRegular = ({ detail }: Row) => {
  const { manual, backfill } = JSON.parse(String(detail)) as { readonly manual?: true; readonly backfill?: true };
  return !manual && !backfill;
};

/** Each instant from the creation of the schedule to its next occurrence is in exactly one row of the ledger. */
function checkInstants(schedule: Row, rows: readonly Row[], period: number, violations: string[]): number {
  const name = String(schedule.name);
  const seen = new Map<number, number>();
  for (const row of rows) {
    const [from, until, count] = [row.scheduled_for, row.scheduled_until, row.occurrence_count].map(Number);
    const range = instantsOf(from as number, until as number, period);
    if (range.length !== count)
      violations.push(`${name}: the row ${row.id} (${row.outcome}) counts ${count} instants, and has ${range.length}.`);
    for (const instant of range) seen.set(instant, (seen.get(instant) ?? 0) + 1);
  }
  const first = (Math.floor(Number(schedule.created_at) / period) + 1) * period;
  const last =
    schedule.next_for === null ? Math.max(first - period, ...seen.keys()) : Number(schedule.next_for) - period;
  const expected = instantsOf(first, last, period);
  for (const instant of expected) {
    const times = seen.get(instant) ?? 0;
    if (times !== 1) violations.push(`${name}: ${new Date(instant).toISOString()} is in ${times} rows of the ledger.`);
    seen.delete(instant);
  }
  for (const instant of seen.keys())
    violations.push(`${name}: ${new Date(instant).toISOString()} is in the ledger, and not an instant of it.`);
  return expected.length;
}

function instantsOf(from: number, until: number, period: number): number[] {
  const instants: number[] = [];
  for (let at = Math.ceil(from / period) * period; at <= until; at += period) instants.push(at);
  return instants;
}

/** What waits belongs to a paused schedule; nothing counts as open that has no task. */
function checkPending({ occurrences, schedules, tasks }: ScheduleEvidence, violations: string[]): void {
  const paused = new Set(schedules.flatMap(({ name, status }) => (status === "paused" ? name : [])));
  const open = new Set(tasks.map(({ run_id: id }) => id));
  for (const { id, schedule, outcome, pending } of occurrences) {
    if (pending === null) {
      if (outcome === "buffered" || outcome === "requested") violations.push(`${schedule}: ${id} is lost: ${outcome}.`);
    } else if (pending === "waiting" ? !paused.has(schedule) : !open.has(id))
      violations.push(`${schedule}: ${id} is ${pending} for ever (${outcome}).`);
  }
}

/** Each occurrence that ran has one run with its instant, the run has ended, and its transaction was committed once. */
function checkRuns({ occurrences, runs, effects, noted }: ScheduleEvidence, violations: string[]): void {
  const ran = new Map(occurrences.filter(({ outcome }) => outcome === "ran").map((row) => [String(row.id), row]));
  const committed = countBy(effects.map((row) => String(row.run_id)));
  const executed = new Set(noted);
  const identities = new Set<string>();
  for (const run of runs) {
    const id = String(run.id);
    const occurrence = ran.get(id);
    ran.delete(id);
    if (occurrence === undefined) {
      violations.push(`Run ${id} has no occurrence that ran.`);
      continue;
    }
    const about = JSON.parse(String(run.schedule)) as { readonly name: string; readonly scheduledFor: number };
    if (about.name !== occurrence.schedule || about.scheduledFor !== Number(occurrence.scheduled_for))
      violations.push(`Run ${id} is about ${run.schedule}, its occurrence about ${JSON.stringify(occurrence)}.`);
    const identity = `${about.name} ${occurrence.incarnation} ${about.scheduledFor}`;
    if (identities.has(identity) && isRegular(occurrence)) violations.push(`${identity} has several runs.`);
    identities.add(identity);
    const effectCount = committed.get(id) ?? 0;
    if (run.status === "completed" && effectCount !== 1)
      violations.push(`Run ${id} (${about.name}) is completed and has ${effectCount} effects.`);
    if (run.status === "completed" && !executed.has(id)) violations.push(`Run ${id} was never executed.`);
    // A run is canceled after its transaction, or before it.
    if (run.status === "canceled" && effectCount > 1) violations.push(`Run ${id} has ${effectCount} effects.`);
    if (run.status !== "completed" && run.status !== "canceled")
      violations.push(`Run ${id} is ${run.status}: ${run.error}`);
  }
  for (const [id, { schedule }] of ran) violations.push(`${schedule}: ${id} ran, and there is no such run.`);
  const runIds = new Set(runs.map(({ id }) => String(id)));
  for (const id of committed.keys()) if (!runIds.has(id)) violations.push(`An effect is of the lost run ${id}.`);
  for (const { outcome, schedule, id, detail } of occurrences)
    if (outcome === "failed_to_start") violations.push(`${schedule}: ${id} failed to start: ${detail}`);
}

function countBy(keys: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}
