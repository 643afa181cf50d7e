import pg from "pg";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { emptyDatabase, isLeftOut } from "../../../test/support/databases.js";
import { creation, scheduleRow, update } from "../../testing/store-suite/schedule-fixture.js";
import { openPostgres } from "./index.js";

afterEach(() => vi.restoreAllMocks());

describe.skipIf(isLeftOut("postgres"))("a transaction that changes schedules", () => {
  test.each([false, true])("loses its locks when its process stops in it (pooled: %s)", async (pooled) => {
    const database = await emptyDatabase("postgres");
    onTestFinished(() => database.drop());
    const store = await openPostgres(database.url, { pooled, notify: false });
    onTestFinished(() => store.close());
    await store.migrate();
    const row = scheduleRow();
    await store.schedules.apply({ changes: [creation(row)] });

    const timeouts: unknown[] = [];
    const query = pg.Client.prototype.query;
    vi.spyOn(pg.Client.prototype, "query").mockImplementation(async function (this: pg.Client, ...given: unknown[]) {
      const [first] = given as [{ readonly text?: string }];
      const result = await Reflect.apply(query, this, given);
      if (first.text?.includes("FOR UPDATE") === true) {
        const shown = await Reflect.apply(query, this, ["SHOW idle_in_transaction_session_timeout"]);
        timeouts.push((shown as pg.QueryResult).rows[0].idle_in_transaction_session_timeout);
      }
      return result;
    } as never);
    await store.schedules.apply({ changes: [update(row)] });
    expect(timeouts).toEqual(["20s"]);
  });
});
