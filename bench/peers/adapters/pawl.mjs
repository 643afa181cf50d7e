// Pawl itself, configured as in `npm run bench`.

import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, limit, workflow } from "../../../dist/index.js";
import { latenciesElsewhere } from "../../workloads/start-latency.mjs";
import { handlers, seen } from "../handlers.mjs";
import { countStatements } from "../statements.mjs";

const concurrency = 1000;
const perKey = limit("bench_per_key", { key: "input.key", concurrency: 1 });

// The library resolves the repository's driver, not the one of this folder.
const statements = countStatements(createRequire(new URL("../../../package.json", import.meta.url))("pg"));

export const pawl = {
  settings: `startMany; one worker for all workflows, concurrency ${concurrency}`,
  sizes: { W1: 20000, W2: 3000, W3: 1500, W4: 200, W5s: 1000, W5c: 1000, W8: 1000 },

  async open({ url, meter }) {
    const pawl = await connect(url);
    const definitions = new Map();
    for (const [name, handler] of Object.entries(handlers))
      definitions.set(
        name,
        workflow(name, { limits: name === "keyed" ? [perKey] : [] }, (ctx, input) =>
          handler(withOurNames(ctx, definitions), input),
        ),
      );
    const worker = pawl.worker({ workflows: [...definitions.values()], concurrency });
    await worker.start();
    return {
      statements,
      run: async (name, input) => (await pawl.start(definitions.get(name), input)).result(),
      runMany: async (name, inputs) => {
        await pawl.startMany(definitions.get(name), inputs);
        // A run leaves the worker when its end is committed.
        while ((seen.returned.get(name) ?? 0) < inputs.length || worker.active > 0) await sleep(1);
      },
      completed: async (name) => {
        const sql = "SELECT count(*)::int AS n FROM pawl_runs WHERE workflow = $1 AND status = 'completed'";
        return (await meter.query(sql, [name])).rows[0].n;
      },
      latenciesElsewhere: (count) => latenciesElsewhere(pawl, url, count),
      close: () => pawl.close(),
    };
  },
};

const withOurNames = (ctx, definitions) => ({
  step: (name, body) => ctx.step(name, body),
  all: (promises) => Promise.all(promises),
  children: (name, inputs) => ctx.map(definitions.get(name), inputs),
});
