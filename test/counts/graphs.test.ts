/** The cost of a graph step does not depend on the size of the graph. */
import { type AnyNode, graph, Pawl, step, type WorkflowDefinition } from "pawl";
import { expect, test } from "vitest";
import { emptyDatabase, forEachStore, openStore } from "../support/databases.js";
import { rawSql } from "../support/raw-sql.js";
import { silent } from "../support/virtual-worlds.js";

const shapes = {
  chain: (count: number) => {
    const steps: AnyNode[] = [];
    for (let n = 0; n < count; n += 1) {
      const last = steps.at(-1);
      const one = step(`s${n}`, () => n);
      steps.push(last === undefined ? one : one.after(last));
    }
    return graph("chain", steps);
  },
  fan: (count: number) => {
    const first = step("first", () => 0);
    const all = Array.from({ length: count }, (_, n) => step(`s${n}`, () => n).after(first));
    return graph("fan", [first, ...all, step("last", () => "end").after(...all)]);
  },
};

forEachStore(
  (kind) => {
    test.each(["chain", "fan"] as const)(
      "rows and commits per step of a %s of 1,000 steps equal those of 100 steps",
      async (shape) => {
        const small = await costOf(shape, 100);
        const large = await costOf(shape, 1_000);
        expect(large.rows / 1_000).toBeLessThanOrEqual((small.rows / 100) * 1.05);
        expect(large.commits / 1_000).toBeLessThanOrEqual((small.commits / 100) * 1.05);
        // A sanity check of the count: a chain writes a row for each of its steps.
        if (shape === "chain") expect(large.rows).toBeGreaterThanOrEqual(1_000);
      },
    );

    async function costOf(shape: keyof typeof shapes, count: number) {
      const database = await emptyDatabase(kind);
      try {
        const inner = await openStore(kind, database.url);
        await inner.migrate();
        let commits = 0;
        const store = new Proxy(inner, {
          get: (target, name) => {
            const value = Reflect.get(target, name) as unknown;
            if (typeof value !== "function") return value;
            return (...args: unknown[]) => {
              if (name === "commit") commits += 1;
              return Reflect.apply(value, target, args) as unknown;
            };
          },
        });
        const pawl = new Pawl(store, silent);
        const definition: WorkflowDefinition<any, unknown> = shapes[shape](count);
        await pawl.worker({ workflows: [definition] }).start();
        const run = await pawl.start(definition, undefined);
        await run.result();
        await pawl.close();
        const sql = await rawSql(database.url);
        const [row] = await sql.query("SELECT count(*) AS rows FROM pawl_events");
        await sql.close();
        return { commits, rows: Number(row?.rows) };
      } finally {
        await database.drop();
      }
    }
  },
  ["sqlite", "postgres"],
);
