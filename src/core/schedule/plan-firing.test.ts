import { describe, expect, test } from "vitest";
import { jitterOf } from "./instants.js";
import { occurrenceId } from "./occurrence-id.js";
import { type Firing, type FiringSituation, planFiring } from "./plan-firing.js";
import { parseTiming } from "./rule.js";
import type { Occurrence, OccurrenceDetail, Outcome, Overlap, ScheduleData } from "./schedule-data.js";

const minute = 60_000;
/** The instants of these tests are numbered: instant 0 is midnight, and one follows every ten minutes. */
const midnight = Date.UTC(2026, 0, 1);
const at = (instant: number) => midnight + instant * 10 * minute;
const numberOf = (time: number | null) => (time === null ? null : (time - midnight) / (10 * minute));

const everyTenMinutes: ScheduleData = {
  workflow: "report",
  input: "null",
  timing: parseTiming("schedule", { every: "10m" }),
  jitterMs: 0,
  overlap: "skip",
  catchUp: { mode: "latest", withinMs: null },
  pauseOnFailure: null,
  maxRuns: null,
};

const idle: FiringSituation = {
  name: "reports",
  incarnation: "i",
  data: everyTenMinutes,
  status: "active",
  state: { accepted: 0, failures: 0 },
  nextFor: at(0),
  now: at(0),
  open: [],
  ended: [],
  waiting: [],
  backfill: { isOpen: false, next: null },
  backfilled: new Set(),
};

type Given = Partial<Omit<FiringSituation, "data">> & { readonly data?: Partial<ScheduleData> };
const plan = ({ data, ...given }: Given): Firing =>
  planFiring({ ...idle, ...given, data: { ...everyTenMinutes, ...data } });

function occurrence(instant: number, outcome: Outcome, detail: OccurrenceDetail = {}): Occurrence {
  const id = detail.manual ? `manual ${instant}` : occurrenceId("reports", "i", at(instant));
  const isOpen = outcome === "ran";
  const pending = detail.backfill ? (isOpen ? "backfill_open" : "backfill_waiting") : isOpen ? "open" : "waiting";
  return { id, scheduledFor: at(instant), scheduledUntil: at(instant), count: 1, outcome, pending, at: 0, detail };
}
const open = (instant: number, detail?: OccurrenceDetail) => occurrence(instant, "ran", detail);
const buffered = (instant: number, detail?: OccurrenceDetail) => occurrence(instant, "buffered", detail);
const requested = (instant: number, detail: OccurrenceDetail = {}) =>
  occurrence(instant, "requested", { manual: true, ...detail });
const numbers = (count: number, first = 0) => Array.from({ length: count }, (_, index) => first + index);

/** The rows that were written as "ran 3", "skipped_late 0-2 (3)" or "ran 3 ended". */
const rowsOf = (firing: Firing) =>
  firing.occurrences.map(({ outcome, scheduledFor, scheduledUntil, count, pending }) => {
    const [from, until] = [numberOf(scheduledFor), numberOf(scheduledUntil)];
    const range = count === 1 ? `${from}` : `${from}-${until} (${count})`;
    return `${outcome} ${range}${outcome === "ran" && pending === null ? " ended" : ""}`;
  });

