// `npm run bench [-- --store postgres,sqlite] [--only W1,W2] [--rounds 5] [--quick] [--json FILE]`
//
// Builds the library, finds (or makes) the database servers as `npm test` does, and runs bench/main.mjs on them. With
// PAWL_TEST_POSTGRES_PORT=1 PAWL_TEST_MYSQL_PORT=1 it starts servers of its own: nobody else's work is in the figures.

import { install } from "./install.mjs";
import { root, run, tool } from "./run.mjs";

await install();
// Only now: it needs the drivers.
const { engines, findDatabase } = await import("./databases.mjs");
const { readArguments } = await import("../bench/arguments.mjs");

const args = process.argv.slice(2);
const databases = [];
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, cleanUp);

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
  process.exitCode = await run(process.execPath, [`${root}bench/main.mjs`, ...args], { env });
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await cleanUp();
}

async function cleanUp() {
  for (const database of databases.splice(0)) {
    await database.close().catch((error) => console.error(`A database was left behind: ${error.message}`));
  }
}
