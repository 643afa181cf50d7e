import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ClassState, headsToLock, planAdmission } from "./admission.js";
import { type LaneState, roomIn } from "./lane-state.js";

const laneIds = ["a", "b", "c", "d"];

const now = 1_000;

const laneOf = (
  id: string,
  concurrency: number | null,
  inUse: number,
  further: Partial<LaneState> = {},
): LaneState => ({
  id,
  values: { concurrency, rate: null, endsAt: null },
  inUse,
  waitingSteps: 0,
  pacedUntilUs: 0,
  opensAt: null,
  unreadTurn: null,
  ...further,
});

const rates = fc.option(
  fc.record({ limit: fc.integer({ min: 1, max: 10 }), perMs: fc.integer({ min: 1, max: 1_000 }), burst: fc.nat(4) }),
);
/** Some lanes have a concurrency, some a rate, some both, and in some steps wait. */
const laneState = fc.record({
  concurrency: fc.nat(5),
  inUse: fc.nat(5),
  rate: rates,
  pacedUntilUs: fc.integer({ min: 0, max: 2_000_000 }),
  waitingSteps: fc.constantFrom(0, 0, 0, 1),
});
const lanes = fc.tuple(...laneIds.map(() => laneState)).map((states) =>
  states.map(({ concurrency, inUse, rate, ...further }, index) => {
    const lane = laneOf(laneIds[index] as string, concurrency, inUse, further);
    return { ...lane, values: { ...lane.values, rate } };
  }),
);

const classes = fc
  .array(fc.record({ lanes: fc.subarray(laneIds), turn: fc.nat(50), headCount: fc.option(fc.nat(6), { freq: 5 }) }), {
    maxLength: 8,
  })
  .map((states) => states.map((state, index): ClassState => ({ id: `class ${index}`, ...state })));

const cases = fc.record({ lanes, classes, limit: fc.integer({ min: 1, max: 12 }), firstTurn: fc.nat(100) });

const countOf = (turns: readonly string[], id: string) => turns.filter((turn) => turn === id).length;

describe("an admission", () => {
  test("never gives a lane more holders than it has slots, also after the limit was lowered", () => {
    fc.assert(
      fc.property(cases, ({ lanes: states, classes: waiting, ...options }) => {
        const { turns, roomOf, lanes: after } = planAdmission(waiting, states, { ...options, now });
        for (const lane of states) {
          const taken = waiting
            .filter((runClass) => runClass.lanes.includes(lane.id))
            .reduce((sum, runClass) => sum + countOf(turns, runClass.id), 0);
          expect(taken).toBeLessThanOrEqual(Math.max(0, (lane.values.concurrency as number) - lane.inUse));
          expect(taken).toBeLessThanOrEqual(Math.max(0, roomIn(lane, now)));
          expect(roomOf.get(lane.id)).toBeLessThanOrEqual(roomIn(lane, now) - taken);
          expect(after.get(lane.id)?.inUse).toBe(lane.inUse + taken);
        }
      }),
    );
  });

  test("admits no more runs than it may, and no more of a class than wait", () => {
    fc.assert(
      fc.property(cases, ({ lanes: states, classes: waiting, ...options }) => {
        const { turns } = planAdmission(waiting, states, { ...options, now });
        expect(turns.length).toBeLessThanOrEqual(options.limit);
        for (const { id, headCount } of waiting) expect(countOf(turns, id)).toBeLessThanOrEqual(headCount ?? 0);
      }),
    );
  });

  test("leaves no slot free that a run could have, unless it has reached its limit", () => {
    fc.assert(
      fc.property(cases, ({ lanes: states, classes: waiting, ...options }) => {
        const { turns, roomOf } = planAdmission(waiting, states, { ...options, now });
        if (turns.length >= options.limit) return;
        for (const { id, headCount, lanes: needed } of waiting) {
          if (headCount === null || countOf(turns, id) === headCount) continue;
          expect(needed.some((lane) => (roomOf.get(lane) as number) <= 0)).toBe(true);
        }
      }),
    );
  });

  test("blocks exactly the classes whose lane is full, on a lane that they need and that is full", () => {
    fc.assert(
      fc.property(cases, ({ lanes: states, classes: waiting, ...options }) => {
        const { blockedOn, roomOf } = planAdmission(waiting, states, { ...options, now });
        for (const { id, lanes: needed } of waiting) {
          const lane = blockedOn.get(id);
          if (lane === undefined) continue;
          expect(needed).toContain(lane);
          expect(roomOf.get(lane)).toBeLessThanOrEqual(0);
        }
      }),
    );
  });

  test("takes all lanes of a run or none: a class that needs a full lane gets no turn", () => {
    fc.assert(
      fc.property(cases, ({ lanes: states, classes: waiting, ...options }) => {
        const full = new Set(states.filter((lane) => roomIn(lane, now) <= 0).map(({ id }) => id));
        const { turns } = planAdmission(waiting, states, { ...options, now });
        for (const { id, lanes: needed } of waiting)
          if (needed.some((lane) => full.has(lane))) expect(turns).not.toContain(id);
      }),
    );
  });

  test("gives turns with new, growing numbers", () => {
    fc.assert(
      fc.property(cases, ({ lanes: states, classes: waiting, ...options }) => {
        const { turnOf } = planAdmission(waiting, states, { ...options, now });
        const numbers = [...turnOf.values()];
        expect(new Set(numbers).size).toBe(numbers.length);
        for (const number of numbers) {
          expect(number).toBeGreaterThanOrEqual(options.firstTurn);
          for (const { turn } of waiting) expect(number).toBeGreaterThan(turn);
        }
      }),
    );
  });
});

