/**
 * Random sequences of operations, all combinations of what a batch can hold among them: a store ends where the memory
 * store ends. The sequences are drawn from fixed seeds, and a failure names its own.
 */

import { keep } from "../../core/run/transition.js";
import type { NewRun, Next, Route, RunFilter, Transition } from "../../store/contract/store.js";
import { events, finish, letter, newId, newRun, park, transition, unique } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { Random } from "./random.js";
import { Twin, type TwinWorker } from "./twin.js";

const seeds = 12;
const roamingSeeds = 6;
const operations = 60;

export function modelTests(fixture: Fixture): void {
  for (let seed = 1; seed <= seeds; seed += 1) {
    fixture.test(`random operations leave what they leave in the memory store (seed ${seed})`, () =>
      playOnBoth(fixture, seed, "at home"),
    );
  }
  for (let seed = 1; seed <= roamingSeeds; seed += 1) {
    fixture.test(`so do random operations on runs that are parked on other routes (seed ${seed})`, () =>
      playOnBoth(fixture, seed, "roaming"),
    );
  }
}

async function playOnBoth(fixture: Fixture, seed: number, runs: Habit): Promise<void> {
  const twin = await Twin.open(fixture);
  const player = new Player(twin, new Random(seed), runs);
  await twin.enlist();
  await twin.enlist();
  for (let count = 1; count <= operations; count += 1) {
    await player.play();
    if (count % 4 === 0) await twin.compare();
  }
  await twin.compare();
}

/** Runs that roam have no keys: what is about keys is about those that stay on the route of their workflow. */
type Habit = "at home" | "roaming";

class Player {
  readonly #twin: Twin;
  readonly #random: Random;
  readonly #roam: boolean;
  readonly #routes: Route[];
  /** Where runs may roam to, in all versions; the last is no workflow's name. */
  readonly #elsewhere: readonly string[];
  readonly #heroes = [unique("hero"), unique("hero"), unique("hero")];