const full = numbers(100, -100).map((instant) => buffered(instant));
const overlaps: Record<Overlap, readonly [Given, readonly string[]][]> = {
  skip: [
    [{}, ["ran 0"]],
    [{ open: [open(-1)] }, ["skipped_overlap 0"]],
    [{ open: [open(-1)], now: at(2) }, ["skipped_late 0-1 (2)", "skipped_overlap 2"]],
    [{ waiting: [buffered(-1)] }, ["ran -1", "skipped_overlap 0"]],
  ],
  bufferOne: [
    [{}, ["ran 0"]],
    [{ open: [open(-1)] }, ["buffered 0"]],
    [{ open: [open(-2)], waiting: [buffered(-1)] }, ["skipped_buffer_full 0"]],
    [{ waiting: [buffered(-1)] }, ["ran -1", "buffered 0"]],
  ],
  bufferAll: [
    [{ open: [open(-2)], waiting: [buffered(-1)] }, ["buffered 0"]],
    [{ open: [open(-101)], waiting: full.slice(1) }, ["buffered 0"]],
    [{ open: [open(-101)], waiting: full }, ["skipped_buffer_full 0"]],
    [{ waiting: full.slice(98) }, ["ran -2", "buffered 0"]],
  ],
  cancelOther: [
    [{}, ["ran 0"]],
    [{ open: [open(-1)] }, ["buffered 0"]],
    [{ open: [open(-2)], waiting: [buffered(-1)] }, ["skipped_overlap -1", "buffered 0"]],
    // The one that waited would begin now, but a newer one is due as well.
    [{ waiting: [buffered(-1)] }, ["skipped_overlap -1", "ran 0"]],
  ],
  allowAll: [
    [{ open: [open(-1)] }, ["ran 0"]],
    [{ open: [open(-2)], waiting: [buffered(-1)] }, ["ran -1", "ran 0"]],
  ],
};

describe("overlap", () => {
  for (const [overlap, cases] of Object.entries(overlaps))
    test.each(cases)(`${overlap}: %o`, (given, expected) => {
      expect(rowsOf(plan({ ...given, data: { overlap: overlap as Overlap } }))).toEqual(expected);
    });

  test("cancelOther requests the cancellation of every open run, once", () => {
    const given = { open: [open(-2), open(-1, { manual: true })], waiting: [requested(0), requested(0.5)], now: at(1) };
    const { cancelRunIds, begins } = plan({ ...given, nextFor: at(1), data: { overlap: "cancelOther" } });
    expect(cancelRunIds).toEqual([open(-2).id, "manual -1"]);
    expect(begins).toEqual([]);
  });

  test("the newest of two that wait takes the place of the other", () => {
    const given = { open: [open(-2)], waiting: [requested(0), requested(0.5)], nextFor: at(1), now: at(0.5) };
    expect(rowsOf(plan({ ...given, data: { overlap: "cancelOther" } }))).toEqual(["skipped_overlap 0", "buffered 0.5"]);
    expect(rowsOf(plan({ ...given, data: { overlap: "bufferOne" } }))).toEqual([
      "buffered 0",
      "skipped_buffer_full 0.5",
    ]);
  });
});

const catchUps: readonly [string, Given, readonly string[]][] = [
  ["latest runs one", { now: at(288) }, ["skipped_late 0-287 (288)", "ran 288"]],
  [
    "latest within a time",
    { now: at(3), data: { catchUp: { mode: "latest", withinMs: 0 } } },
    ["skipped_late 0-2 (3)", "ran 3"],
  ],
  [
    "latest, too late",
    { now: at(3.5), data: { catchUp: { mode: "latest", withinMs: minute } } },
    ["skipped_late 0-3 (4)"],
  ],
  [
    "none, in time",
    { now: at(3) + minute, data: { catchUp: { mode: "none", withinMs: null } } },
    ["skipped_late 0-2 (3)", "ran 3"],
  ],
  [
    "none, too late",
    { now: at(3) + minute + 1, data: { catchUp: { mode: "none", withinMs: null } } },
    ["skipped_late 0-3 (4)"],
  ],
  ["none within a longer time", { now: at(0.9), data: { catchUp: { mode: "none", withinMs: 9 * minute } } }, ["ran 0"]],
  [
    "all, although overlap skips",
    { now: at(2), data: { catchUp: { mode: "all", withinMs: null } } },
    ["ran 0", "buffered 1", "buffered 2"],
  ],
  [
    "all within a time",
    { now: at(4.5), data: { catchUp: { mode: "all", withinMs: 25 * minute } } },
    ["skipped_late 0-1 (2)", "ran 2", "buffered 3", "buffered 4"],
  ],
  [
    "all, all too late",
    { now: at(4.5), data: { catchUp: { mode: "all", withinMs: minute } } },
    ["skipped_late 0-4 (5)"],
  ],
  [
    "all beside an open run",
    { now: at(1), open: [open(-1)], data: { catchUp: { mode: "all", withinMs: null } } },
    ["buffered 0", "buffered 1"],
  ],
  [
    "all of one that is due obeys overlap",
    { open: [open(-1)], data: { catchUp: { mode: "all", withinMs: null } } },
    ["skipped_overlap 0"],
  ],
  [
    "all of one that a backfill runs",
    { now: at(1), backfilled: new Set([at(0)]), data: { catchUp: { mode: "all", withinMs: null } } },
    ["ran 1"],
  ],
  ["latest, which a backfill has run", { now: at(1), backfilled: new Set([at(1)]) }, ["skipped_late 0"]],
];

