/** The checker of schedules rejects tables that were damaged on purpose. */
import { expect, test } from "vitest";
import type { Row } from "../../support/raw-sql.js";
import { judgeSchedules, type ScheduleEvidence } from "./schedule-checker.js";

const second = 1_000;
const periods = new Map([["tick", second]]);

const occurrence = (n: number, change: Row = {}): Row => ({
  id: `run-${n}`,
  schedule: "tick",
  incarnation: "x",
  scheduled_for: n * second,
  scheduled_until: n * second,
  occurrence_count: 1,
  outcome: "ran",
  pending: null,
  detail: "{}",
  ...change,
});
const skipped = (from: number, until: number): Row =>
  occurrence(from, {
    id: `skipped-${from}`,
    scheduled_until: until * second,
    occurrence_count: until - from + 1,
    outcome: "skipped_overlap",
  });
const run = (n: number, change: Row = {}): Row => ({
  id: `run-${n}`,
  status: "completed",
  error: null,
  schedule: JSON.stringify({ name: "tick", scheduledFor: n * second }),
  ...change,
});
const effect = (n: number): Row => ({ run_id: `run-${n}`, schedule: "tick", scheduled_for: n * second });

/** Created before second 1; it ran at 1 and 2, was skipped at 3 and 4, ran at 5, and is due at 6. */
const sound: ScheduleEvidence = {
  schedules: [{ name: "tick", incarnation: "x", status: "active", next_for: 6 * second, created_at: 500 }],
  occurrences: [occurrence(1), occurrence(2), skipped(3, 4), occurrence(5)],
  runs: [run(1), run(2), run(5)],
  tasks: [],
  effects: [effect(1), effect(2), effect(5)],
  noted: ["run-1", "run-2", "run-5", "run-5"],
};
const [one, two, three, five] = sound.occurrences as [Row, Row, Row, Row];

test("sound tables have no violation", () => {
  const { violations, instants, outcomes } = judgeSchedules(sound, periods);
  expect(violations).toEqual([]);
  expect(instants).toBe(5);
  expect(Object.fromEntries(outcomes)).toEqual({ ran: 3, skipped_overlap: 2 });
});

const damages: readonly (readonly [name: string, damage: Partial<ScheduleEvidence>])[] = [
  ["a schedule is lost", { schedules: [] }],
  ["the first instant is missing", { occurrences: [two, three, five] }],
  ["an instant in the middle is missing", { occurrences: [one, three, five] }],
  ["the last instant is missing", { occurrences: [one, two, three] }],
  ["an instant is in two rows", { occurrences: [one, two, three, five, skipped(2, 2)] }],
  ["an instant is not one of the rule", { occurrences: [one, two, three, five, skipped(6, 6)] }],
  ["a row counts too many", { occurrences: [one, two, { ...three, occurrence_count: 3 }, five] }],
  [
    "an occurrence is buffered and nothing waits for it",
    { occurrences: [one, two, three, { ...five, outcome: "buffered" }] },
  ],
  ["an occurrence waits for ever", { occurrences: [one, two, three, { ...five, pending: "waiting" }] }],
  ["an occurrence counts as open", { occurrences: [one, two, three, { ...five, pending: "open" }] }],
  ["an occurrence failed to start", { occurrences: [one, two, three, { ...five, outcome: "failed_to_start" }] }],
  ["a run is open", { tasks: [{ run_id: "run-5" }] }],
  ["a run is lost", { runs: [run(1), run(2)] }],
  ["a run is of no occurrence", { runs: [...sound.runs, run(7)] }],
  ["a run has another instant", { runs: [run(1), run(2), run(5, { schedule: run(2).schedule as string })] }],
  ["a run failed", { runs: [run(1), run(2), run(5, { status: "failed" })] }],
  ["a run has no effect", { effects: [effect(1), effect(2)] }],
  ["a run has two effects", { effects: [...sound.effects, effect(5)] }],
  ["an effect has no run", { effects: [...sound.effects, effect(9)] }],
  ["a run completed and was never executed", { noted: ["run-1", "run-2"] }],
];

test.each(damages)("it is found that %s", (_, damage) => {
  expect(judgeSchedules({ ...sound, ...damage }, periods).violations).not.toEqual([]);
});
