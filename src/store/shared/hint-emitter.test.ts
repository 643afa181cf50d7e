import { expect, test } from "vitest";
import { batch, event, park, transition } from "../../testing/store-suite/builders.js";
import type { CommitResult, Fence, NextTaskState } from "../contract/store.js";
import { hintsOfCommit } from "./hint-emitter.js";

const committed = (notParked: readonly string[] = []): CommitResult => ({
  kind: "committed",
  at: 0,
  notParked,
  ownedWithMessages: [],
  refused: [],
});

const worker = { workerId: "w", epoch: 1 };

const hintsOfParks = (
  parks: readonly NextTaskState[],
  notParked: readonly string[] = [],
  fence: Fence | null = worker,
) =>
  hintsOfCommit(
    batch(
      fence,
      parks.map((next, index) => transition(`run-${index}`, { events: [event("w")], next })),
    ),
    committed(notParked),
  );

test("parks on routes name these and no others, each once", () => {
  const parks = [
    park("waiting", { wakeInMs: 0, route: "a" }),
    park("waiting", { wakeInMs: 60_000, route: "b\tstep" }),
    park("waiting", { wakeAt: 1, route: "a" }),
  ];
  expect(hintsOfParks(parks)).toEqual([{ kind: "ready", workflows: ["a", "b\tstep"] }]);
});

test("a park on a route that no time will end is told to nobody", () => {
  expect(hintsOfParks([park("waiting", { route: "a" })])).toEqual([]);
});

test("a park that changes no route is told only if it is due at once, and to all: the route is not known here", () => {
  expect(hintsOfParks([park("waiting", { wakeInMs: 60_000, priority: 3 }), park("waiting", { wakeAt: 1 })])).toEqual(
    [],
  );
  const parks = [park("waiting", { wakeInMs: 0, priority: 3 }), park("waiting", { wakeInMs: 0, route: "a" })];
  expect(hintsOfParks(parks)).toEqual([{ kind: "ready", workflows: [] }]);
});

test("a run that its owner keeps is told to nobody", () => {
  const parks = [park("waiting", { wakeInMs: 0, route: "a" }), park("waiting", { wakeInMs: 0 })];
  expect(hintsOfParks(parks, ["run-0", "run-1"])).toEqual([]);
  expect(hintsOfParks([...parks, park("waiting", { wakeInMs: 0, route: "b" })], ["run-0", "run-1"])).toEqual([
    { kind: "ready", workflows: ["b"] },
  ]);
});

test("a client that has written to a run with a time tells the workers: a claim may have passed over the locked row", () => {
  expect(hintsOfParks([park("pending", { wakeAt: 1 })], [], null)).toEqual([{ kind: "ready", workflows: [] }]);
  expect(hintsOfParks([park("waiting")], [], null)).toEqual([]);
});
