/** Many clients and workers at once, in histories that a seed repeats: no start is lost, none is counted twice. */
import type { GatherCall, GatherOutcome } from "../../core/gathering/plan-gathering.js";
import { readGathering } from "../../core/gathering/run-gathering.js";
import type { Store } from "../../store/contract/store.js";
import { batch, delay, finish, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { batchRule, debounceRule, gather, newCall } from "./gatherings.js";
import { SeededRandom } from "./seeded-random.js";

const longTimeoutMs = 120_000;
const keys = ["a", "b", "c"];

interface Made {
  readonly call: GatherCall;
  readonly outcome: GatherOutcome;
}

export function gatheringHistoryTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  const openStores = async (): Promise<Store[]> => [fixture.store, await fixture.openAnother()];

  /** Claims and begins runs until all clients have ended and nothing is left, and returns the input of each run. */
  async function work(store: Store, workflow: string, clients: { over: boolean }, begun: Map<string, string>) {
    const worker = await fixture.registerWorker({}, store);
    for (;;) {
      const isLast = clients.over;
      const { tasks, nextDueAt } = await fixture.claim(worker, [{ workflow, version: "" }], { limit: 3 }, store);
      if (tasks.length === 0) {
        if (isLast && nextDueAt === null) return;
        await delay(1);
        continue;
      }
      const ids = tasks.map(({ run }) => run.id);
      const runs = await store.gatherings.begin(ids);
      for (const [id, { input }] of runs) {
        expect(begun.has(id), "a run begins once").toBe(false);
        begun.set(id, input);
      }
      await fixture.commit(
        batch(
          worker,
          ids.map((id) => transition(id, { next: finish("completed") })),
        ),
        store,
      );
    }
  }

  async function play(
    workflow: string,
    client: (store: Store, number: number, made: Made[]) => Promise<void>,
  ): Promise<{ readonly made: readonly Made[]; readonly begun: ReadonlyMap<string, string> }> {
    const stores = await openStores();
    const made: Made[] = [];
    const begun = new Map<string, string>();
    const clients = { over: false };
    const starting = Promise.all([0, 1, 2, 3].map((number) => client(stores[number % 2] as Store, number, made)));
    const over = starting.finally(() => {
      clients.over = true;
    });
    await Promise.all([over, ...stores.map((store) => work(store, workflow, clients, begun))]);
    return { made, begun };
  }

  for (const seed of [1, 2, 3]) {
    test(
      `each start of a batch is in one list, at the position that it was told, whatever happens at once (seed ${seed})`,
      async () => {
        const workflow = uniqueName("mail");
        let number = 0;
        const { made, begun } = await play(workflow, async (store, client, answers) => {
          const random = new SeededRandom(seed * 100 + client);
          for (let round = 0; round < fixture.rounds(25); round += 1) {
            const calls = Array.from({ length: 1 + random.integerBelow(8) }, () =>
              newCall(workflow, batchRule(5, random.integerBelow(20)), `${number++}`, {
                key: random.pick(keys) as string,
              }),
            );
            const { outcomes } = await gather(store, calls);
            // The answer of some starts is lost, so that they are made again.
            if (random.chance(0.3)) expect((await gather(store, calls, true)).outcomes).toEqual(outcomes);
            for (const [index, call] of calls.entries())
              answers.push({ call, outcome: outcomes[index] as GatherOutcome });
          }
        });
        const lists = new Map([...begun].map(([id, input]) => [id, JSON.parse(input) as string[]]));
        for (const { call, outcome } of made)
          expect(lists.get(outcome.runId)?.[outcome.position as number]).toBe(JSON.parse(call.run.input));
        expect([...lists.values()].flat().length).toBe(made.length);
        for (const list of lists.values()) expect(list.length).toBeLessThanOrEqual(5);
        for (const id of lists.keys()) {
          const keysOfList = made.flatMap(({ call, outcome }) => (outcome.runId === id ? [call.key] : []));
          expect(new Set(keysOfList).size).toBe(1);
        }
      },
      longTimeoutMs,
    );

    test(
      `each debounced start is counted by the run that it was told, and the run gets one of their inputs (seed ${seed})`,
      async () => {
        const workflow = uniqueName("index");
        let number = 0;
        const { made, begun } = await play(workflow, async (store, client, answers) => {
          const random = new SeededRandom(seed * 100 + client);
          for (let round = 0; round < fixture.rounds(40); round += 1) {
            const rule = debounceRule("last", random.integerBelow(6), 10);
            const call = newCall(workflow, rule, `${number++}`, { key: random.pick(keys) as string });
            const { outcomes } = await gather(store, [call]);
            answers.push({ call, outcome: outcomes[0] as GatherOutcome });
          }
        });
        const ofRun = new Map<string, Made[]>();
        for (const start of made) ofRun.set(start.outcome.runId, [...(ofRun.get(start.outcome.runId) ?? []), start]);
        expect([...begun.keys()].toSorted()).toEqual([...ofRun.keys()].toSorted());
        for (const [id, starts] of ofRun) {
          const gathering = readGathering((await fixture.run(id)).schedule);
          expect(gathering?.calls, "no start is lost, and none is counted twice").toBe(starts.length);
          expect(starts.map(({ call }) => call.run.input)).toContain(begun.get(id));
          expect(starts.filter(({ outcome }) => !outcome.isMerged)).toHaveLength(1);
        }
      },
      longTimeoutMs,
    );
  }
}
