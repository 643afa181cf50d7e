// `npm run bench:growth [-- --store postgres,sqlite] [--only tables,long,map,processes,payloads] [--rounds 5] [--quick]
// [--json FILE] [--plot]`
//
// Builds the library, finds (or makes) the database servers as `npm test` does, and runs bench/growth/main.mjs on them:
// big tables, long runs, wide maps, several worker processes, large payloads. --plot draws the charts in docs/plots. With
// PAWL_TEST_POSTGRES_PORT=1 PAWL_TEST_MYSQL_PORT=1 it starts servers of its own: nobody else's work is in the figures.

import { install } from "./install.mjs";
import { root, run, tool } from "./run.mjs";

await install();
// Only now: it needs the drivers.
const { engines, findDatabase } = await import("./databases.mjs");
const { readArguments } = await import("../bench/growth/arguments.mjs");

const args = process.argv.slice(2);
const databases = [];
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});

try {
  const { stores } = readArguments(args);
  if ((await run(tool("tsc"), ["-p", "tsconfig.build.json"])) !== 0) throw new Error("The library does not compile.");
  const env = { ...process.env };
  for (const engine of engines.filter(({ name }) => stores.includes(name))) {
    const database = await findDatabase(engine);
    databases.push(database);
    env[engine.urlVariable] = database.url;
    env[`${engine.urlVariable}_DESCRIPTION`] = `${engine.label} ${database.description}`;
  }
  process.exitCode = await run(process.execPath, [`${root}bench/growth/main.mjs`, ...args], { env });
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  // Not at a signal: the benchmark has heard it too and removes its own databases first.
  for (const database of databases)
    await database.close().catch((error) => console.error(`A database was left behind: ${error.message}`));
}
