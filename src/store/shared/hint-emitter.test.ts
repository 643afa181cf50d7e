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

test("the hint of parks with a route names each of these routes once and no others", () => {
  const parks = [
    park("waiting", { wakeInMs: 0, route: "a" }),
    park("waiting", { wakeInMs: 60_000, route: "b\tstep" }),
    park("waiting", { wakeAt: 1, route: "a" }),
  ];
  expect(hintsOfParks(parks)).toEqual([{ kind: "ready", workflows: ["a", "b\tstep"] }]);
});

test("a park without a due time sends no hint, even if it has a route", () => {
  expect(hintsOfParks([park("waiting", { route: "a" })])).toEqual([]);
});

test("a park that keeps its route sends a hint only if it is due at once, and that hint names no route", () => {
  expect(hintsOfParks([park("waiting", { wakeInMs: 60_000, priority: 3 }), park("waiting", { wakeAt: 1 })])).toEqual(
    [],
  );
  const parks = [park("waiting", { wakeInMs: 0, priority: 3 }), park("waiting", { wakeInMs: 0, route: "a" })];
  expect(hintsOfParks(parks)).toEqual([{ kind: "ready", workflows: [] }]);
});

test("a run that its owner keeps sends no hint", () => {
  const parks = [park("waiting", { wakeInMs: 0, route: "a" }), park("waiting", { wakeInMs: 0 })];
  expect(hintsOfParks(parks, ["run-0", "run-1"])).toEqual([]);
  expect(hintsOfParks([...parks, park("waiting", { wakeInMs: 0, route: "b" })], ["run-0", "run-1"])).toEqual([
    { kind: "ready", workflows: ["b"] },
  ]);
});

test("a client's park with a due time sends a hint, because a claim may have skipped the locked row", () => {
  expect(hintsOfParks([park("pending", { wakeAt: 1 })], [], null)).toEqual([{ kind: "ready", workflows: [] }]);
  expect(hintsOfParks([park("waiting")], [], null)).toEqual([]);
});
