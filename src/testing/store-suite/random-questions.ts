/** Random runs and random filters: the store must give the same answers as the memory store. */
import { uuidv7 } from "../../core/naming/ids.js";
import { randomHex } from "../../runtime/random-hex.js";
import { systemRuntime } from "../../runtime/system.js";
import type { NewRun, NextTaskState, RunQuery, Transition } from "../../store/contract/store.js";
import { events, finish, newId, newRun, park, transition, uniqueName } from "./builders.js";
import { ComparedStores, type ComparedWorker } from "./compared-stores.js";
import type { Fixture } from "./fixture.js";
import { errorText, fingerprintOfNumber, pauseNote, readAllPages } from "./run-pages.js";
import { SeededRandom } from "./seeded-random.js";

const rounds = 30;
const queries = 150;
const tags = ["red", "Red", 'r"ed', "50%"];
const statuses = ["pending", "running", "waiting", "paused", "completed", "failed", "canceled"] as const;

export function randomQuestionTests(fixture: Fixture): void {
  // One test: the answers are about the whole database, so it must contain no runs of another test.
  fixture.test("random filters, counts and errors have the same answers as in the memory store", async () => {
    const stores = await ComparedStores.open(fixture);
    const random = new SeededRandom(7);
    const runs = new RandomRuns(stores, random);
    await stores.registerWorker();
    for (let round = 0; round < fixture.rounds(rounds); round += 1) await runs.change();
    await stores.compare();
    for (let count = 0; count < fixture.rounds(queries); count += 1) await compareRuns(stores, runs.randomQuery());
    for (const cap of [1, 2, 5, 20, 10_000]) await compareCounts(stores, cap);
  });
}

async function compareRuns(stores: ComparedStores, query: RunQuery): Promise<void> {
  await stores.expectSame(`runs of ${JSON.stringify(query)}`, (store) => readAllPages(store, query));
}

async function compareCounts(stores: ComparedStores, cap: number): Promise<void> {
  const byText = <T>(rows: readonly T[]) =>
    rows.map((row) => JSON.stringify(Object.entries(row as object).sort())).sort();
  await stores.expectSame(`status counts up to ${cap}`, async (store) => {
    const { counts, cappedStatuses } = await store.maintenance.questions.statusCounts({ cap });
    return { counts: byText(counts), cappedStatuses: [...cappedStatuses].sort() };
  });
  await stores.expectSame(`error groups up to ${cap}`, async (store) => {
    const recentSince = stores.time.now - 3_000;
    const { groups, cappedStatuses } = await store.maintenance.questions.errorGroups({ cap, recentSince });
    return { groups: byText(groups), cappedStatuses: [...cappedStatuses].sort() };
  });
  await stores.expectSame(`backlog up to ${cap}`, (store) => store.maintenance.backlog({ cap: cap + 1_000 }));
}

class RandomRuns {
  readonly #stores: ComparedStores;
  readonly #random: SeededRandom;
  readonly #workflows = [uniqueName("one"), uniqueName("two"), uniqueName("three")];
  readonly #heroes = [uniqueName("hero"), uniqueName("hero")];

  constructor(stores: ComparedStores, random: SeededRandom) {
    this.#stores = stores;
    this.#random = random;
  }

  /** Starts a few runs, and changes some of those that the worker owns. Often several runs are created at the same time. */
  async change(): Promise<void> {
    const random = this.#random;
    if (random.chance(0.5)) this.#stores.time.now += random.integerBelow(2_000);
    const [worker] = this.#stores.workers as [ComparedWorker];
    const starts = Array.from({ length: 1 + random.integerBelow(8) }, () => this.#randomRun());
    await this.#stores.commit({ worker, transitions: [], starts }, false);
    const tasks = await this.#stores.model.tasks(this.#stores.runs.map(({ id }) => id));
    const owned = tasks.filter(({ state }) => state === "owned").map(({ runId }) => runId);
    const transitions = random
      .sample(owned, 6)
      .map((runId): Transition => transition(runId, { events: events(1), next: this.#randomNext(runId) }));
    await this.#stores.commit({ worker, transitions, starts: [] }, false);
  }

  #randomRun(): NewRun {
    const random = this.#random;
    const workflow = random.pick(this.#workflows) as string;
    const parent = random.chance(0.3) ? random.pick(this.#stores.runs) : undefined;
    const hasHero = random.chance(0.4);
    return newRun({
      // The ids of children begin with the time of their parent: ids are not always in the order of creation.
      id: random.chance(0.3) ? uuidv7(1_000_000 + random.integerBelow(1e9), randomHex(systemRuntime, 10)) : newId(),
      workflow,
      version: random.chance(0.3) ? "2" : "",
      due: random.chance(0.7) ? { kind: "owned" } : random.chance(0.5) ? { kind: "now" } : { kind: "in", ms: 60_000 },
      tags: random.sample(tags, 2),
      startKey: random.chance(0.3) ? `key-${random.integerBelow(9)}` : null,
      heroType: hasHero ? (random.chance(0.5) ? "User" : "user") : null,
      heroId: hasHero ? (random.pick(this.#heroes) as string) : null,
      ...(random.chance(0.2) && { route: `${workflow}\tqueue` }),
      ...(random.chance(0.2) && { startedBy: "Ada" }),
      ...(parent !== undefined && { parentId: parent.id, parentNode: "n", startKey: null }),
    });
  }

  #randomNext(runId: string): NextTaskState {
    const random = this.#random;
    const workflow = this.#stores.runs.find(({ id }) => id === runId)?.workflow as string;
    const number = random.integerBelow(3);
    const route = random.chance(0.3) ? { route: `${workflow}\tother` } : {};
    return random.pickWeighted<NextTaskState>([
      [3, park("waiting", { waiting: random.chance(0.5) ? "{}" : null, ...route })],
      [3, park("paused", { waiting: random.chance(0.7) ? pauseNote(number) : "{}", ...route })],
      [1, park("paused", { waiting: pauseNote(number), wakeInMs: 0 })],
      [2, finish("completed", { output: "1" })],
      [4, finish("failed", { error: random.chance(0.8) ? errorText(number) : "{}" })],
      [1, finish("canceled", { error: "{}" })],
    ]);
  }

  randomQuery(): RunQuery {
    const random = this.#random;
    const parent = random.pick(this.#stores.runs)?.parentId ?? null;
    const hero = { heroType: random.chance(0.5) ? "User" : "user", heroId: random.pick(this.#heroes) as string };
    return {
      limit: 1 + random.integerBelow(10),
      maxExamined: 1 + random.integerBelow(30),
      ...(random.chance(0.3) && { workflow: random.pick(this.#workflows) as string }),
      ...(random.chance(0.3) && { status: random.pick(statuses) as (typeof statuses)[number] }),
      ...(random.chance(0.2) && { active: random.chance(0.5) }),
      ...(random.chance(0.15) && hero),
      ...(random.chance(0.15) && { tag: random.pick(tags) as string }),
      ...(random.chance(0.15) && { parentId: parent }),
      ...(random.chance(0.1) && { startKey: `key-${random.integerBelow(9)}` }),
      ...(random.chance(0.15) && { fingerprint: fingerprintOfNumber(random.integerBelow(4)) }),
      ...(random.chance(0.15) && { createdAfter: this.#stores.time.now - random.integerBelow(20_000) }),
      ...(random.chance(0.15) && { createdBefore: this.#stores.time.now - random.integerBelow(20_000) }),
    };
  }
}
