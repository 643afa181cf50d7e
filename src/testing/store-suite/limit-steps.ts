/** Limits: slots of steps. */
import { laneIdOf } from "../../core/limits/lane.js";
import type { StepSlotChanges, StepSlotRequest } from "../../store/contract/limits.js";
import type { Fence, Hint } from "../../store/contract/store.js";
import { newRun, park, transition } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { createLimitFixture } from "./limit-fixture.js";

const hour = 3_600_000;

export function limitStepTests(fixture: Fixture): void {
  const { test, expect } = fixture;
  const { newLimit, newLane, startSorted, admit, idsOf, inUse, finishRuns } = createLimitFixture(fixture);

  let count = 0;
  /** Of steps that ask in the same millisecond, the one of the older run comes first, then the one with the lower node. */
  const { id: runId } = newRun();
  const requestFor = (lane: string, overrides: Partial<StepSlotRequest> = {}): StepSlotRequest => ({
    runId,
    node: `call ${String(++count).padStart(3, "0")}`,
    lane,
    priority: 0,
    units: 1,
    ...overrides,
  });

  async function change(fence: Fence, changes: Partial<StepSlotChanges>) {
    const result = await fixture.store.limits.changeStepSlots({
      fence,
      asked: [],
      released: [],
      lanes: [],
      ...changes,
    });
    if (result.kind !== "granted") throw new Error("The change was fenced.");
    return result;
  }

  const nodesOf = (slots: readonly { readonly node: string }[]) => slots.map(({ node }) => node).sort();
  const slotsOf = async (lane: string) => {
    const slots = await fixture.store.limits.slots({ lane }, 100);
    return {
      held: nodesOf(slots.filter(({ isWaiting }) => !isWaiting)),
      waiting: nodesOf(slots.filter(({ isWaiting }) => isWaiting)),
    };
  };

  test("steps get the free slots, the others wait, and a slot that is given back goes to the next step", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(2);
    const steps = [1, 2, 3, 4].map(() => requestFor(lane));
    for (const step of steps) await change(worker, { asked: [step] });
    const [a, b, c, d] = steps.map(({ node }) => node) as [string, string, string, string];
    expect(await slotsOf(lane)).toEqual({ held: [a, b], waiting: [c, d] });
    const { held } = await change(worker, { released: [steps[0] as StepSlotRequest] });
    expect(nodesOf(held)).toEqual([b, c]);
    await change(worker, { released: [steps[3], steps[1], steps[2]] as StepSlotRequest[] });
    expect(await slotsOf(lane)).toEqual({ held: [], waiting: [] });
  });

  test("a higher priority comes first, and asking twice changes nothing", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(1);
    const holder = requestFor(lane);
    await change(worker, { asked: [holder] });
    const [plain, urgent] = [requestFor(lane), requestFor(lane, { priority: 5 })];
    await change(worker, { asked: [plain] });
    await change(worker, { asked: [urgent, plain] });
    await change(worker, { asked: [holder] });
    expect((await slotsOf(lane)).held).toEqual([holder.node]);
    expect(nodesOf((await change(worker, { released: [holder] })).held)).toEqual([urgent.node]);
    expect(nodesOf((await change(worker, { released: [urgent] })).held)).toEqual([plain.node]);
  });

  test("a slot may go to a step of another worker, which finds it", async () => {
    const [one, two] = [await fixture.registerWorker(), await fixture.registerWorker()];
    const lane = await newLane(1);
    const [first, second] = [requestFor(lane), requestFor(lane)];
    await change(one, { asked: [first] });
    expect((await change(two, { asked: [second] })).held).toEqual([]);
    expect((await change(one, { released: [first] })).held).toEqual([]);
    expect(nodesOf((await change(two, { lanes: [lane] })).held)).toEqual([second.node]);
  });

  test("the steps of a dead worker neither hold slots nor wait", async () => {
    const [dying, other] = [await fixture.registerWorker(), await fixture.registerWorker()];
    const lane = await newLane(1);
    await change(dying, { asked: [requestFor(lane), requestFor(lane)] });
    const step = requestFor(lane);
    expect((await change(other, { asked: [step] })).held).toEqual([]);
    await fixture.store.deregisterWorker(dying);
    const late = await fixture.store.limits.changeStepSlots({
      fence: dying,
      asked: [requestFor(lane)],
      released: [],
      lanes: [],
    });
    expect(late).toEqual({ kind: "fenced" });
    expect(nodesOf((await change(other, { lanes: [lane] })).held)).toEqual([step.node]);
  });

  test("the units of a step move the pace on, and can be corrected", async () => {
    const worker = await fixture.registerWorker();
    const lane = laneIdOf(await newLimit(null, { rate: { limit: 100, perMs: hour, burst: 0 } }), "");
    const [large, next] = [requestFor(lane, { units: 50 }), requestFor(lane)];
    const first = await change(worker, { asked: [large] });
    expect(nodesOf(first.held)).toEqual([large.node]);
    const second = await change(worker, { asked: [next] });
    expect(nodesOf(second.held)).toEqual([large.node]);
    expect(second.nextAt).toBeGreaterThan(second.at + 0.4 * hour);
    expect(second.nextAt).toBeLessThanOrEqual(second.at + 0.5 * hour);
    await fixture.store.limits.addUnits(lane, 10);
    const third = await change(worker, { lanes: [lane] });
    expect((third.nextAt as number) - (second.nextAt as number)).toBe(0.1 * hour);
    // Of the 60 units, none was used.
    await fixture.store.limits.addUnits(lane, -60);
    expect(nodesOf((await change(worker, { lanes: [lane] })).held)).toEqual([large.node, next.node].sort());
  });

  test("steps and runs share the slots of a limit, and waiting steps come first", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(1);
    const runs = await startSorted(2, [lane]);
    await admit(worker, runs);
    const step = requestFor(lane);
    expect((await change(worker, { asked: [step] })).held).toEqual([]);
    await finishRuns(worker, [runs[0]?.id as string]);
    const hints: Hint[] = [];
    fixture.store.watch((hint) => hints.push(hint));
    await fixture.store.limits.wake([{ lane, count: 1 }]);
    expect(hints.map(({ kind }) => kind)).toContain("slots");
    expect((await admit(worker, runs)).tasks).toEqual([]);
    expect(nodesOf((await change(worker, { lanes: [lane] })).held)).toEqual([step.node]);
    expect((await admit(worker, runs)).tasks).toEqual([]);
    const { lanesToWake } = await change(worker, { released: [step] });
    expect(lanesToWake).toEqual([{ lane, count: 1 }]);
    await fixture.store.limits.wake(lanesToWake);
    expect(idsOf((await admit(worker, runs)).tasks)).toEqual([runs[1]?.id]);
  });

  test("a run that is parked gives back the slots of its steps", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(1);
    const run = await fixture.startOwned(worker);
    await change(worker, { asked: [requestFor(lane, { runId: run.id }), requestFor(lane, { runId: run.id })] });
    await fixture.commitTransition(worker, transition(run.id, { next: park("waiting", { releasesSlots: true }) }));
    expect(await inUse(lane)).toBe(0);
  });

  test("workers that change slots at the same time never grant more than there are", async () => {
    const stores = fixture.harness.sharesAcrossInstances
      ? [fixture.store, await fixture.openAnother(), await fixture.openAnother()]
      : [fixture.store, fixture.store, fixture.store];
    const lane = await newLane(3);
    const work = async (store: (typeof stores)[number]) => {
      const fence = await fixture.registerWorker({}, store);
      const changeHere = async (changes: Partial<StepSlotChanges>) => {
        const result = await store.limits.changeStepSlots({ fence, asked: [], released: [], lanes: [], ...changes });
        if (result.kind !== "granted") throw new Error("The change was fenced.");
        return result.held;
      };
      let left = 20;
      let held = await changeHere({ asked: Array.from({ length: left }, () => requestFor(lane)) });
      while (left > 0) {
        expect((await slotsOf(lane)).held.length).toBeLessThanOrEqual(3);
        const released = held.slice(0, 2);
        left -= released.length;
        held = await changeHere({ released, lanes: [lane] });
      }
    };
    await Promise.all(stores.map(work));
    expect(await slotsOf(lane)).toEqual({ held: [], waiting: [] });
  });
}
