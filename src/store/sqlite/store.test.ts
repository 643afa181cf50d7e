/** Tests beyond the store suite, for mistakes that only this store's statements could contain. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { batch, event, newMessage, newRun, transition, workerInfo } from "../../testing/store-suite/builders.js";
import type { Store } from "../contract/store.js";
import { openSqlite } from "./index.js";

let store: Store;
beforeEach(async () => {
  store = await openSqlite(":memory:");
  await store.migrate();
});
afterEach(() => store.close());

test("a live worker cannot write to a run that another worker or no worker owns", async () => {
  const [first, second] = [await store.registerWorker(workerInfo()), await store.registerWorker(workerInfo())];
  const [ownedByFirst, unowned] = [newRun({ due: { kind: "owned" } }), newRun()];
  await store.commit(batch(first, [], [ownedByFirst, unowned]));
  for (const { id } of [ownedByFirst, unowned]) {
    for (const events of [[event("x")], []]) {
      const result = await store.commit(batch(second, [transition(id, { events })]));
      expect(result).toEqual({ kind: "conflict", runId: id });
    }
    expect((await store.logs([id])).get(id) ?? []).toEqual([]);
  }
});

test("the id of a message is never reused", async () => {
  const run = newRun();
  await store.commit(batch(null, [], [run]));
  const worker = await store.registerWorker(workerInfo());
  const routes = [{ workflow: run.workflow, version: run.version }];
  await store.claim({ fence: worker, routes, limit: 1, limitPerRoute: 1 });
  const seen = new Set<number>();
  for (let afterSeq = 0; afterSeq < 3; afterSeq += 1) {
    await store.send([newMessage(run.id, "x")]);
    const rows = (await store.inbox([run.id])).get(run.id) ?? [];
    expect(rows).toHaveLength(1);
    const [id] = rows.map((row) => row.id) as [number];
    expect(seen.has(id)).toBe(false);
    seen.add(id);
    await store.commit(
      batch(worker, [transition(run.id, { afterSeq, events: [event("read")], drainedInboxIds: [id] })]),
    );
  }
});

test("a due task is claimed by its priority, however many tasks of lower priority became due before it", async () => {
  let now = 1_000;
  const clocked = await openSqlite(":memory:", { clock: () => now });
  await clocked.migrate();
  const fence = await clocked.registerWorker(workerInfo());
  const start = (priority: number, dueAt: number) => {
    const run = newRun({ workflow: "w", priority, due: { kind: "at", ms: dueAt } });
    return clocked.commit(batch(null, [], [run])).then(() => run.id);
  };
  for (let count = 0; count < 20; count += 1) await start(1, 1_100 + count);
  const urgent = await start(9, 1_200);
  now = 2_000;
  const claimed: string[] = [];
  // New runs of middle priority are started all the time; otherwise the runs of lower priority would simply be claimed.
  for (let round = 0; round < 12 && !claimed.includes(urgent); round += 1) {
    await start(5, now);
    await start(5, now);
    const request = { fence, routes: [{ workflow: "w", version: "" }], limit: 2, limitPerRoute: 2 };
    const result = await clocked.claim(request);
    if (result.kind === "claimed") claimed.push(...result.tasks.map(({ run }) => run.id));
  }
  expect(claimed).toContain(urgent);
  await clocked.close();
});
