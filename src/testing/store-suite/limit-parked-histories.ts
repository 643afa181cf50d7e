/**
 * Random histories of steps whose runs are parked: after each operation the store has the same slots and offers as the memory store,
 * never more than the limit allows, and at the end nothing is left. The histories are drawn from fixed seeds.
 */
import { laneIdOf } from "../../core/limits/lane.js";
import type { StepSlotRequest } from "../../store/contract/limits.js";
import type { Fence, NewRun, NextTaskState, Store } from "../../store/contract/store.js";
import { MemoryStore } from "../../store/memory/index.js";
import { batch, event, finish, newRun, park, transition, uniqueName, workerInfo } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { SeededRandom } from "./seeded-random.js";

const seeds = 8;
const operationsPerHistory = 120;

interface OpenRun {
  readonly run: NewRun;
  logLength: number;
  /** Its step that waits or holds a slot, while the worker owns the run. */
  request: StepSlotRequest | null;
  state: "owned" | "parked" | "paused";
}

export function limitParkedHistoryTests(fixture: Fixture): void {
  for (let seed = 1; seed <= fixture.rounds(seeds); seed += 1)
    fixture.test(
      `steps of runs that are parked have the places that the memory store gives them (seed ${seed})`,
      async () => {
        const history = await History.begin(fixture, seed);
        for (let count = 0; count < operationsPerHistory; count += 1) await history.performOne();
        await history.endAll();
      },
    );
}

class History {
  readonly #fixture: Fixture;
  readonly #random: SeededRandom;
  readonly #stores: readonly [Store, MemoryStore];
  readonly #time: { now: number };
  readonly #fence: Fence;
  readonly #lane: string;
  readonly #limit: number;
  readonly #workflow = uniqueName("parked");
  readonly #open = new Set<OpenRun>();
  #stepCount = 0;

  private constructor(
    fixture: Fixture,
    random: SeededRandom,
    stores: readonly [Store, MemoryStore],
    time: { now: number },
    fence: Fence,
  ) {
    this.#fixture = fixture;
    this.#random = random;
    this.#stores = stores;
    this.#time = time;
    this.#fence = fence;
    this.#lane = laneIdOf(uniqueName("limit"), "");
    this.#limit = 1 + random.integerBelow(3);
  }

