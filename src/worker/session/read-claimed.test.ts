import { expect, test } from "vitest";
import { newEvent } from "../../core/run/event.js";
import { fold } from "../../core/run/fold.js";
import { writeParkingNote } from "../../core/run/parking-note.js";
import type { ClaimedTask, RunRecord, Store, StoredEvent } from "../../store/contract/store.js";
import { hasWorkForCode } from "../turn/idle.js";
import type { WholeTurn } from "../turn/ports.js";
import { readClaimed } from "./read-claimed.js";

const toLog = (...events: ReturnType<typeof newEvent>[]): StoredEvent[] =>
  events.map((event, index) => ({ ...event, seq: index + 1, at: 1_000 }));

const started = newEvent("run.started", {}, { steps: "chain" });
const stepStarted = newEvent("step.started", { node: "sweep", attempt: 1 });
const log = toLog(started, stepStarted);

const noteOf = (events: readonly StoredEvent[]) => {
  const state = fold(events);
  return writeParkingNote(state, state.wakeVersion);
};
const early = noteOf(toLog(started));
const current = noteOf(log);

async function readOne(waiting: string, { wereUnowned = true, deliveries = 1, rowNow = waiting } = {}) {
  const run = { id: "r", waiting } as unknown as RunRecord;
  const task = { run, route: "Sweep", deliveries, pendingMessages: 0, isFresh: false } as ClaimedTask;
  const store = {
    logs: async () => new Map([["r", log]]),
    runsById: async () => [{ ...run, waiting: rowNow }],
  } as unknown as Store;
  const [snapshot] = await readClaimed(store, [task], { claimedAt: 1_000, wereUnowned });
  const turn = { ...snapshot, state: fold(log), storeNow: () => 1_000 } as unknown as WholeTurn;
  return { deliveries: snapshot?.deliveries, isCodeCalled: hasWorkForCode(turn) };
}

test("a run that a late commit has released is recovered, although its last owner may live", async () => {
  expect(await readOne(early)).toEqual({ deliveries: 2, isCodeCalled: true });
  expect(await readOne(early, { deliveries: 3 })).toEqual({ deliveries: 3, isCodeCalled: true });
});

test("a run whose step waits since its owner has parked it is not recovered", async () => {
  expect(await readOne(current)).toEqual({ deliveries: 1, isCodeCalled: false });
});

test("a claim that has read the row as of an instant before the last park does not lead to a recovery", async () => {
  expect(await readOne(early, { rowNow: current })).toMatchObject({ deliveries: 1 });
});

test("the code of a run that the session owned without knowing it is called if its log has grown since it was parked", async () => {
  expect(await readOne(early, { wereUnowned: false })).toEqual({ deliveries: 1, isCodeCalled: true });
  expect(await readOne(current, { wereUnowned: false })).toEqual({ deliveries: 1, isCodeCalled: false });
});
