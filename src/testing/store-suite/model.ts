/**
 * Random sequences of operations, with all combinations of what a batch can contain: the store must end in the same state
 * as the memory store. The sequences are drawn from fixed seeds, and the name of a failed test contains its seed.
 */

import { keepOwner } from "../../core/run/transition.js";
import type { NewRun, NextTaskState, Route, RunFilter, Transition, WorkerLoad } from "../../store/contract/store.js";
import { events, finish, newId, newMessage, newRun, park, transition, uniqueName } from "./builders.js";
import { ComparedStores, type ComparedWorker } from "./compared-stores.js";
import type { Fixture } from "./fixture.js";
import { SeededRandom } from "./seeded-random.js";

const seeds = 12;
const changingRouteSeeds = 6;
const operations = 60;

export function modelTests(fixture: Fixture): void {
  for (let seed = 1; seed <= fixture.rounds(seeds); seed += 1) {
    fixture.test(`random operations have the same result as in the memory store (seed ${seed})`, () =>
      runRandomOperations(fixture, seed, "fixed"),
    );
  }
  for (let seed = 1; seed <= fixture.rounds(changingRouteSeeds); seed += 1) {
    fixture.test(
      `random operations that change routes have the same result as in the memory store (seed ${seed})`,
      () => runRandomOperations(fixture, seed, "changing"),
    );
  }
}

async function runRandomOperations(fixture: Fixture, seed: number, routeMode: RouteMode): Promise<void> {
  const stores = await ComparedStores.open(fixture);
  const randomOperations = new RandomOperations(stores, new SeededRandom(seed), routeMode);
  await stores.registerWorker();
  await stores.registerWorker();
  for (let count = 1; count <= operations; count += 1) {
    await randomOperations.performOne();
    if (count % 4 === 0) await stores.compare();
  }
  await stores.compare();
}

/** Runs that change their routes have no keys: only runs that stay on the route of their workflow can have keys. */
type RouteMode = "fixed" | "changing";

class RandomOperations {
  readonly #stores: ComparedStores;
  readonly #random: SeededRandom;
  readonly #changesRoutes: boolean;
  readonly #routes: Route[];
  /** The routes that runs may change to, in all versions; the last is not the name of a workflow. */
  readonly #otherRoutes: readonly string[];
  readonly #heroes = [uniqueName("hero"), uniqueName("hero"), uniqueName("hero")];