test("over many admissions, at most k - 1 lie between two of one class while k classes are busy, however long a backlog is", () => {
  const limits = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 5, maxLength: 40 });
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 6 }), limits, (classCount, limitsOfRounds) => {
      let turnOf = new Map<string, number>(
        Array.from({ length: classCount }, (_, index) => [`class ${index}`, index] as const),
      );
      const order: string[] = [];
      for (const [round, limit] of limitsOfRounds.entries()) {
        const busy = [...turnOf].map(([id, turn]): ClassState => ({ id, lanes: ["a"], turn, headCount: 1_000 }));
        const plan = planAdmission(busy, [laneOf("a", limit, 0)], { limit: 100, now, firstTurn: 100 * (round + 1) });
        order.push(...plan.turns);
        turnOf = new Map([...turnOf, ...plan.turnOf]);
      }
      for (let from = 0; from + classCount <= order.length; from += 1)
        expect(new Set(order.slice(from, from + classCount)).size).toBe(classCount);
    }),
  );
});

test("a class does not pass those that were blocked on its lane before its turn, and the lane keeps its room for them", () => {
  const later: ClassState = { id: "later", lanes: ["a"], turn: 20, headCount: 3 };
  const earlier: ClassState = { id: "earlier", lanes: ["a"], turn: 5, headCount: 3 };
  const options = { limit: 10, now, firstTurn: 100 };
  const plan = planAdmission([later, earlier], [laneOf("a", 4, 0, { unreadTurn: 10 })], options);
  expect(plan.turns).toEqual(["earlier"]);
  expect([...plan.blockedOn.keys()]).toEqual(["later", "earlier"]);
  expect(plan.roomOf.get("a")).toBe(3);
});

test("no more runs of a class are locked than its lanes have room for", () => {
  fc.assert(
    fc.property(cases, ({ lanes: states, classes: waiting, limit }) => {
      const byId = new Map(states.map((lane) => [lane.id, lane]));
      for (const runClass of waiting) {
        const count = headsToLock(runClass, byId, { limit, now, classCount: waiting.length });
        expect(count).toBeGreaterThanOrEqual(0);
        expect(count).toBeLessThanOrEqual(limit);
        for (const id of runClass.lanes) {
          expect(count).toBeLessThanOrEqual(Math.max(0, roomIn(byId.get(id) as LaneState, now)));
        }
      }
    }),
  );
});
