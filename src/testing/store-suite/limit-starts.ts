/** Runs whose class is known when they are started. A store may leave them to be sorted by a worker. */
import { laneIdOf } from "../../core/limits/lane.js";
import type { NewRun } from "../../store/contract/store.js";
import { newRun, newRuns } from "./builders.js";
import type { Fixture } from "./fixture.js";
import { createLimitFixture } from "./limit-fixture.js";

export function limitStartTests(fixture: Fixture): void {
  const { test, expect } = fixture;
  const { newLimit, newLane, classOf, sort, admit, idsOf, inUse, finishRuns } = createLimitFixture(fixture);

  test("runs that are started with their class wait in it, or can be sorted into it, and are admitted like all others", async () => {
    const worker = await fixture.registerWorker();
    const lane = await newLane(1);
    const { workflow } = newRun();
    const withClass = (run: NewRun): NewRun => ({ ...run, runClass: classOf(run, [lane]) });
    const start = async (runs: readonly NewRun[]) => {
      await fixture.startAll(runs.map(withClass));
      const { tasks } = await fixture.store.limits.unsorted({ routes: [{ workflow, version: "" }], limit: 10 });
      const ids = new Set(tasks.map(({ run }) => run.id));
      await sort(
        runs.filter(({ id }) => ids.has(id)),
        (run) => classOf(run, [lane]),
      );
    };
    const runs = newRuns(3, { workflow });
    await start(runs.slice(0, 2));
    const first = await admit(worker, runs);
    expect(first.tasks).toMatchObject([{ route: workflow, isFresh: true, deliveries: 1, lanes: [lane] }]);
    expect(await inUse(lane)).toBe(1);
    // The class is blocked, and stays blocked when another run comes into it.
    await start(runs.slice(2));
    expect((await admit(worker, runs)).tasks).toEqual([]);
    const begun = idsOf(first.tasks);
    for (let left = 2; left > 0; left -= 1) {
      await finishRuns(worker, [begun.at(-1) as string]);
      await fixture.store.limits.wake([{ lane, count: 1 }]);
      begun.push(...idsOf((await admit(worker, runs)).tasks));
    }
    expect([...begun].sort()).toEqual(runs.map(({ id }) => id).sort());
  });

  test("runs with different classes, and runs without one, are started in one commit", async () => {
    const worker = await fixture.registerWorker();
    const name = await newLimit(1);
    const { workflow } = newRun();
    const runs = newRuns(6, { workflow }).map((run, index): NewRun => {
      const lane = laneIdOf(name, String(index % 3));
      return index === 5 ? run : { ...run, runClass: classOf(run, [lane]) };
    });
    await fixture.startAll(runs);
    const { tasks } = await fixture.store.limits.unsorted({ routes: [{ workflow, version: "" }], limit: 10 });
    const unsorted = new Set(tasks.map(({ run }) => run.id));
    expect(unsorted).toContain(runs[5]?.id);
    await sort(
      runs.filter(({ id }) => unsorted.has(id)),
      (run) => run.runClass ?? classOf(run, [laneIdOf(name, "2")]),
    );
    const ids = idsOf((await admit(worker, runs)).tasks);
    expect(ids).toHaveLength(3);
    const lanesInUse = await Promise.all(["0", "1", "2"].map((key) => inUse(laneIdOf(name, key))));
    expect(lanesInUse).toEqual([1, 1, 1]);
  });
}