  static async begin(fixture: Fixture, seed: number): Promise<History> {
    const time = { now: 1_800_000_000_000 + seed * 1_000_000_000 };
    const clock = () => time.now;
    const stores = [await fixture.open({ clock }), new MemoryStore({ clock })] as const;
    const info = workerInfo({ leaseMs: 3_600_000 });
    const [fence] = [await stores[0].registerWorker(info), await stores[1].registerWorker(info)];
    const history = new History(fixture, new SeededRandom(seed), stores, time, fence);
    const name = history.#lane.split("\t")[0] as string;
    const rate = seed % 3 === 0 ? { limit: 2, perMs: 3_000, burst: 1 } : null;
    await history.#both((store) =>
      store.limits.register([{ name, concurrency: history.#limit, rate, isHeldOpen: false }]),
    );
    return history;
  }

  async performOne(): Promise<void> {
    this.#time.now += 1 + this.#random.integerBelow(400);
    await this.#random.pickWeighted<() => Promise<void>>([
      [4, () => this.#start()],
      [
        6,
        () =>
          this.#with(
            "owned",
            ({ request }) => request === null,
            (run) => this.#ask(run),
          ),
      ],
      [
        6,
        () =>
          this.#with(
            "owned",
            ({ request }) => request !== null,
            (run) => this.#leave(run),
          ),
      ],
      [5, () => this.#endHeld()],
      [5, () => this.#claim()],
      [
        1,
        () =>
          this.#with(
            "parked",
            () => true,
            (run) => this.#cancel(run),
          ),
      ],
      [
        1,
        () =>
          this.#with(
            "parked",
            () => true,
            (run) => this.#pause(run),
          ),
      ],
      [
        1,
        () =>
          this.#with(
            "paused",
            () => true,
            (run) => this.#resume(run),
          ),
      ],
      [2, () => this.#look(this.#random.integerBelow(6_000))],
    ])();
    await this.#compare();
  }

  async endAll(): Promise<void> {
    for (let round = 0; this.#open.size > 0; round += 1) {
      if (round > 500) throw new Error(`${this.#open.size} runs wait in vain.`);
      for (const run of [...this.#open]) if (run.state === "paused") await this.#resume(run);
      await this.#claim();
      for (const run of [...this.#open]) if (run.state === "owned" && run.request === null) await this.#ask(run);
      await this.#endHeld();
      for (const run of [...this.#open]) if (run.state === "owned") await this.#leave(run);
      await this.#look(1_000);
      await this.#compare();
    }
    await this.#look(6_000);
    await this.#look(6_000);
    this.#fixture.expect(await this.#rows(this.#stores[0]), "what is left").toEqual([]);
  }

  async #start(): Promise<void> {
    const run = newRun({ workflow: this.#workflow, due: { kind: "owned" } });
    await this.#both((store) => store.commit(batch(this.#fence, [], [run])));
    this.#open.add({ run, logLength: 0, request: null, state: "owned" });
  }

  async #ask(open: OpenRun): Promise<void> {
    this.#stepCount += 1;
    const units = 1 + this.#random.integerBelow(2);
    const priority = this.#random.chance(0.1) ? 1 : 0;
    open.request = { runId: open.run.id, node: `${this.#stepCount} call`, lane: this.#lane, priority, units };
    await this.#change({ asked: [open.request] });
  }

  /** A run whose step has got its slot meanwhile is not parked. */
  async #leave(open: OpenRun): Promise<void> {
    const { request } = open;
    if (request === null) return;
    const held = await this.#change({ left: [request] });
    if (held.includes(request.node)) return;
    open.request = null;
    open.state = "parked";
    await this.#commit(this.#fence, open, park("waiting"));
  }

  async #endHeld(): Promise<void> {
    const held = await this.#change({});
    for (const open of [...this.#open]) {
      if (open.request === null || !held.includes(open.request.node)) continue;
      await this.#change({ released: [open.request] });
      await this.#commit(this.#fence, open, finish("completed"));
      this.#open.delete(open);
      return;
    }
  }

  async #claim(): Promise<void> {
    const claimed = await this.#both(async (store) => {
      const routes = [{ workflow: this.#workflow, version: "" }];
      const result = await store.claim({ fence: this.#fence, routes, limit: 100, limitPerRoute: 100 });
      return result.kind === "claimed" ? result.tasks.map(({ run }) => run.id).sort() : [];
    });
    for (const open of this.#open) if (claimed.includes(open.run.id)) open.state = "owned";
  }

  async #cancel(open: OpenRun): Promise<void> {
    const isKnown = this.#random.chance(0.5);
    if (await this.#commit(null, open, finish("canceled", isKnown ? { releasesSlots: true } : {})))
      this.#open.delete(open);
  }

  async #pause(open: OpenRun): Promise<void> {
    if (await this.#commit(null, open, park("paused"))) open.state = "paused";
  }

  async #resume(open: OpenRun): Promise<void> {
    if (await this.#commit(null, open, park("waiting", { wakeInMs: 0 }))) open.state = "parked";
  }

  async #look(ms: number): Promise<void> {
    this.#time.now += ms;
    await this.#both((store) => store.limits.offerSlots().then(() => null));
  }

  async #change(changes: { asked?: StepSlotRequest[]; released?: StepSlotRequest[]; left?: StepSlotRequest[] }) {
    return this.#both(async (store) => {
      const request = { asked: [], released: [], lanes: [this.#lane], ...changes };
      const result = await store.limits.changeStepSlots({ fence: this.#fence, ...request });
      if (result.kind !== "granted") throw new Error("The change was fenced.");
      return result.held.map(({ node }) => node).sort();
    });
  }

  async #commit(fence: Fence | null, open: OpenRun, next: NextTaskState): Promise<boolean> {
    const afterSeq = open.logLength;
    const isCommitted = await this.#both(async (store) => {
      const change = transition(open.run.id, { afterSeq, events: [event("moved")], next });
      return (await store.commit(batch(fence, [change]))).kind === "committed";
    });
    if (isCommitted) open.logLength += 1;
    return isCommitted;
  }

  async #compare(): Promise<void> {
    const [rows, expected] = [await this.#rows(this.#stores[0]), await this.#rows(this.#stores[1])];
    this.#fixture.expect(rows, "the slots").toEqual(expected);
    const held = rows.filter((row) => row.includes("held"));
    this.#fixture.expect(held.length <= this.#limit, "no more slots are held than there are").toBe(true);
    await this.#both(async (store) => {
      const tasks = await store.tasks([...this.#open].map(({ run }) => run.id));
      return tasks.map(({ runId, state }) => `${runId} ${state}`).sort();
    });
  }

  async #rows(store: Store): Promise<readonly string[]> {
    const slots = await store.limits.slots({ lane: this.#lane }, 1_000);
    return slots.map(
      ({ runId, node, isWaiting, owner, at }) =>
        `${runId} ${node} ${isWaiting ? "waits" : "held"} ${owner ?? "parked"} ${at}`,
    );
  }

  #with(
    state: OpenRun["state"],
    isRight: (run: OpenRun) => boolean,
    act: (run: OpenRun) => Promise<void>,
  ): Promise<void> {
    const chosen = this.#random.pick([...this.#open].filter((run) => run.state === state && isRight(run)));
    return chosen === undefined ? this.#start() : act(chosen);
  }

  /** Both stores give the same answer. */
  async #both<T>(act: (store: Store) => Promise<T>): Promise<T> {
    const [answer, expected] = [await act(this.#stores[0]), await act(this.#stores[1])];
    if (typeof answer !== "object" || Array.isArray(answer))
      this.#fixture.expect(answer, "the answer").toEqual(expected);
    return answer;
  }
}
