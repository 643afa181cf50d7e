// `npm test`; test-options.mjs lists its arguments.
//
// Finds (or starts) the database servers the tests need, builds the library, runs every test against them and cleans
// up. The last line is `N passed, N failed`.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundlePrograms } from "./bundle-programs.mjs";
import { buildDashboard } from "./dashboard.mjs";
import { install } from "./install.mjs";
import { run, tool } from "./run.mjs";
import { help, readOptions } from "./test-options.mjs";

const { without, store, throughPgbouncer, isLong, vitestArguments } = optionsOrExit();
await install();
// Imported late, because it needs the drivers.
const { engines, findDatabase } = await import("./databases.mjs");
const { ownPgbouncer } = await import("./servers.mjs");

const databases = [];
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, cleanUpAndExit);

try {
  const env = await prepareDatabases();
  await build();
  // A long run starts them as they are, with the library as it is published.
  if (!isLong) await usePrograms(env);
  const { passed, failed } = await runVitest(env);
  await cleanUp();
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
} catch (error) {
  console.error(error.message);
  await cleanUp();
  process.exitCode = 1;
}

function optionsOrExit() {
  try {
    const options = readOptions(process.argv.slice(2), process.env);
    if (!options.wantsHelp) return options;
    console.log(help);
    process.exit(0);
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}

/** One database per store; returns the environment that tells the tests where they are. */
async function prepareDatabases() {
  const env = { ...process.env, PAWL_TEST_WITHOUT: without.join(","), PAWL_TEST_STORE: store };
  if (isLong) env.PAWL_TEST_LONG = "1";
  for (const engine of engines) {
    if (without.includes(engine.name)) {
      delete env[engine.urlVariable ?? engine.programVariable];
      const why = store === "" ? "PAWL_TEST_WITHOUT" : `--store=${store}`;
      console.log(`${engine.label}: LEFT OUT, as ${why} asks. Nothing is tested against it.`);
      continue;
    }
    const database = await findDatabase(engine);
    databases.push(database);
    Object.assign(env, database.env ?? { [engine.urlVariable]: database.url });
    console.log(`${engine.label}: ${database.description}`);
  }
  if (throughPgbouncer) await goThroughPgbouncer(env);
  return env;
}

async function goThroughPgbouncer(env) {
  const pooler = await ownPgbouncer(env.PAWL_TEST_POSTGRES_URL);
  databases.push({ close: () => pooler.remove() });
  // The URL of the server itself, for listening connections.
  env.PAWL_TEST_PGBOUNCER = env.PAWL_TEST_POSTGRES_URL;
  env.PAWL_TEST_POSTGRES_URL = pooler.url;
  console.log(`PgBouncer: in transaction mode on port ${pooler.port}, in front of PostgreSQL`);
}

/** Some tests start processes of the built library and kill them. */
async function build() {
  const code = await run(tool("tsc"), ["-p", "tsconfig.build.json"]);
  if (code !== 0) throw new Error("The library does not compile, so no test was run.");
  if ((await buildDashboard()) !== 0) throw new Error("The dashboard could not be built, so no test was run.");
}

async function usePrograms(env) {
  const { folder, remove } = await bundlePrograms();
  databases.push({ close: remove });
  env.PAWL_TEST_PROGRAMS = folder;
}

async function runVitest(env) {
  const folder = mkdtempSync(join(tmpdir(), "pawl-test-"));
  // PAWL_TEST_REPORT keeps the report, to see which files are slow.
  const report = process.env.PAWL_TEST_REPORT || join(folder, "report.json");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  try {
    const code = await run(tool("vitest"), ["run", ...reporters, ...vitestArguments], {
      env,
      wholeGroup: true,
    });
    return count(report, code);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Vitest's report counts tests; a file that did not even load, or an error outside any test, must count as well. */
function count(report, code) {
  const { numPassedTests, numFailedTests, numPendingTests, testResults } = readReport(report);
  const brokenFiles = testResults.filter(
    ({ status, assertionResults }) => status === "failed" && !assertionResults.some((test) => test.status === "failed"),
  );
  const failed = numFailedTests + brokenFiles.length;
  if (numPendingTests > 0) console.log(`Skipped tests: ${numPendingTests}`);
  return { passed: numPassedTests, failed: code === 0 ? failed : Math.max(failed, 1) };
}

function readReport(report) {
  try {
    return JSON.parse(readFileSync(report, "utf8"));
  } catch {
    return { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, testResults: [] };
  }
}

async function cleanUp() {
  for (const database of databases.splice(0).reverse()) {
    await database.close().catch((error) => console.error(`A test database was left behind: ${error.message}`));
  }
}

async function cleanUpAndExit() {
  await cleanUp();
  process.exit(130);
}
