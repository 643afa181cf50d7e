import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    // Tests and examples import Pawl by its name, from the sources (tsconfig.json has the same table).
    alias: [
      { find: /^pawl$/, replacement: source("index.ts") },
      { find: /^pawl\/testing$/, replacement: source("testing/index.ts") },
      { find: /^pawl\/memory$/, replacement: source("store/memory/index.ts") },
      { find: /^pawl\/(sqlite|libsql|postgres|mysql)$/, replacement: source("store/$1/index.ts") },
      { find: /^pawl\/(otel|prometheus)$/, replacement: source("telemetry/$1.ts") },
    ],
  },
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "examples/**/*.test.ts"],
    // Processes, not threads: tests kill themselves, change the environment and load a native SQLite.
    pool: "forks",
    // Two files at a time: the database servers beside us need the rest of a small machine.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 30_000,
  },
});
