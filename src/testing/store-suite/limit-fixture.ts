/** What the tests of limits begin with: limits, classes of waiting runs, admissions. */
import { laneIdOf, type RunClass, runClassOf } from "../../core/limits/lane.js";
import type { AdmittedTask, LimitSettings } from "../../store/contract/limits.js";
import type { Fence, NewRun, Store } from "../../store/contract/store.js";
import { batch, finish, newRuns, transition, uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";

export function createLimitFixture(fixture: Fixture) {
  const register = (name: string, settings: Partial<LimitSettings>) =>
    fixture.store.limits.register([{ concurrency: null, rate: null, isHeldOpen: false, ...settings, name }]);

  async function newLimit(concurrency: number | null, settings: Partial<LimitSettings> = {}): Promise<string> {
    const name = uniqueName("limit");
    await register(name, { concurrency, ...settings });
    return name;
  }

  const newLane = async (concurrency: number | null, key = "") => laneIdOf(await newLimit(concurrency), key);

  const classOf = (run: NewRun, lanes: readonly string[], share = "") =>
    runClassOf(run.workflow, run.version, lanes, share);

  async function sort(
    runs: readonly NewRun[],
    classes: (run: NewRun) => RunClass,
    { hasBegun = false, store = fixture.store } = {},
  ): Promise<void> {
    await store.limits.sort(runs.map((run) => ({ runId: run.id, runClass: classes(run), hasBegun })));
  }

  let lastDueAt = 1_000_000;
  /** Runs that became due at different instants, so that their order is certain. */
  const inOrderOfAge = (runs: readonly NewRun[]) =>
    runs.map((run): NewRun => ({ ...run, due: { kind: "at", ms: ++lastDueAt } }));

  async function startSorted(
    howMany: number,
    lanes: readonly string[],
    overrides: Partial<NewRun> = {},
    share = "",
  ): Promise<NewRun[]> {
    const runs = inOrderOfAge(newRuns(howMany, overrides));
    await fixture.startAll(runs);
    await sort(runs, (run) => classOf(run, lanes, share));
    return runs;
  }

  async function admit(
    fence: Fence,
    runs: readonly NewRun[],
    limit = 10,
    store: Store = fixture.store,
  ): Promise<{ readonly tasks: readonly AdmittedTask[]; readonly hasMore: boolean }> {
    const routes = [...new Set(runs.map(({ workflow }) => workflow))].map((workflow) => ({ workflow, version: "" }));
    const result = await store.limits.admit({ fence, routes, limit });
    if (result.kind !== "admitted") throw new Error("The admission was fenced.");
    await store.limits.wake(result.lanesToWake);
    return result;
  }

  const idsOf = (tasks: readonly AdmittedTask[]) => tasks.map(({ run }) => run.id);
  const inUse = async (lane: string) => (await fixture.store.limits.slots({ lane }, 1_000)).length;

  const finishRuns = (fence: Fence, ids: readonly string[], store: Store = fixture.store) =>
    fixture.commit(
      batch(
        fence,
        ids.map((id) => transition(id, { next: finish("completed", { releasesSlots: true }) })),
      ),
      store,
    );

  return { register, newLimit, newLane, classOf, sort, inOrderOfAge, startSorted, admit, idsOf, inUse, finishRuns };
}
