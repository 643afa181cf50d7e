import { expect, test } from "vitest";
import { type NewEvent, newEvent } from "./event.js";
import { evolve, fold } from "./fold.js";
import { type OwnerParkOptions, parkByClient, parkByOwner, parkNotStarted, shouldRunCode } from "./park.js";
import { openLanesIn, readParkingNote, withOpenLanes, writeParkingNote } from "./parking-note.js";
import type { RunState } from "./state.js";

const storeNow = 1_000;

function stateOf(...events: readonly NewEvent[]): RunState {
  return fold(events.map((event, index) => ({ ...event, seq: index + 1, at: storeNow })));
}

const started = newEvent("run.started", {}, { startedAt: storeNow });
const sleeping = newEvent("timer.started", { node: "nap" }, { ms: 500 });
const paused = (recheckMs?: number) =>
  newEvent("run.paused", {}, recheckMs === undefined ? { reason: "why" } : { reason: "why", recheckMs });

const rowWith = (waiting: string | null, afterSeq: number) => ({ waiting, deliveries: 0, afterSeq });

function parkWith(state: RunState, overrides: Partial<OwnerParkOptions> = {}) {
  const pending = { events: [], wakeInMs: null, wakeAt: null };
  return parkByOwner({
    state,
    pending,
    storeNow,
    wasCodeStopped: false,
    isAwaited: undefined,
    seenVersion: "all",
    routing: null,
    ...overrides,
  });
}

test("an owner parks a run until the earliest of its timers and waits is due", () => {
  expect(parkWith(stateOf(started, sleeping))).toMatchObject({ status: "waiting", wakeAt: 1_500, wakeInMs: null });
});

test("a call that the code no longer waits for does not wake the run", () => {
  expect(parkWith(stateOf(started, sleeping), { isAwaited: () => false })).toMatchObject({
    wakeAt: null,
    wakeInMs: null,
  });
});

test("a timer that is written with the park is due relative to the commit, and is in the note", () => {
  const next = parkWith(stateOf(started), { pending: { events: [sleeping], wakeInMs: 500, wakeAt: null } });
  expect(next).toMatchObject({ wakeAt: null, wakeInMs: 500 });
  expect(readParkingNote(next.waiting)).toMatchObject({ seq: 2, waitingFor: [{ kind: "sleep", name: "nap" }] });
});

test("a run whose code was stopped is due at once, and its code runs again", () => {
  const next = parkWith(stateOf(started, sleeping), { wasCodeStopped: true });
  expect(next.wakeInMs).toBe(0);
  expect(readParkingNote(next.waiting).seenVersion).toBeUndefined();
});

test("a paused run is not due until it is resumed, also when its code was stopped", () => {
  expect(parkWith(stateOf(started, sleeping, paused()), { wasCodeStopped: true })).toMatchObject({
    status: "paused",
    wakeAt: null,
    wakeInMs: null,
  });
});

test("a paused run wakes up for its recheck, relative to the commit of the pause or at the time in its log", () => {
  const pending = { events: [paused(60)], wakeInMs: null, wakeAt: null };
  expect(parkWith(stateOf(started), { pending })).toMatchObject({ status: "paused", wakeAt: null, wakeInMs: 60 });
  expect(parkWith(stateOf(started, paused(60)))).toMatchObject({ wakeAt: 1_060, wakeInMs: null });
});

test("the task gets the route and the priority of the next step", () => {
  expect(parkWith(stateOf(started), { routing: { route: "mail", priority: 7 } })).toMatchObject({
    route: "mail",
    priority: 7,
  });
});

test("a client's write leaves a run waiting when its code has seen everything", () => {
  const state = stateOf(started, sleeping);
  expect(parkByClient(state, rowWith(writeParkingNote(state, state.wakeVersion), state.seq))).toMatchObject({
    wakeAt: 1_500,
    wakeInMs: null,
  });
});

test("a client's write makes a run ready when there is a result that its code has not seen, or may not have seen", () => {
  const state = stateOf(started, sleeping);
  const note = writeParkingNote(state, state.wakeVersion);
  evolve(state, { ...newEvent("timer.fired", { node: "nap" }), seq: 3, at: storeNow });
  expect(parkByClient(state, rowWith(note, 2))).toMatchObject({ wakeAt: null, wakeInMs: 0 });
  expect(parkByClient(stateOf(started, sleeping), rowWith(null, 2))).toMatchObject({ wakeInMs: 0 });
});

test("a client's write leaves a run ready whose owner has died, although the log gives no reason for it", () => {
  const state = stateOf(started, newEvent("step.started", { node: "sweep", attempt: 1 }));
  const park = parkByClient(state, {
    ...rowWith(writeParkingNote(state, state.wakeVersion), state.seq),
    deliveries: 1,
  });
  expect(park).toMatchObject({ wakeAt: null, wakeInMs: 0 });
  expect(shouldRunCode(state, park.waiting, storeNow)).toBe(true);
});

test("a run that has not started keeps its start time when a client pauses it", () => {
  expect(parkNotStarted(stateOf(paused()), false, null)).toMatchObject({
    status: "paused",
    wakeInMs: null,
    keepsDueTime: true,
  });
});

test("a run that has not started is due when a client starts it, or resumes it after its start time", () => {
  expect(parkNotStarted(stateOf(), true, null)).toMatchObject({ status: "pending", wakeInMs: 0 });
  const due = stateOf(paused(), newEvent("run.became_due", {}), newEvent("run.resumed", {}, { by: "operator" }));
  expect(parkNotStarted(due, false, null)).toMatchObject({ status: "pending", wakeInMs: 0 });
  expect(parkNotStarted(due, false, null).keepsDueTime).toBeUndefined();
});

test("code that has seen everything runs again only for a new result or for a step that is due", () => {
  const state = stateOf(started, newEvent("step.scheduled", { node: "later", attempt: 1 }, { waitMs: 100 }));
  const note = writeParkingNote(state, state.wakeVersion);
  expect(shouldRunCode(state, note, storeNow)).toBe(false);
  expect(shouldRunCode(state, note, storeNow + 100)).toBe(true);
  expect(shouldRunCode(state, null, storeNow)).toBe(true);
  expect(shouldRunCode(state, "not a note", storeNow)).toBe(true);
});

test("a client's write makes a run ready that a late commit has released, whose note does not know of a step that began", () => {
  const isClass = newEvent("run.started", {}, { steps: "chain" });
  const before = stateOf(isClass);
  const note = writeParkingNote(before, before.wakeVersion);
  const state = stateOf(isClass, newEvent("step.started", { node: "sweep", attempt: 1 }));
  expect(parkByClient(state, rowWith(note, 1))).toMatchObject({ wakeInMs: null });
  const park = parkByClient(state, rowWith(note, 2));
  expect(park).toMatchObject({ wakeAt: null, wakeInMs: 0 });
  expect(shouldRunCode(state, park.waiting, storeNow)).toBe(true);
});

test("a run that was admitted while it was paused keeps the names of its slots, also when it is resumed", () => {
  const note = withOpenLanes(writeParkingNote(stateOf(paused()), null), ["customers\tc"]);
  const parkedAgain = parkNotStarted(stateOf(paused()), false, note);
  expect(openLanesIn(parkedAgain.waiting)).toEqual(["customers\tc"]);
  expect(openLanesIn(parkNotStarted(stateOf(), true, parkedAgain.waiting).waiting)).toEqual(["customers\tc"]);
});
