import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OwnServer, ownMariadb } from "../../../scripts/servers.mjs";
import { isLeftOut } from "../../../test/support/databases.js";
import { StoreError } from "../../core/errors/errors.js";
import type { Fence, NewEvent, Store, Transition } from "../contract/store.js";
import { openMysql } from "./index.js";

describe.skipIf(isLeftOut("mysql"))("a MySQL server that crashes", () => {
  let server: OwnServer;
  let store: Store;

  beforeAll(async () => {
    server = await ownMariadb();
    store = await openMysql(server.url);
    await store.migrate();
  }, 300_000);
  afterAll(async () => {
    await store?.close();
    await server?.remove();
  });

  /** Appends until `isOver`. After a commit without an answer, it reads the log to find out whether it was written. */
  async function appendUntilOver(fence: Fence, runId: string, isOver: () => boolean) {
    const acknowledged: string[] = [];
    const errors: unknown[] = [];
    let afterSeq = 0;
    while (!isOver()) {
      const mark = `${runId} ${afterSeq}`;
      const events: NewEvent[] = [{ type: "t", node: null, attempt: null, outcome: null, data: mark }];
      const rest = {
        next: { kind: "keep" },
        drainedInboxIds: [],
        newChildren: [],
        messages: [],
        releasedChildIds: [],
        cursors: [],
      } as const;
      const transition: Transition = { runId, afterSeq, events, ...rest };
      try {
        const result = await store.commit({ fence, transitions: [transition], starts: [] });
        if (result.kind === "committed") {
          acknowledged.push(mark);
          afterSeq += 1;
        } else {
          // The conflicting event is this writer's own, from a commit whose answer was lost.
          expect(result).toEqual({ kind: "conflict", runId });
          afterSeq = (await store.log(runId, { after: 0, limit: 1_000_000 })).length;
        }
      } catch (error) {
        errors.push(error);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    }
    return { acknowledged, errors };
  }

  test("loses no acknowledged commit, and the store reconnects by itself", async () => {
    const fence = await store.registerWorker({
      id: "w",
      name: "w",
      host: "h",
      pid: 1,
      port: null,
      routes: [],
      leaseMs: 600_000,
    });
    const ids = Array.from({ length: 4 }, () => randomUUID());
    const starts = ids.map((id) => ({
      ...{ id, workflow: "w", version: "", queue: "w", priority: 0, input: "{}", heroType: null, heroId: null },
      ...{
        heroKey: null,
        tags: [],
        startKey: null,
        parentId: null,
        parentNode: null,
        parentIndex: null,
        parentAttempt: null,
      },
      due: { kind: "owned" } as const,
    }));
    await store.commit({ fence, transitions: [], starts });
    let isOver = false;
    const writing = Promise.all(ids.map((id) => appendUntilOver(fence, id, () => isOver)));
    for (let round = 0; round < 2; round += 1) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      await server.restartImmediate();
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
    isOver = true;
    const results = await writing;
    const errors = results.flatMap((result) => result.errors);
    expect(errors.length).toBeGreaterThan(0);
    for (const error of errors) expect(error).toSatisfy((e) => e instanceof StoreError && e.transient, String(error));
    for (const [index, { acknowledged }] of results.entries()) {
      const log = await store.log(ids[index] as string, { after: 0, limit: 1_000_000 });
      expect(log.map(({ data }) => data)).toEqual(log.map((_, at) => `${ids[index]} ${at}`));
      expect(log.length).toBeGreaterThanOrEqual(acknowledged.length);
    }
  }, 300_000);

  test("a store can be closed while the server is down", async () => {
    const second = await openMysql(server.url);
    await Promise.all(Array.from({ length: 5 }, () => second.now()));
    await server.kill9();
    await expect(second.now()).rejects.toMatchObject({ transient: true });
    await second.close();
    await server.start();
    expect(await store.now()).toBeGreaterThan(0);
  }, 300_000);
});