  constructor(twin: Twin, random: Random, runs: Habit) {
    this.#twin = twin;
    this.#random = random;
    this.#roam = runs === "roaming";
    const [first, second] = [unique("model"), unique("model")];
    this.#routes = [
      { workflow: first, version: "" },
      { workflow: first, version: "v2" },
      { workflow: second, version: "" },
    ];
    this.#elsewhere = [first, second, `${first}\tstep`];
  }

  async play(): Promise<void> {
    const twin = this.#twin;
    const random = this.#random;
    twin.time.now += random.below(3_000);
    const worker = random.pick(twin.workers) as TwinWorker;
    const moves: [weight: number, move: () => Promise<unknown>][] = [
      [3, () => twin.commit({ worker: null, transitions: [], starts: this.#starts(1 + random.below(6)) }, false)],
      [4, () => twin.claim(worker, this.#claimedRoutes())],
      [9, () => this.#commitOfWorker(worker)],
      [3, () => this.#commitOfClient()],
      [3, () => twin.send(this.#letters(this.#anyone(5)))],
      [1, () => twin.beat(worker)],
      [2, () => this.#list()],
      [1, () => this.#replace(worker)],
      [1, () => this.#commitOfTheDead()],
    ];
    await random.weighted(moves)();
  }

  async #commitOfWorker(worker: TwinWorker): Promise<void> {
    const random = this.#random;
    const tasks = await this.#twin.model.tasks(this.#twin.runs.map(({ id }) => id));
    const mine = tasks.filter(({ owner }) => owner === worker.id).map(({ runId }) => runId);
    const transitions: Transition[] = [];
    const chosen = random.some(mine, 6);
    const addressees = this.#anyone(6).filter((id) => !chosen.includes(id));
    const nexts: Next[] = [];
    for (const runId of chosen) {
      const next = this.#next();
      nexts.push(next);
      const held = await this.#twin.model.inbox([runId]);
      const places = [...(held.get(runId) ?? []).keys()];
      transitions.push(
        transition(runId, {
          after: await this.#end(runId),
          events: events(random.below(4)),
          next,
          drained: random.chance(0.5) ? places : random.some(places, 3),
          starts: random.chance(0.2) ? this.#children(runId) : [],
          // Each run gets the mail of one transition: among those of one batch there is no order to compare.
          mail: random.chance(0.4) ? this.#letters(addressees.splice(0, 2)) : [],
          release: random.chance(0.2) ? addressees.splice(0, 1) : [],
          cursors: random.chance(0.2) ? this.#cursors() : [],
        }),
      );
    }
    // A hero's key that is freed and taken in one batch may go either way.
    const withKeys = !nexts.some(({ kind }) => kind === "finish");
    const starts = random.chance(0.4) ? this.#starts(1 + random.below(3), withKeys, true) : [];
    await this.#twin.commit({ worker, transitions, starts }, random.chance(0.2));
  }

  async #commitOfClient(): Promise<void> {
    const random = this.#random;
    const chosen = this.#anyone(random.chance(0.7) ? 1 : 3);
    const transitions: Transition[] = [];
    for (const runId of chosen) {
      const mail = this.#letters(this.#anyone(1).filter((id) => !chosen.includes(id) && transitions.length === 0));
      const next = random.chance(0.3) ? finish("canceled", { error: "x" }) : this.#park();
      const after = random.chance(0.9) ? await this.#end(runId) : 0;
      transitions.push(transition(runId, { after, events: events(1 + random.below(2)), next, mail }));
    }
    await this.#twin.commit({ worker: null, transitions, starts: [] }, random.chance(0.2));
  }

  async #commitOfTheDead(): Promise<void> {
    const worker = this.#random.pick(this.#twin.retired);
    if (worker === undefined) return;
    const [runId] = this.#anyone(1);
    const transitions =
      runId === undefined ? [] : [transition(runId, { after: await this.#end(runId), events: events(1) })];
    await this.#twin.commit({ worker, transitions, starts: this.#starts(1) }, false);
    await this.#twin.beat(worker);
    await this.#twin.claim(worker, this.#routes);
  }

  async #replace(worker: TwinWorker): Promise<void> {
    if (this.#random.chance(0.5)) {
      await this.#twin.retire(worker);
      await this.#twin.enlist();
    } else {
      this.#twin.workers.splice(this.#twin.workers.indexOf(worker), 1);
      await this.#twin.enlist(worker.id);
    }
  }

  async #list(): Promise<void> {
    const random = this.#random;
    const statuses = ["pending", "running", "waiting", "paused", "completed", "failed", "canceled"] as const;
    const from = await this.#twin.model.run(this.#anyone(1)[0] ?? newId());
    const filter: RunFilter = {
      workflow: random.pick(this.#routes)?.workflow as string,
      limit: 1 + random.below(8),
      ...(random.chance(0.3) && { status: random.pick(statuses) as (typeof statuses)[number] }),
      ...(random.chance(0.2) && { active: random.chance(0.5) }),
      ...(random.chance(0.2) && { tag: random.pick(tags) as string }),
      ...(random.chance(0.2) && { createdAfter: this.#twin.time.now - random.below(50_000) }),
      ...(random.chance(0.4) && from !== null && { after: { createdAt: from.createdAt, id: from.id } }),
    };
    await this.#twin.same(`runs of ${JSON.stringify(filter)}`, (store) => store.runs(filter));
    await this.#page();
  }

  async #page(): Promise<void> {
    const [runId] = this.#anyone(1);
    if (runId === undefined) return;
    const page = { after: this.#random.below(8), limit: 1 + this.#random.below(5) };
    await this.#twin.same(`page ${JSON.stringify(page)}`, (store) => store.log(runId, page));
  }

  #starts(howMany: number, withKeys = true, canOwn = false): NewRun[] {
    const random = this.#random;
    const twin = this.#twin;
    const hasKeys = withKeys && !this.#roam;
    return Array.from({ length: howMany }, () => {
      const repeated = random.chance(0.1) ? random.pick(twin.runs) : undefined;
      if (repeated !== undefined) return { ...repeated, due: { kind: "now" } };
      const dues: NewRun["due"][] = [
        { kind: "now" },
        { kind: "held" },
        { kind: "in", ms: random.below(20_000) },
        { kind: "at", ms: twin.time.now - 5_000 + random.below(20_000) },
        { kind: canOwn ? "owned" : "now" },
      ];
      return newRun({
        ...(random.pick(this.#routes) as Route),
        priority: random.below(3) - 1,
        due: random.pick(dues) as NewRun["due"],
        tags: random.some(tags, 2),
        startKey: hasKeys && random.chance(0.2) ? `key-${random.below(5)}` : null,
        heroKey: hasKeys && random.chance(0.2) ? (random.pick(this.#heroes) as string) : null,
      });
    });
  }

  #children(parentId: string): NewRun[] {
    const born = this.#starts(1 + this.#random.below(2), false, true);
    const known = new Set(this.#twin.runs.map(({ id }) => id));
    return born.map((run, index) =>
      known.has(run.id) ? run : { ...run, parentId, parentNode: "n", ...this.#place(index) },
    );
  }

  #place(index: number): Pick<NewRun, "parentIndex" | "parentAttempt"> {
    return this.#random.chance(0.5)
      ? { parentIndex: index, parentAttempt: null }
      : { parentIndex: null, parentAttempt: index + 1 };
  }

  #next(): Next {
    return this.#random.weighted<Next>([
      [4, keep],
      [4, this.#park()],
      [2, finish("completed", { output: "o", startedAt: this.#random.chance(0.5) ? "now" : null })],
      [1, finish("failed", { error: "e", startedAt: 77 })],
    ]);
  }

  #park(): Next {
    const random = this.#random;
    return park(random.pick(["pending", "waiting", "paused"] as const), {
      waiting: random.chance(0.5) ? `for ${random.below(100)}` : null,
      startedAt: random.pick([null, "now", 99] as const) ?? null,
      wakeAt: random.chance(0.3) ? this.#twin.time.now - 3_000 + random.below(20_000) : null,
      wakeIn: random.chance(0.4) ? random.below(3) * 5_000 : null,
      ...(this.#roam && random.chance(0.4) && { route: random.pick(this.#elsewhere) as string }),
      ...(this.#roam && random.chance(0.4) && { priority: random.below(5) - 2 }),
    });
  }

  #claimedRoutes(): readonly Route[] {
    if (!this.#roam) return this.#routes;
    const all = this.#elsewhere.flatMap((workflow) => ["", "v2"].map((version) => ({ workflow, version })));
    return this.#random.some(all, all.length);
  }

  #cursors(): Transition["cursors"] {
    const random = this.#random;
    return random.some(["a", "b", "c"], 2).map((node) => ({
      node,
      ...(random.chance(0.6) && { cursor: random.chance(0.2) ? null : `${random.below(100)}` }),
      ...(random.chance(0.6) && { progress: random.chance(0.2) ? null : `${random.below(100)}` }),
    }));
  }

  #letters(addressees: readonly string[]) {
    return addressees.flatMap((to) => {
      return Array.from({ length: 1 + this.#random.below(2) }, () => letter(to, `${this.#random.below(1_000)}`));
    });
  }

  /** Up to so many runs, in whatever state, and sometimes one that does not exist. */
  #anyone(most: number): string[] {
    const ids = this.#random.some(this.#twin.runs, most).map(({ id }) => id);
    return this.#random.chance(0.1) ? [...ids.slice(1), newId()] : ids;
  }

  async #end(runId: string): Promise<number> {
    return (await this.#twin.model.log(runId, { after: 0, limit: 1_000_000 })).length;
  }
}

const tags = ["red", "Red", 'r"ed', "50%"];