describe("catch-up", () => {
  test.each(catchUps)("%s", (_, given, expected) => expect(rowsOf(plan(given))).toEqual(expected));

  test("at most a hundred are caught up, the latest", () => {
    const firing = plan({ now: at(999), data: { catchUp: { mode: "all", withinMs: null } } });
    expect(rowsOf(firing)).toEqual([
      "skipped_late 0-899 (900)",
      "ran 900",
      ...numbers(99, 901).map((instant) => `buffered ${instant}`),
    ]);
  });

  test("a run says how many earlier occurrences it stands for, and how late it is", () => {
    expect(plan({ now: at(3) + 5 }).begins[0]?.detail).toEqual({ missed: 3, latenessMs: 5 });
    expect(plan({}).begins[0]?.detail).toEqual({ latenessMs: 0 });
  });

  test("the next instant is after the last one that was decided", () => {
    expect(numberOf(plan({ now: at(3.5) }).nextFor)).toBe(4);
    expect(numberOf(plan({ now: at(-1) }).nextFor)).toBe(0);
  });
});

const paused = { at: at(-1), until: null, by: null, reason: null };
const failing = { data: { pauseOnFailure: 2 }, now: at(-1) };
const endedAs = (instant: number, failed: boolean | null, detail?: OccurrenceDetail) => ({
  occurrence: open(instant, detail),
  failed,
});

