import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { SlowestFirst } from "./test/support/slowest-first.js";

const source = (path: string) => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

/** Tests and examples import Pawl by its name, from the sources (tsconfig.json has the same table). */
export const alias = [
  { find: /^pawl$/, replacement: source("index.ts") },
  { find: /^pawl\/testing$/, replacement: source("testing/index.ts") },
  { find: /^pawl\/memory$/, replacement: source("store/memory/index.ts") },
  { find: /^pawl\/(sqlite|libsql|postgres|mysql)$/, replacement: source("store/$1/index.ts") },
  { find: /^pawl\/http$/, replacement: source("http/index.ts") },
  { find: /^pawl\/(otel|prometheus)$/, replacement: source("telemetry/$1.ts") },
];

/**
 * Files that run one after the other in a process, with the modules that are loaded already: to load them takes longer than
 * most of these files. All others have a process of their own, because they change it, watch it or count what it does.
 */
const sharing = [
  "src/{cli,client,core,define,http,runtime,telemetry,worker}/**/*.test.ts",
  // The others capture all statements of their process.
  "src/store/{shared,sql,mysql}/**/*.test.ts",
  "src/store/postgres/**/!(plans|schedule-plans).test.ts",
  "src/store/{sqlite,libsql-remote}/!(processes|driver|libsql-remote).test.ts",
  "test/limits/!(rules).test.ts",
  "dashboard/src/**/*.test.ts",
  "test/{class-style,client,dynamic,function-style,graph-style,histories,retry,stored-schema,types}/**/*.test.ts",
  "test/schedules/!(kills).test.ts",
  "test/{async-context,cli,dashboard,mistakes,sql-functions,testing}/**/*.test.ts",
  "test/telemetry/processes.test.ts",
  "test/{package,simulation,torture}/**/*.test.ts",
  // The others stop the intervals of their process, and change the classes of drivers.
  "test/processes/!(cross-process|lost-answers|wake-ups).test.ts",
  // The others load TypeScript.
  "test/docs/!(jsdoc-examples|pages).test.ts",
  // The others change the environment of their process, or look at its open files.
  "test/stores/{memory,mysql,pool-sizes,postgres,sqlite,step-executions,step-executions-of-runs,user-transactions-mysql}.test.ts",
  // The other measures the memory of its process.
  "test/http/!(hostile-bodies).test.ts",
  // The others count the errors that no code handles.
  "test/bad-input/!(dropped-promises|processes|runs-that-end|thrown-durations|user-code).test.ts",
  // Hono's server replaces Request and Response of its process.
  "examples/!(http-hono)/**/*.test.ts",
];

export default defineConfig({
  resolve: { alias },
  test: {
    // Processes, not threads: tests kill themselves, change the environment and load a native SQLite.
    pool: "forks",
    // Five files at a time, on two processors: most of what takes long waits for a server, a lease or another process.
    maxWorkers: 5,
    // Transformed modules are kept in node_modules, by a hash of their text and this configuration.
    experimental: { fsModuleCache: true },
    sequence: { sequencer: SlowestFirst },
    globalSetup: "./test/support/global-setup.ts",
    // Only what hangs takes so long: a busy machine is no failure.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 60_000,
    projects: [
      { extends: true, test: { name: "apart", include: ["{src,test,examples}/**/*.test.ts"], exclude: sharing } },
      { extends: true, test: { name: "together", include: sharing, isolate: false } },
    ],
  },
});
