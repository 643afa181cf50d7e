/** Plays random histories of a schedule, and checks after each look what must always be true of its ledger and its runs. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { nextInstant } from "./instants.js";
import { manualOccurrenceId, occurrenceId } from "./occurrence-id.js";
import { bufferLimit, type FiringSituation, planFiring } from "./plan-firing.js";
import { parseTiming } from "./rule.js";
import type { Occurrence, ScheduleData, ScheduleState, ScheduleStatus } from "./schedule-data.js";

const minute = 60_000;
const start = Date.UTC(2026, 2, 28, 20);
const identity = { name: "reports", incarnation: "i" } as const;

const rules = [
  parseTiming("schedule", { every: "10m" }),
  // The clocks of Berlin go forward five hours after the start.
  parseTiming("schedule", { cron: "*/20 0-4 * * *", timeZone: "Europe/Berlin" }),
  parseTiming("schedule", { every: "10m", except: ["* 23 * * *"], endAt: new Date(start + 40 * 60 * minute) }),
];

const dataArbitrary: fc.Arbitrary<ScheduleData> = fc.record({
  workflow: fc.constant("report"),
  input: fc.constant("null"),
  timing: fc.constantFrom(...rules),
  jitterMs: fc.constantFrom(0, 9 * minute),
  overlap: fc.constantFrom("skip", "bufferOne", "bufferAll", "cancelOther", "allowAll"),
  catchUp: fc.record({
    mode: fc.constantFrom("latest", "none", "all"),
    withinMs: fc.constantFrom(null, 0, 45 * minute, 24 * 60 * minute),
  }),
  pauseOnFailure: fc.constantFrom(null, null, 1, 3),
  maxRuns: fc.constantFrom(null, null, 1, 20),
});

const stepArbitrary = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("look" as const), minutes: fc.constantFrom(0, 3, 10, 25, 60) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("look" as const), minutes: fc.constantFrom(600, 1_500) }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("end" as const), failed: fc.constantFrom(true, false, null) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("trigger" as const), force: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("pause" as const), minutes: fc.constantFrom(null, 15, 200) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom("resume" as const, "retire" as const, "bring back" as const) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("backfill" as const), minutes: fc.constantFrom(30, 90) }) },
);
type Step = typeof stepArbitrary extends fc.Arbitrary<infer T> ? T : never;

/** The rows of one schedule, and what the client and the store do to them. */
class History {
  readonly ledger = new Map<string, Occurrence>();
  readonly data: ScheduleData;
  now = start;
  status: ScheduleStatus = "active";
  state: ScheduleState = { accepted: 0, failures: 0 };
  nextFor: number | null;
  readonly #openIds = new Set<string>();
  readonly #begunIds = new Set<string>();
  #ended: FiringSituation["ended"] = [];
  #triggers = 0;

  constructor(data: ScheduleData) {
    this.data = data;
    this.nextFor = nextInstant(data.timing, start);
  }

  get pending() {
    return [...this.ledger.values()]
      .filter(({ pending }) => pending !== null)
      .sort((a, b) => a.scheduledFor - b.scheduledFor);
  }

  do(step: Step): void {
    const { state, now } = this;
    if (step.kind === "look") this.now += step.minutes * minute;
    else if (step.kind === "end") this.#endOldestRun(step.failed);
    else if (step.kind === "trigger" && this.status !== "retired") this.#trigger(step.force);
    else if (step.kind === "pause" && (this.status === "active" || this.status === "paused")) {
      const until = step.minutes === null ? null : now + step.minutes * minute;
      this.state = { ...state, pause: { at: now, until, by: null, reason: null } };
      this.status = "paused";
    } else if (step.kind === "resume" && this.status === "paused") {
      const { pause: _, ...rest } = state;
      this.state = { ...rest, failures: 0, idleUntil: { at: now, outcome: "paused" } };
      this.status = "active";
    } else if (step.kind === "retire") this.status = "retired";
    else if (step.kind === "bring back" && this.status === "retired") {
      this.state = { ...state, idleUntil: { at: now, outcome: "retired" } };
      this.status = state.pause ? "paused" : this.nextFor === null ? "ended" : "active";
    } else if (step.kind === "backfill" && this.status !== "retired") this.#backfill(now - step.minutes * minute);
    this.#look();
  }

  #endOldestRun(failed: boolean | null): void {
    const occurrence = this.pending.find(({ id }) => this.#openIds.has(id));
    if (occurrence === undefined) return;
    this.#openIds.delete(occurrence.id);
    this.#ended = [{ occurrence, failed }];
  }

  #trigger(force: boolean): void {
    const { now } = this;
    const id = manualOccurrenceId(identity.name, now, String(this.#triggers++));
    const detail = { manual: true as const, ...(force ? { force: true as const } : {}) };
    const range = { scheduledFor: now, scheduledUntil: now, count: 1 };
    this.ledger.set(id, { id, ...range, outcome: "requested", pending: "waiting", at: now, detail });
  }

  #backfill(from: number): void {
    let last: number | null = null;
    for (
      let at = nextInstant(this.data.timing, Math.max(from, start));
      at !== null && at <= this.now;
      at = nextInstant(this.data.timing, at)
    ) {
      const id = occurrenceId(identity.name, identity.incarnation, at);
      const existing = this.ledger.get(id);
      if (existing !== undefined && (existing.outcome === "ran" || existing.pending !== null)) continue;
      const range = { scheduledFor: at, scheduledUntil: at, count: 1 };
      const detail = { backfill: true as const };
      this.ledger.set(id, { id, ...range, outcome: "buffered", pending: "backfill_waiting", at: this.now, detail });
      last = at;
    }
    if (last === null) return;
    const isAhead = this.nextFor !== null && last >= this.nextFor;
    this.state = { ...this.state, hasBackfill: true, ...(isAhead ? { backfilledUntil: last } : {}) };
  }