  constructor(stores: ComparedStores, random: SeededRandom, routeMode: RouteMode) {
    this.#stores = stores;
    this.#random = random;
    this.#changesRoutes = routeMode === "changing";
    const [first, second] = [uniqueName("model"), uniqueName("model")];
    this.#routes = [
      { workflow: first, version: "" },
      { workflow: first, version: "v2" },
      { workflow: second, version: "" },
    ];
    this.#otherRoutes = [first, second, `${first}\tstep`];
  }

  async performOne(): Promise<void> {
    const stores = this.#stores;
    const random = this.#random;
    stores.time.now += random.integerBelow(3_000);
    const worker = random.pick(stores.workers) as ComparedWorker;
    const weightedOperations: [weight: number, move: () => Promise<unknown>][] = [
      [
        3,
        () =>
          stores.commit(
            { worker: null, transitions: [], starts: this.#randomStarts(1 + random.integerBelow(6)) },
            false,
          ),
      ],
      [4, () => stores.claim(worker, this.#claimedRoutes())],
      [9, () => this.#commitAsWorker(worker)],
      [3, () => this.#commitAsClient()],
      [3, () => stores.send(this.#randomMessages(this.#anyRunIds(5)))],
      [1, () => stores.heartbeat(worker, this.#randomLoad())],
      [2, () => this.#compareRunList()],
      [1, () => this.#replaceWorker(worker)],
      [1, () => this.#commitAsDeadWorker()],
    ];
    await random.pickWeighted(weightedOperations)();
  }

  #randomLoad(): WorkerLoad | undefined {
    if (this.#random.chance(0.3)) return undefined;
    const executing = this.#random
      .sample(this.#routes, 2)
      .map(({ workflow, version }) => ({ route: workflow, version, count: 1 }));
    return { executing, loopLagMs: this.#random.chance(0.5) ? 0 : 250 };
  }

  async #commitAsWorker(worker: ComparedWorker): Promise<void> {
    const random = this.#random;
    const tasks = await this.#stores.model.tasks(this.#stores.runs.map(({ id }) => id));
    const ownedRunIds = tasks.filter(({ owner }) => owner === worker.id).map(({ runId }) => runId);
    const transitions: Transition[] = [];
    const chosen = random.sample(ownedRunIds, 6);
    const recipients = this.#anyRunIds(6).filter((id) => !chosen.includes(id));
    const nexts: NextTaskState[] = [];
    for (const runId of chosen) {
      const next = this.#randomNext();
      nexts.push(next);
      const inboxes = await this.#stores.model.inbox([runId]);
      const positions = [...(inboxes.get(runId) ?? []).keys()];
      transitions.push(
        transition(runId, {
          afterSeq: await this.#logLength(runId),
          events: events(random.integerBelow(4)),
          next,
          drainedInboxIds: random.chance(0.5) ? positions : random.sample(positions, 3),
          newChildren: random.chance(0.2) ? this.#randomChildren(runId) : [],
          // Each run gets messages of one transition only: the order between transitions of a batch is not defined.
          messages: random.chance(0.4) ? this.#randomMessages(recipients.splice(0, 2)) : [],
          releasedChildIds: random.chance(0.2) ? recipients.splice(0, 1) : [],
          cursors: random.chance(0.2) ? this.#randomCursors() : [],
        }),
      );
    }
    // If one batch ends a run and starts another with the same hero key, a store may accept or refuse the start. So a
    // batch that ends a run starts only runs without keys.
    const withKeys = !nexts.some(({ kind }) => kind === "finish");
    const starts = random.chance(0.4) ? this.#randomStarts(1 + random.integerBelow(3), withKeys, true) : [];
    await this.#stores.commit({ worker, transitions, starts }, random.chance(0.2));
  }

  async #commitAsClient(): Promise<void> {
    const random = this.#random;
    const chosen = this.#anyRunIds(random.chance(0.7) ? 1 : 3);
    const transitions: Transition[] = [];
    for (const runId of chosen) {
      const messages = this.#randomMessages(
        this.#anyRunIds(1).filter((id) => !chosen.includes(id) && transitions.length === 0),
      );
      const next = random.chance(0.3) ? finish("canceled", { error: "x" }) : this.#randomPark();
      const afterSeq = random.chance(0.9) ? await this.#logLength(runId) : 0;
      transitions.push(transition(runId, { afterSeq, events: events(1 + random.integerBelow(2)), next, messages }));
    }
    await this.#stores.commit({ worker: null, transitions, starts: [] }, random.chance(0.2));
  }

  async #commitAsDeadWorker(): Promise<void> {
    const worker = this.#random.pick(this.#stores.deregisteredWorkers);
    if (worker === undefined) return;
    const [runId] = this.#anyRunIds(1);
    const transitions =
      runId === undefined ? [] : [transition(runId, { afterSeq: await this.#logLength(runId), events: events(1) })];
    await this.#stores.commit({ worker, transitions, starts: this.#randomStarts(1) }, false);
    await this.#stores.heartbeat(worker);
    await this.#stores.claim(worker, this.#routes);
  }

  async #replaceWorker(worker: ComparedWorker): Promise<void> {
    if (this.#random.chance(0.5)) {
      await this.#stores.deregisterWorker(worker);
      await this.#stores.registerWorker();
    } else {
      this.#stores.workers.splice(this.#stores.workers.indexOf(worker), 1);
      await this.#stores.registerWorker(worker.id);
    }
  }

  async #compareRunList(): Promise<void> {
    const random = this.#random;
    const statuses = ["pending", "running", "waiting", "paused", "completed", "failed", "canceled"] as const;
    const from = await this.#stores.model.run(this.#anyRunIds(1)[0] ?? newId());
    const filter: RunFilter = {
      workflow: random.pick(this.#routes)?.workflow as string,
      limit: 1 + random.integerBelow(8),
      ...(random.chance(0.3) && { status: random.pick(statuses) as (typeof statuses)[number] }),
      ...(random.chance(0.2) && { active: random.chance(0.5) }),
      ...(random.chance(0.2) && { tag: random.pick(tags) as string }),
      ...(random.chance(0.2) && { createdAfter: this.#stores.time.now - random.integerBelow(50_000) }),
      ...(random.chance(0.4) && from !== null && { after: { createdAt: from.createdAt, id: from.id } }),
    };
    await this.#stores.expectSame(`runs of ${JSON.stringify(filter)}`, (store) => store.runs(filter));
    await this.#compareLogPage();
  }

  async #compareLogPage(): Promise<void> {
    const [runId] = this.#anyRunIds(1);
    if (runId === undefined) return;
    const page = { after: this.#random.integerBelow(8), limit: 1 + this.#random.integerBelow(5) };
    await this.#stores.expectSame(`page ${JSON.stringify(page)}`, (store) => store.log(runId, page));
  }

  #randomStarts(howMany: number, withKeys = true, canOwn = false): NewRun[] {
    const random = this.#random;
    const stores = this.#stores;
    const hasKeys = withKeys && !this.#changesRoutes;
    return Array.from({ length: howMany }, () => {
      const repeated = random.chance(0.1) ? random.pick(stores.runs) : undefined;
      if (repeated !== undefined) return { ...repeated, due: { kind: "now" } };
      const dues: NewRun["due"][] = [
        { kind: "now" },
        { kind: "held" },
        { kind: "in", ms: random.integerBelow(20_000) },
        { kind: "at", ms: stores.time.now - 5_000 + random.integerBelow(20_000) },
        { kind: canOwn ? "owned" : "now" },
      ];
      return newRun({
        ...(random.pick(this.#routes) as Route),
        priority: random.integerBelow(3) - 1,
        due: random.pick(dues) as NewRun["due"],
        tags: random.sample(tags, 2),
        startKey: hasKeys && random.chance(0.2) ? `key-${random.integerBelow(5)}` : null,
        heroKey: hasKeys && random.chance(0.2) ? (random.pick(this.#heroes) as string) : null,
      });
    });
  }

  #randomChildren(parentId: string): NewRun[] {
    const startedRuns = this.#randomStarts(1 + this.#random.integerBelow(2), false, true);
    const knownIds = new Set(this.#stores.runs.map(({ id }) => id));
    return startedRuns.map((run, index) =>
      knownIds.has(run.id) ? run : { ...run, parentId, parentNode: "n", ...this.#positionInParent(index) },
    );
  }

  #positionInParent(index: number): Pick<NewRun, "parentIndex" | "parentAttempt"> {
    return this.#random.chance(0.5)
      ? { parentIndex: index, parentAttempt: null }
      : { parentIndex: null, parentAttempt: index + 1 };
  }

  #randomNext(): NextTaskState {
    return this.#random.pickWeighted<NextTaskState>([
      [4, keepOwner],
      [4, this.#randomPark()],
      [2, finish("completed", { output: "o", startedAt: this.#random.chance(0.5) ? "now" : null })],
      [1, finish("failed", { error: "e", startedAt: 77 })],
    ]);
  }

  #randomPark(): NextTaskState {
    const random = this.#random;
    return park(random.pick(["pending", "waiting", "paused"] as const), {
      waiting: random.chance(0.5) ? `for ${random.integerBelow(100)}` : null,
      startedAt: random.pick([null, "now", 99] as const) ?? null,
      wakeAt: random.chance(0.3) ? this.#stores.time.now - 3_000 + random.integerBelow(20_000) : null,
      wakeInMs: random.chance(0.4) ? random.integerBelow(3) * 5_000 : null,
      ...(this.#changesRoutes && random.chance(0.4) && { route: random.pick(this.#otherRoutes) as string }),
      ...(this.#changesRoutes && random.chance(0.4) && { priority: random.integerBelow(5) - 2 }),
    });
  }

  #claimedRoutes(): readonly Route[] {
    if (!this.#changesRoutes) return this.#routes;
    const all = this.#otherRoutes.flatMap((workflow) => ["", "v2"].map((version) => ({ workflow, version })));
    return this.#random.sample(all, all.length);
  }

  #randomCursors(): Transition["cursors"] {
    const random = this.#random;
    return random.sample(["a", "b", "c"], 2).map((node) => ({
      node,
      ...(random.chance(0.6) && { cursor: random.chance(0.2) ? null : `${random.integerBelow(100)}` }),
      ...(random.chance(0.6) && { progress: random.chance(0.2) ? null : `${random.integerBelow(100)}` }),
    }));
  }

  #randomMessages(recipients: readonly string[]) {
    return recipients.flatMap((to) => {
      return Array.from({ length: 1 + this.#random.integerBelow(2) }, () =>
        newMessage(to, `${this.#random.integerBelow(1_000)}`),
      );
    });
  }

  /** Returns the ids of up to `maxCount` runs in any state, and sometimes the id of a run that does not exist. */
  #anyRunIds(maxCount: number): string[] {
    const ids = this.#random.sample(this.#stores.runs, maxCount).map(({ id }) => id);
    return this.#random.chance(0.1) ? [...ids.slice(1), newId()] : ids;
  }

  async #logLength(runId: string): Promise<number> {
    return (await this.#stores.model.log(runId, { after: 0, limit: 1_000_000 })).length;
  }
}

const tags = ["red", "Red", 'r"ed', "50%"];
