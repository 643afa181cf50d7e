// `npm run bench:peers [-- --contender pawl,dbos] [--only W1,W2] [--rounds 5] [--quick] [--json FILE]`
//
// Installs the peers (a package of its own, bench/peers), builds the library, finds (or makes) a PostgreSQL server as
// `npm test` does, and runs bench/peers/main.mjs on it, under the peers' Node: some need a newer one than the library.
// With PAWL_TEST_POSTGRES_PORT=1 it starts a server of its own: nobody else's work is in the figures.

import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { install } from "./install.mjs";
import { root, run, tool } from "./run.mjs";

const folder = join(root, "bench/peers");
const programs = join(folder, "node_modules/.bin");

await install();
// Only now: it needs the drivers.
const { engines, findDatabase } = await import("./databases.mjs");
const { readArguments } = await import("../bench/peers/arguments.mjs");

const args = process.argv.slice(2);

// The comparison ends its own processes and drops its databases first; then we go on below, and end as well.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});

let database;
try {
  // Before anything that takes time: they may be wrong.
  readArguments(args);
  await installPeers();
  if ((await run(tool("tsc"), ["-p", "tsconfig.build.json"])) !== 0) throw new Error("The library does not compile.");
  const postgres = engines.find(({ name }) => name === "postgres");
  database = await findDatabase(postgres);
  const env = {
    ...process.env,
    [postgres.urlVariable]: database.url,
    [`${postgres.urlVariable}_DESCRIPTION`]: `${postgres.label} ${database.description}`,
  };
  process.exitCode = await run(join(programs, "node"), [join(folder, "main.mjs"), ...args], { env });
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await database?.close().catch((error) => console.error(`A database was left behind: ${error.message}`));
}

/**
 * The peers are optional dependencies, so that one that cannot be had does not keep the others away. npm passes over
 * those that do not run on its own Node, too: when some are missing, it runs again, on the Node that is now there.
 */
async function installPeers() {
  if (missingPeers().length === 0) return;
  console.log("Installing the peers …");
  const args = ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", folder];
  // One of them reports every installation to its makers otherwise.
  const env = { ...process.env, DO_NOT_TRACK: "1" };
  if ((await run("npm", args, { env })) !== 0 && missingPeers().includes("node"))
    throw new Error("The peers could not be installed; npm says why above.");
  if (missingPeers().length > 0)
    await run("npm", args, { env: { ...env, PATH: `${programs}${delimiter}${env.PATH}` } });
}

/** Those that are not there in the version that bench/peers/package.json asks for. */
function missingPeers() {
  const { dependencies, optionalDependencies } = readPackage(folder);
  return Object.entries({ ...dependencies, ...optionalDependencies })
    .filter(([name, version]) => readPackage(join(folder, "node_modules", name))?.version !== version)
    .map(([name]) => name);
}

function readPackage(path) {
  try {
    return JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  } catch {
    return undefined;
  }
}