describe("pause, resume, retirement and end", () => {
  const state = { accepted: 0, failures: 0 };

  test("while paused, only what a person has asked for begins", () => {
    const given = { status: "paused", state: { ...state, pause: paused } } as const;
    const firing = plan({ ...given, waiting: [buffered(-2), requested(-1)], now: at(5) });
    expect(rowsOf(firing)).toEqual(["ran -1"]);
    expect(firing).toMatchObject({ status: "paused", nextFor: at(0), nextAt: null });
  });

  test("a retired schedule does nothing but note the end of its runs", () => {
    const backfill = { isOpen: false, next: buffered(-3, { backfill: true }) };
    const given = { status: "retired", waiting: [requested(-1)], ended: [endedAs(-2, null)], backfill } as const;
    expect(rowsOf(plan({ ...given, now: at(5) }))).toEqual(["ran -2 ended"]);
  });

  test("a pause that is over ends, and what it has missed is recorded as paused", () => {
    const given = { status: "paused", state: { ...state, pause: { ...paused, until: at(3.5) } } } as const;
    expect(rowsOf(plan({ ...given, now: at(3) }))).toEqual([]);
    expect(plan({ ...given, now: at(3) }).nextAt).toBe(at(3.5));
    const firing = plan({ ...given, now: at(6) });
    expect(rowsOf(firing)).toEqual(["paused 0-3 (4)", "skipped_late 4-5 (2)", "ran 6"]);
    expect(firing.state).toMatchObject({ accepted: 1 });
    expect(firing.state).not.toHaveProperty("pause");
    expect(firing.state).not.toHaveProperty("idleUntil");
  });

  test.each(["paused", "retired"] as const)("what was missed while %s is recorded as such", (outcome) => {
    const given = { state: { ...state, idleUntil: { at: at(2), outcome } }, now: at(2) };
    expect(rowsOf(plan(given))).toEqual([`${outcome} 0-1 (2)`, "ran 2"]);
    expect(rowsOf(plan({ ...given, data: { catchUp: { mode: "none", withinMs: 0 } }, now: at(2.5) }))).toEqual([
      `${outcome} 0-2 (3)`,
    ]);
    expect(rowsOf(plan({ ...given, data: { catchUp: { mode: "all", withinMs: null } } }))).toEqual([
      "ran 0",
      "buffered 1",
      "buffered 2",
    ]);
  });

  test("it is paused after failed runs in a row, and says why", () => {
    const firing = plan({ ...failing, ended: [endedAs(-3, true), endedAs(-2, true)], now: at(0) });
    expect(firing).toMatchObject({ status: "paused", nextAt: null, begins: [] });
    expect(firing.state).toMatchObject({ failures: 2, pause: { at: at(0), reason: "2 runs in a row have failed." } });
    const single = plan({ data: { pauseOnFailure: 1 }, ended: [endedAs(-3, true)], now: at(-1) });
    expect(single.state.pause?.reason).toBe("A run has failed.");
  });

  test.each([
    ["one that succeeds resets the count", [endedAs(-4, true), endedAs(-3, false), endedAs(-2, true)], 1],
    ["one that was canceled neither counts nor resets", [endedAs(-4, true), endedAs(-3, null)], 1],
    [
      "those of a person and of a backfill do not count",
      [endedAs(-4, true, { manual: true }), endedAs(-3, true, { backfill: true })],
      0,
    ],
  ])("failures: %s", (_, ended, failures) => {
    expect(plan({ ...failing, ended })).toMatchObject({ status: "active", state: { failures } });
  });

  test("it ends with the run that reaches maxRuns", () => {
    const given = { data: { maxRuns: 3 }, state: { ...state, accepted: 2 } };
    expect(plan(given)).toMatchObject({ status: "ended", nextFor: null, nextAt: null, state: { accepted: 3 } });
    expect(plan({ ...given, open: [open(-1)] })).toMatchObject({ status: "active", nextFor: at(1) });
    const all = { ...given.data, catchUp: { mode: "all", withinMs: null } } as const;
    expect(rowsOf(plan({ ...given, data: all, now: at(5) }))).toEqual(["ran 0"]);
  });

  test("an occurrence that waited, and was replaced before its run began, does not count for maxRuns", () => {
    const given = { open: [open(-2)], waiting: [buffered(-1)], state: { ...state, accepted: 2 } };
    const firing = plan({ ...given, data: { maxRuns: 3, overlap: "cancelOther" } });
    expect(firing).toMatchObject({ status: "active", state: { accepted: 2 } });
  });

  test("it ends after the last instant, and what waits still begins", () => {
    const timing = parseTiming("schedule", { every: "10m", endAt: new Date(at(1)) });
    const firing = plan({ data: { timing, overlap: "bufferAll" }, open: [open(-1)], now: at(4) });
    expect(rowsOf(firing)).toEqual(["skipped_late 0", "buffered 1"]);
    expect(firing).toMatchObject({ status: "ended", nextFor: null, nextAt: null });
    expect(rowsOf(plan({ status: "ended", nextFor: null, waiting: [buffered(1)], now: at(9) }))).toEqual(["ran 1"]);
  });
});

