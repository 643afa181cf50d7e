// What the benchmarks have in common: builds the library, finds (or starts) the database servers as `npm test` does,
// runs the program on them, and closes what it opened. With PAWL_TEST_POSTGRES_PORT=1 PAWL_TEST_MYSQL_PORT=1 it starts
// its own servers, so that no other work affects the figures.

import { root, run, tool } from "./run.mjs";

/**
 * @param stores what to find servers for, by name
 * @param program the file, from the repository's root
 * @param node what runs it
 */
export async function runBenchmark({ stores, program, args, node = process.execPath }) {
  // Imported late, because it needs the drivers, which may just have been installed.
  const { engines, findDatabase } = await import("./databases.mjs");
  // The program receives the signal as well and removes its own databases; it then ends, and so does this process
  // below.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
  const databases = [];
  try {
    if ((await run(tool("tsc"), ["-p", "tsconfig.build.json"])) !== 0) throw new Error("The library does not compile.");
    const env = { ...process.env };
    for (const engine of engines.filter(({ name }) => stores.includes(name))) {
      const database = await findDatabase(engine);
      databases.push(database);
      Object.assign(env, database.env ?? describedUrl(engine, database));
    }
    return await run(node, [`${root}${program}`, ...args], { env });
  } finally {
    for (const database of databases)
      await database.close().catch((error) => console.error(`A database was left behind: ${error.message}`));
  }
}

const describedUrl = ({ urlVariable, label }, { url, description }) => ({
  [urlVariable]: url,
  [`${urlVariable}_DESCRIPTION`]: `${label} ${description}`,
});

/** The exit code of a benchmark; any error is reported in one sentence. */
export async function exitWith(benchmark) {
  try {
    process.exitCode = await benchmark();
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
