import { defineConfig } from "vitest/config";
import { SlowestFirst } from "./test/support/slowest-first.js";
import { alias } from "./vitest.config.js";

/**
 * `npm run test:unit` and `npm run test:watch`: what needs neither a server nor the built library. Tests that run on every store
 * run in memory. The tests of classes are left out, so that the whole stays under twenty seconds on two cores.
 */
export default defineConfig({
  resolve: { alias },
  test: {
    include: [
      "src/{client,concurrency,core,define,runtime,telemetry,worker}/**/*.test.ts",
      "src/store/{shared,sql}/**/*.test.ts",
      "dashboard/src/**/*.test.ts",
      "test/stores/memory.test.ts",
      "test/{function-style,graph-style,histories,stored-schema}/**/*.test.ts",
    ],
    env: { PAWL_TEST_STORE: "memory", PAWL_TEST_WITHOUT: "postgres,mysql,sqld,pgbouncer" },
    pool: "forks",
    // The modules are loaded once for each worker, not for each file: that takes longer than the tests.
    isolate: false,
    maxWorkers: 2,
    sequence: { sequencer: SlowestFirst },
    // Transformed modules are kept in node_modules, by a hash of their text and this configuration: a seventh of the time.
    experimental: { fsModuleCache: true },
    testTimeout: 120_000,
  },
});