  get #situation(): FiringSituation {
    const { data, status, state, nextFor, now, pending } = this;
    const isOpen = ({ id }: Occurrence) => this.#openIds.has(id);
    const backfill = {
      isOpen: pending.some((row) => row.pending === "backfill_open" && isOpen(row)),
      next: pending.find((row) => row.pending === "backfill_waiting") ?? null,
    };
    const isAhead = nextFor !== null && (state.backfilledUntil ?? -1) >= nextFor;
    const rows = isAhead ? [...this.ledger.values()].filter(({ detail }) => detail.backfill) : [];
    return {
      ...identity,
      data,
      status,
      state,
      nextFor,
      now,
      open: pending.filter((row) => row.pending === "open" && isOpen(row)),
      ended: this.#ended,
      waiting: pending.filter((row) => row.pending === "waiting"),
      backfill,
      backfilled: new Set(rows.map(({ scheduledFor }) => scheduledFor)),
    };
  }

  #look(): void {
    const situation = this.#situation;
    const firing = planFiring(situation);
    expect(planFiring(situation)).toEqual(firing);
    for (const row of firing.occurrences) this.ledger.set(row.id, row);
    for (const { id } of firing.begins) {
      expect(this.#begunIds.has(id), "a run begins once").toBe(false);
      expect(this.ledger.get(id)?.outcome).toBe("ran");
      this.#begunIds.add(id);
      this.#openIds.add(id);
    }
    if (this.nextFor !== null && firing.nextFor !== null) expect(firing.nextFor).toBeGreaterThanOrEqual(this.nextFor);
    for (const row of firing.occurrences)
      if (isRegular(row) && row.id === occurrenceId(identity.name, identity.incarnation, row.scheduledFor))
        if (row.at === this.now && !situation.waiting.some(({ id }) => id === row.id) && row.pending !== null)
          expect(row.scheduledFor, "what has been decided is not decided again").toBeGreaterThanOrEqual(
            situation.nextFor as number,
          );
    for (const id of firing.cancelRunIds) expect(situation.open.map((row) => row.id)).toContain(id);
    this.#ended = [];
    this.status = firing.status;
    this.state = firing.state;
    this.nextFor = firing.nextFor;
    // The store looks again when a run ends, so a cancellation can be played by ending the run.
  }
}

const isRegular = ({ detail }: Occurrence) => !detail.manual && !detail.backfill;

function checkLedger({ ledger, data, nextFor, pending }: History): void {
  const rows = [...ledger.values()];
  const regular = rows.filter(isRegular);
  const backfilled = new Set(rows.filter(({ detail }) => detail.backfill).map(({ scheduledFor }) => scheduledFor));
  const decidedUntil = nextFor ?? Math.max(start, ...regular.map(({ scheduledUntil }) => scheduledUntil)) + 1;
  const counts = new Map(regular.map(({ id }) => [id, 0]));
  for (let at = nextInstant(data.timing, start); at !== null && at < decidedUntil; at = nextInstant(data.timing, at)) {
    const instant = at;
    const covering = regular.filter((row) => row.scheduledFor <= instant && instant <= row.scheduledUntil);
    if (!backfilled.has(instant)) expect(covering, new Date(instant).toISOString()).toHaveLength(1);
    expect(covering.length).toBeLessThanOrEqual(1);
    for (const { id } of covering) counts.set(id, (counts.get(id) as number) + 1);
  }
  for (const { id, count, outcome } of regular) expect(counts.get(id), `the count of a row of ${outcome}`).toBe(count);
  const openRegular = pending.filter((row) => row.pending === "open" && row.detail.force === undefined);
  if (data.overlap !== "allowAll") expect(openRegular.length).toBeLessThanOrEqual(1);
  const buffered = pending.filter((row) => row.pending === "waiting" && isRegular(row));
  expect(buffered.length).toBeLessThanOrEqual(bufferLimit);
  if (data.catchUp.mode !== "all" && ["skip", "allowAll"].includes(data.overlap)) expect(buffered).toEqual([]);
  if (data.catchUp.mode !== "all" && data.overlap !== "bufferAll") expect(buffered.length).toBeLessThanOrEqual(1);
  const accepted = regular.filter(({ outcome }) => outcome === "ran" || outcome === "buffered").length;
  expect(accepted).toBeLessThanOrEqual(data.maxRuns ?? Number.POSITIVE_INFINITY);
}

test("every instant is accounted for exactly once, and runs neither overlap nor begin twice", () => {
  fc.assert(
    fc.property(dataArbitrary, fc.array(stepArbitrary, { minLength: 1, maxLength: 40 }), (data, steps) => {
      const history = new History(data);
      for (const step of steps) history.do(step);
      checkLedger(history);
    }),
    { numRuns: 200, seed: 20 },
  );
});

test("how often a schedule is looked at does not change what runs while no run is open", () => {
  const minutes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(dataArbitrary, minutes, (data, pauses) => {
      // Frequent looks, each soon after the instant: every occurrence runs, and none is late.
      const history = new History({
        ...data,
        overlap: "allowAll",
        catchUp: { mode: "latest", withinMs: null },
        maxRuns: null,
        jitterMs: 0,
      });
      for (const step of pauses) {
        history.do({ kind: "look", minutes: step as 3 });
        history.do({ kind: "end", failed: false });
      }
      const outcomes = [...history.ledger.values()].map(({ outcome }) => outcome);
      expect(outcomes.every((outcome) => outcome === "ran")).toBe(true);
    }),
    { numRuns: 50, seed: 20 },
  );
});
