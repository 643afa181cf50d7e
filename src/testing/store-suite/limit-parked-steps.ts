/** Limits: runs that are parked while their steps wait for slots. */
import { laneIdOf } from "../../core/limits/lane.js";
import { looksAgainMs, offeredMs } from "../../core/limits/lane-state.js";
import type { LimitSettings, StepSlotChanges, StepSlotRequest } from "../../store/contract/limits.js";
import type { Fence, NewRun, Store } from "../../store/contract/store.js";
import { batch, finish, newRun, newRuns, park, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { createLimitFixture } from "./limit-fixture.js";

const hour = 3_600_000;

export function limitParkedStepTests(fixture: Fixture): void {
  const { test, expect } = fixture;
  const { sort, classOf, admit, idsOf } = createLimitFixture(fixture);

  /** A store on a clock of its own, and what a worker would do with the steps of runs. */
  async function open() {
    const time = { now: 1_700_000_000_000 };
    const store = await fixture.open({ clock: () => time.now });
    // Lanes that other tests have left behind are not looked at.
    await store.limits.offerSlots();
    let count = 0;

    const newLane = async (settings: Partial<LimitSettings>, key = "") => {
      const name = uniqueName("limit");
      await store.limits.register([{ concurrency: null, rate: null, isHeldOpen: false, ...settings, name }]);
      return laneIdOf(name, key);
    };
    const requestFor = (run: NewRun, lane: string, overrides: Partial<StepSlotRequest> = {}): StepSlotRequest => {
      time.now += 1;
      return { runId: run.id, node: `${++count} call`, lane, priority: 0, units: 1, ...overrides };
    };
    const change = async (fence: Fence, changes: Partial<StepSlotChanges>) => {
      const result = await store.limits.changeStepSlots({ fence, asked: [], released: [], lanes: [], ...changes });
      if (result.kind !== "granted") throw new Error("The change was fenced.");
      return { ...result, nodes: result.held.map(({ node }) => node) };
    };
    const newOwned = (worker: Fence) => fixture.startOwned(worker, {}, store);
    const parkRun = (worker: Fence, run: NewRun) =>
      fixture.commitTransition(worker, transition(run.id, { next: park("waiting") }), store);
    /** A run whose step waits in the lane, and which is parked. */
    const newParked = async (worker: Fence, lane: string, overrides: Partial<StepSlotRequest> = {}) => {
      const run = await newOwned(worker);
      const request = requestFor(run, lane, overrides);
      await change(worker, { asked: [request] });
      await change(worker, { left: [request] });
      await parkRun(worker, run);
      return { run, request };
    };
    const stateOf = async ({ id }: NewRun) => (await fixture.task(id, store))?.state;
    const claim = (worker: Fence, run: NewRun) =>
      fixture.claimOne(worker, [{ workflow: run.workflow, version: "" }], store);
    const rows = async (lane: string) =>
      (await store.limits.slots({ lane }, 1_000)).map(({ runId, isWaiting, owner }) => ({ runId, isWaiting, owner }));
    /** The places of these runs in a lane in which no other run has one. */
    const places = async (lane: string, ...runs: readonly { readonly run: NewRun }[]) => {
      const all = await rows(lane);
      expect(all).toHaveLength(runs.length);
      return runs.map(({ run }) => {
        const row = all.find(({ runId }) => runId === run.id);
        const place = row?.isWaiting === true ? "waits" : "offered";
        return row === undefined ? "none" : row.owner === null ? place : `${place} with a worker`;
      });
    };
    const advance = async (ms: number) => {
      time.now += ms;
      return store.limits.offerSlots();
    };
    const register = () => fixture.registerWorker({}, store);
    return {
      time,
      store,
      newLane,
      requestFor,
      change,
      newOwned,
      parkRun,
      newParked,
      stateOf,
      claim,
      rows,
      places,
      advance,
      register,
    };
  }

  const isOffered = ({ id }: NewRun) => ({ runId: id, isWaiting: false, owner: null });

  test("a parked run keeps its place, and a free slot is offered to it, which makes it due", async () => {
    const t = await open();
    const worker = await t.register();
    const lane = await t.newLane({ concurrency: 1 });
    const holder = t.requestFor(await t.newOwned(worker), lane);
    await t.change(worker, { asked: [holder] });
    const { run, request } = await t.newParked(worker, lane);
    expect(await t.stateOf(run)).toBe("parked");
    const later = t.requestFor(await t.newOwned(worker), lane);
    expect((await t.change(worker, { asked: [later] })).looksAt).not.toBeNull();
    const { nodes, looksAt, at } = await t.change(worker, { released: [holder] });
    expect(nodes).toEqual([]);
    expect(looksAt).toBeLessThanOrEqual(at + offeredMs);
    expect(await t.stateOf(run)).toBe("ready");
    expect((await t.rows(lane)).filter(({ owner }) => owner === null)).toEqual([isOffered(run)]);
    await t.claim(worker, run);
    const again = t.requestFor(run, lane);
    expect(again.node).not.toBe(request.node);
    expect((await t.change(worker, { asked: [again] })).nodes).toEqual([again.node]);
    expect((await t.change(worker, { released: [again] })).nodes).toEqual([later.node]);
    await t.change(worker, { released: [later] });
    expect(await t.rows(lane)).toEqual([]);
    expect((await t.change(worker, { lanes: [lane] })).looksAt).toBeNull();
  });

  test("a run that comes back before it is offered a slot waits on with the age that it had", async () => {
    const t = await open();
    const [worker, other] = [await t.register(), await t.register()];
    const lane = await t.newLane({ concurrency: 1 });
    const holder = t.requestFor(await t.newOwned(worker), lane);
    await t.change(worker, { asked: [holder] });
    const { run } = await t.newParked(worker, lane);
    const later = t.requestFor(await t.newOwned(other), lane);
    await t.change(other, { asked: [later] });
    const again = t.requestFor(run, lane);
    await t.change(worker, { asked: [again] });
    expect(await t.rows(lane)).toHaveLength(3);
    expect((await t.change(worker, { released: [holder] })).nodes).toEqual([again.node]);
    expect((await t.change(other, { lanes: [lane] })).nodes).toEqual([]);
  });

  test("an offer lapses, the slot goes to the next, and the run that comes late is the first of those that wait", async () => {
    const t = await open();
    const worker = await t.register();
    const lane = await t.newLane({ concurrency: 1 });
    const holder = t.requestFor(await t.newOwned(worker), lane);
    await t.change(worker, { asked: [holder] });
    const [first, second, third] = [
      await t.newParked(worker, lane),
      await t.newParked(worker, lane),
      await t.newParked(worker, lane),
    ];
    await t.change(worker, { released: [holder] });
    expect((await t.advance(offeredMs - 10)).nextAt).not.toBeNull();
    expect(await t.places(lane, first, second, third)).toEqual(["offered", "waits", "waits"]);
    await t.advance(10);
    expect(await t.places(lane, first, second, third)).toEqual(["waits", "offered", "waits"]);
    await t.claim(worker, first.run);
    const late = t.requestFor(first.run, lane);
    expect((await t.change(worker, { asked: [late] })).nodes).toEqual([]);
    await t.claim(worker, second.run);
    const taken = t.requestFor(second.run, lane);
    await t.change(worker, { asked: [taken] });
    // The run that came late is older, so it takes the slot before the one to which it was offered.
    const held = await t.change(worker, { lanes: [lane] });
    expect(held.nodes).toEqual([late.node]);
    expect((await t.change(worker, { released: [late] })).nodes).toEqual([taken.node]);
    await t.change(worker, { released: [taken] });
    expect(await t.rows(lane)).toEqual([isOffered(third.run)]);
  });

  test("a run that let an offer lapse is not offered another before it was executed, and is not forgotten after that", async () => {
    const t = await open();
    const worker = await t.register();
    const lane = await t.newLane({ concurrency: 1 });
    const holder = t.requestFor(await t.newOwned(worker), lane);
    await t.change(worker, { asked: [holder] });
    const { run } = await t.newParked(worker, lane);
    await t.change(worker, { released: [holder] });
    await t.advance(offeredMs);
    await t.advance(looksAgainMs);
    expect(await t.places(lane, { run })).toEqual(["waits"]);
    expect((await t.store.limits.usage([lane.split("\t")[0] as string], 10))[0]).toMatchObject({
      inUse: 0,
      waitingSteps: 1,
    });
    await t.claim(worker, run);
    // Its code does not make the call any more.
    await t.parkRun(worker, run);
    await t.advance(looksAgainMs);
    expect(await t.rows(lane)).toEqual([]);
    expect(await t.stateOf(run)).toBe("ready");
    expect((await t.change(worker, { lanes: [lane] })).looksAt).toBeNull();
  });

  test("slots of a dead worker are offered, although no worker executes the run", async () => {
    const t = await open();
    const [dying, other] = [await t.register(), await t.register()];
    const lane = await t.newLane({ concurrency: 1 });
    await t.change(dying, { asked: [t.requestFor(await t.newOwned(dying), lane)] });
    const { run } = await t.newParked(dying, lane);
    await t.store.deregisterWorker(dying);
    expect((await t.store.heartbeat(other)).nextOfferInMs).not.toBeNull();
    await t.advance(looksAgainMs);
    expect(await t.rows(lane)).toEqual([isOffered(run)]);
    expect(await t.stateOf(run)).toBe("ready");
  });

  test("runs that have ended or are paused hold no offer, and leave nothing behind", async () => {
    const t = await open();
    const worker = await t.register();
    const lane = await t.newLane({ concurrency: 1 });
    const holder = t.requestFor(await t.newOwned(worker), lane);
    await t.change(worker, { asked: [holder] });
    const [ended, cleaned, paused, last] = [
      await t.newParked(worker, lane),
      await t.newParked(worker, lane),
      await t.newParked(worker, lane),
      await t.newParked(worker, lane),
    ];
    const end = (run: NewRun, releasesSlots?: true) =>
      fixture.commitTransition(
        null,
        transition(run.id, { next: finish("canceled", releasesSlots && { releasesSlots }) }),
        t.store,
      );
    await end(ended.run);
    await end(cleaned.run, true);
    expect(await t.rows(lane)).toHaveLength(4);
    await fixture.commitTransition(null, transition(paused.run.id, { next: park("paused") }), t.store);
    await t.change(worker, { released: [holder] });
    expect(await t.rows(lane)).toEqual([isOffered(last.run)]);
    await end(last.run);
    await t.advance(offeredMs);
    expect(await t.rows(lane)).toEqual([]);
    expect((await t.change(worker, { lanes: [lane] })).looksAt).toBeNull();
  });

  test("a step that gets its slot in the same moment does not leave", async () => {
    const t = await open();
    const worker = await t.register();
    const lane = await t.newLane({ concurrency: 1 });
    const holder = t.requestFor(await t.newOwned(worker), lane);
    const request = t.requestFor(await t.newOwned(worker), lane);
    for (const asked of [holder, request]) await t.change(worker, { asked: [asked] });
    expect((await t.change(worker, { released: [holder], left: [request] })).nodes).toEqual([request.node]);
    expect((await t.change(worker, { left: [request] })).nodes).toEqual([request.node]);
    await t.change(worker, { released: [request] });
    expect(await t.rows(lane)).toEqual([]);
  });

  test("an offer to a run that is being parked at that moment lapses, and the run is made due", async () => {
    const t = await open();
    const worker = await t.register();
    const lane = await t.newLane({ concurrency: 1 });
    const holder = t.requestFor(await t.newOwned(worker), lane);
    const run = await t.newOwned(worker);
    const request = t.requestFor(run, lane);
    for (const asked of [holder, request]) await t.change(worker, { asked: [asked] });
    await t.change(worker, { left: [request] });
    await t.change(worker, { released: [holder] });
    await t.parkRun(worker, run);
    expect(await t.stateOf(run)).toBe("parked");
    await t.advance(offeredMs);
    expect(await t.stateOf(run)).toBe("ready");
    expect(await t.rows(lane)).toEqual([]);
  });

  test("an offer takes nothing of the rate before the body begins, and the next step does not overtake it", async () => {
    const t = await open();
    const worker = await t.register();
    const lane = await t.newLane({ rate: { limit: 1, perMs: hour, burst: 0 } });
    const first = t.requestFor(await t.newOwned(worker), lane);
    await t.change(worker, { asked: [first] });
    await t.change(worker, { released: [first] });
    const { run } = await t.newParked(worker, lane);
    const { at, looksAt, nextAt } = await t.change(worker, { lanes: [lane] });
    expect(nextAt).toBeGreaterThan(at + 0.9 * hour);
    expect(looksAt).toBeLessThanOrEqual(at + looksAgainMs);
    await t.advance(looksAgainMs);
    expect(await t.stateOf(run)).toBe("parked");
    await t.advance(hour);
    expect(await t.stateOf(run)).toBe("ready");
    const overtaking = t.requestFor(await t.newOwned(worker), lane);
    expect((await t.change(worker, { asked: [overtaking] })).nodes).toEqual([]);
    await t.advance(1_000);
    await t.claim(worker, run);
    const again = t.requestFor(run, lane, { units: 2 });
    const taken = await t.change(worker, { asked: [again] });
    expect(taken.nodes).toEqual([again.node]);
    expect(taken.nextAt).toBe(taken.at + 2 * hour);
  });

  test("an offer that lapses leaves the whole rate to the next", async () => {
    const t = await open();
    const worker = await t.register();
    const lane = await t.newLane({ rate: { limit: 1, perMs: hour, burst: 0 } });
    const first = t.requestFor(await t.newOwned(worker), lane);
    await t.change(worker, { asked: [first] });
    const { run } = await t.newParked(worker, lane);
    await t.advance(hour);
    expect((await t.rows(lane)).filter(({ owner }) => owner === null)).toEqual([isOffered(run)]);
    await t.advance(offeredMs);
    const next = t.requestFor(await t.newOwned(worker), lane);
    expect((await t.change(worker, { asked: [next] })).nodes).toContain(next.node);
  });

  test("a parked run comes before runs that wait for the same limit, also if a run gave the slot back", async () => {
    const t = await open();
    const worker = await t.register();
    const lane = await t.newLane({ concurrency: 1 });
    const runs = newRuns(2);
    await fixture.startAll(runs, null, t.store);
    await sort(runs, (run) => classOf(run, [lane]), { store: t.store });
    const [begun] = idsOf((await admit(worker, runs, 10, t.store)).tasks);
    const { run } = await t.newParked(worker, lane);
    const next = finish("completed", { releasesSlots: true });
    await fixture.commitTransition(worker, transition(begun as string, { next }), t.store);
    await t.store.limits.wake([{ lane, count: 1 }]);
    expect(await t.stateOf(run)).toBe("ready");
    expect((await admit(worker, runs, 10, t.store)).tasks).toEqual([]);
    await t.claim(worker, run);
    const again = t.requestFor(run, lane);
    expect((await t.change(worker, { asked: [again] })).nodes).toEqual([again.node]);
    const { lanesToWake } = await t.change(worker, { released: [again] });
    expect(lanesToWake).toEqual([{ lane, count: 1 }]);
    await t.store.limits.wake(lanesToWake);
    expect((await admit(worker, runs, 10, t.store)).tasks).toHaveLength(1);
  });

  test("workers that leave, come back and look at the same time never hold or offer more than there are", async () => {
    const limit = 2;
    const clock = await open();
    const lane = await clock.newLane({ concurrency: limit });
    const stores = fixture.harness.sharesAcrossInstances
      ? [
          clock.store,
          await fixture.open({ clock: () => clock.time.now }),
          await fixture.open({ clock: () => clock.time.now }),
        ]
      : [clock.store, clock.store, clock.store];
    const check = async () => {
      const slots = await clock.store.limits.slots({ lane }, 1_000);
      expect(slots.filter(({ isWaiting }) => !isWaiting).length).toBeLessThanOrEqual(limit);
    };
    const work = async (store: Store, index: number) => {
      const fence = await fixture.registerWorker({}, store);
      const workflow = uniqueName("workflow");
      const open = new Set(Array.from({ length: 4 }, () => newRun({ workflow, due: { kind: "owned" } })));
      await fixture.commit(batch(fence, [], [...open]), store);
      const owned = new Set(open);
      let count = 0;
      for (let round = 0; open.size > 0; round += 1) {
        if (round > 500) throw new Error(`${open.size} runs wait in vain.`);
        clock.time.now += 400;
        for (const run of [...owned]) {
          const request: StepSlotRequest = {
            runId: run.id,
            node: `${index}.${++count} call`,
            lane,
            priority: 0,
            units: 1,
          };
          const changes = { fence, asked: [request], released: [], lanes: [] };
          const result = await store.limits.changeStepSlots(changes);
          const left = await store.limits.changeStepSlots({ ...changes, asked: [], left: [request] });
          if (result.kind !== "granted" || left.kind !== "granted") throw new Error("The change was fenced.");
          await check();
          owned.delete(run);
          if (left.held.some(({ node }) => node === request.node)) {
            open.delete(run);
            await store.limits.changeStepSlots({ ...changes, asked: [], released: [request] });
            await fixture.commitTransition(fence, transition(run.id, { next: finish("completed") }), store);
          } else await fixture.commitTransition(fence, transition(run.id, { next: park("waiting") }), store);
        }
        await store.limits.offerSlots();
        await check();
        const { tasks } = await fixture.claim(fence, [{ workflow, version: "" }], {}, store);
        for (const { run } of tasks) for (const candidate of open) if (candidate.id === run.id) owned.add(candidate);
      }
    };
    await Promise.all(stores.map(work));
    expect(await clock.rows(lane)).toEqual([]);
  });
}
