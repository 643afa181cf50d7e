import { expect, test } from "vitest";
import { event, type NewEvent } from "./event.js";
import { evolve, fold } from "./fold.js";
import { isNewsForCode, type OwnerParks, parkByClient, parkByOwner, parkUnbegun } from "./park.js";
import { readParkingNote, writeParkingNote } from "./parking-note.js";
import type { RunState } from "./state.js";

const at = 1_000;

function stateOf(...events: readonly NewEvent[]): RunState {
  return fold(events.map((one, index) => ({ ...one, seq: index + 1, at })));
}

const started = event("run.started", {}, { began: at });
const sleeping = event("timer.started", { node: "nap" }, { ms: 500 });
const paused = (recheckMs?: number) =>
  event("run.paused", {}, recheckMs === undefined ? { reason: "why" } : { reason: "why", recheckMs });

function parks(state: RunState, given: Partial<OwnerParks> = {}) {
  const pending = { events: [], wakeIn: null, wakeAt: null };
  return parkByOwner({
    state,
    pending,
    at,
    isCutShort: false,
    awaited: undefined,
    newsSeen: "all",
    station: null,
    ...given,
  });
}

test("an owner parks a run until the earliest thing that it waits for is due", () => {
  expect(parks(stateOf(started, sleeping))).toMatchObject({ status: "waiting", wakeAt: 1_500, wakeIn: null });
});

test("what the code does not ask for any more does not wake the run", () => {
  expect(parks(stateOf(started, sleeping), { awaited: () => false })).toMatchObject({ wakeAt: null, wakeIn: null });
});

test("a wait that is opened with the park counts from its commit, and is in the note", () => {
  const next = parks(stateOf(started), { pending: { events: [sleeping], wakeIn: 500, wakeAt: null } });
  expect(next).toMatchObject({ wakeAt: null, wakeIn: 500 });
  expect(readParkingNote(next.waiting)).toMatchObject({ seq: 2, for: [{ kind: "sleep", name: "nap" }] });
});

test("a run whose code was cut short is due at once, and its code runs again", () => {
  const next = parks(stateOf(started, sleeping), { isCutShort: true });
  expect(next.wakeIn).toBe(0);
  expect(readParkingNote(next.waiting).news).toBeUndefined();
});

test("a paused run sleeps until it is resumed, also when its code was cut short", () => {
  expect(parks(stateOf(started, sleeping, paused()), { isCutShort: true })).toMatchObject({
    status: "paused",
    wakeAt: null,
    wakeIn: null,
  });
});

test("a paused run with a recheck wakes up for it: from the commit of the pause, or at the time that its log says", () => {
  const pending = { events: [paused(60)], wakeIn: null, wakeAt: null };
  expect(parks(stateOf(started), { pending })).toMatchObject({ status: "paused", wakeAt: null, wakeIn: 60 });
  expect(parks(stateOf(started, paused(60)))).toMatchObject({ wakeAt: 1_060, wakeIn: null });
});

test("the station of the next step goes into the task", () => {
  expect(parks(stateOf(started), { station: { route: "mail", priority: 7 } })).toMatchObject({
    route: "mail",
    priority: 7,
  });
});

test("a client's write leaves a run waiting as it was when that is no news for its code", () => {
  const state = stateOf(started, sleeping);
  expect(parkByClient(state, writeParkingNote(state, state.news))).toMatchObject({ wakeAt: 1_500, wakeIn: null });
});

test("a client's write makes a run ready when its code has news, or when what the code saw is not known", () => {
  const state = stateOf(started, sleeping);
  const note = writeParkingNote(state, state.news);
  evolve(state, { ...event("timer.fired", { node: "nap" }), seq: 3, at });
  expect(parkByClient(state, note)).toMatchObject({ wakeAt: null, wakeIn: 0 });
  expect(parkByClient(stateOf(started, sleeping), null)).toMatchObject({ wakeIn: 0 });
});

test("a run that has not begun keeps its time when a client pauses it", () => {
  expect(parkUnbegun(stateOf(paused()), false)).toMatchObject({ status: "paused", wakeIn: null, keepsDue: true });
});

test("a run that has not begun begins when it is started, or resumed after its time had come", () => {
  expect(parkUnbegun(stateOf(), true)).toMatchObject({ status: "pending", wakeIn: 0 });
  const due = stateOf(paused(), event("run.became_due", {}), event("run.resumed", {}, { by: "operator" }));
  expect(parkUnbegun(due, false)).toMatchObject({ status: "pending", wakeIn: 0 });
  expect(parkUnbegun(due, false).keepsDue).toBeUndefined();
});

test("code that has seen everything is run again only for an answer or for a step whose time has come", () => {
  const state = stateOf(started, event("step.scheduled", { node: "later", attempt: 1 }, { waitMs: 100 }));
  const note = writeParkingNote(state, state.news);
  expect(isNewsForCode(state, note, at)).toBe(false);
  expect(isNewsForCode(state, note, at + 100)).toBe(true);
  expect(isNewsForCode(state, null, at)).toBe(true);
  expect(isNewsForCode(state, "not a note", at)).toBe(true);
});