describe("what a person asks for", () => {
  const later = { nextFor: at(1), now: at(0.5) };
  test.each([
    ["skip", {}, ["skipped_overlap 0"]],
    ["skip, forced", { force: true }, ["ran 0"]],
    ["bufferOne", {}, ["buffered 0"]],
    ["cancelOther", {}, ["buffered 0"]],
    ["allowAll", {}, ["ran 0"]],
  ] as const)("with an open run: %s", (given, detail, expected) => {
    const overlap = given.split(",")[0] as Overlap;
    expect(rowsOf(plan({ ...later, open: [open(-1)], waiting: [requested(0, detail)], data: { overlap } }))).toEqual(
      expected,
    );
  });

  test("it does not move the next instant, and does not count for maxRuns", () => {
    const firing = plan({ ...later, waiting: [requested(0)], data: { maxRuns: 1 } });
    expect(firing).toMatchObject({ status: "active", nextFor: at(1), nextAt: at(1), state: { accepted: 0 } });
  });

  test("a backfill runs one after another, beside the regular runs, also while paused", () => {
    const next = buffered(-5, { backfill: true });
    expect(rowsOf(plan({ backfill: { isOpen: false, next } }))).toEqual(["ran -5", "ran 0"]);
    expect(rowsOf(plan({ open: [open(-1)], backfill: { isOpen: false, next } }))).toEqual([
      "ran -5",
      "skipped_overlap 0",
    ]);
    expect(rowsOf(plan({ ...later, backfill: { isOpen: true, next } }))).toEqual([]);
    const pausedState = { accepted: 0, failures: 0, pause: paused };
    expect(rowsOf(plan({ status: "paused", state: pausedState, backfill: { isOpen: false, next } }))).toEqual([
      "ran -5",
    ]);
    const over = plan({ ...later, state: { accepted: 0, failures: 0, hasBackfill: true } });
    expect(over.state).not.toHaveProperty("hasBackfill");
  });
});

describe("the ledger", () => {
  test("consecutive occurrences that are skipped for the same reason share a row", () => {
    const first = plan({ open: [open(-1)] });
    const second = plan({ open: [open(-1)], state: first.state, nextFor: first.nextFor, now: at(1) });
    expect(rowsOf(second)).toEqual(["skipped_overlap 0-1 (2)"]);
    expect(second.occurrences[0]?.id).toBe(first.occurrences[0]?.id);
    const third = plan({ state: second.state, nextFor: second.nextFor, now: at(2) });
    const fourth = plan({ open: [open(2)], state: third.state, nextFor: third.nextFor, now: at(3) });
    expect(rowsOf(third)).toEqual(["ran 2"]);
    expect(rowsOf(fourth)).toEqual(["skipped_overlap 3"]);
  });

  test("an occurrence has the same id whenever it is decided, and another one in another schedule or incarnation", () => {
    const id = plan({}).begins[0]?.id;
    expect(plan({ now: at(0.7) }).begins[0]?.id).toBe(id);
    expect(plan({ name: "other" }).begins[0]?.id).not.toBe(id);
    expect(plan({ incarnation: "j" }).begins[0]?.id).not.toBe(id);
  });

  test("the latest occurrence is remembered; a backfill and the end of a run are not news", () => {
    const last = plan({ now: at(2) }).state.last;
    expect(last).toMatchObject({ outcome: "ran", scheduledFor: at(2), at: at(2) });
    const next = buffered(5, { backfill: true });
    const state = { accepted: 1, failures: 0, ...(last === undefined ? {} : { last }) };
    const firing = plan({ state, ended: [endedAs(2, null)], backfill: { isOpen: false, next }, nextFor: at(3) });
    expect(firing.state.last).toEqual(last);
  });
});

describe("jitter", () => {
  const data = { jitterMs: 9 * minute };
  const dueAt = (instant: number) => at(instant) + jitterOf("reports", at(instant), data.jitterMs);

  test("it moves when an occurrence is due, and neither its instant nor its id", () => {
    const before = plan({ data, now: dueAt(0) - 1 });
    expect(before).toMatchObject({ begins: [], nextFor: at(0), nextAt: dueAt(0) });
    const firing = plan({ data, now: dueAt(0) });
    expect(firing.begins).toMatchObject([
      { id: plan({}).begins[0]?.id, scheduledFor: at(0), detail: { latenessMs: 0 } },
    ]);
    expect(firing.nextAt).toBe(dueAt(1));
  });

  test("lateness is counted from when it is due, so jitter makes no occurrence late", () => {
    const none = { ...data, catchUp: { mode: "none", withinMs: 0 } } as const;
    expect(rowsOf(plan({ data: none, now: dueAt(0) }))).toEqual(["ran 0"]);
    expect(rowsOf(plan({ data: none, now: dueAt(0) + 1 }))).toEqual(["skipped_late 0"]);
  });
});
