// `npm run torture -- [--store sqlite|postgres|mysql] [--minutes 5] [--seed N] [--schedules | --limits]`
//
// Minutes of kills, stops, cut, stalled and swallowed connections and server crashes, on separate database servers,
// while processes execute, start and command runs; then a checker that shares no code with the library judges the
// result. Not part of `npm test`.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { install } from "./install.mjs";
import { root, run, tool } from "./run.mjs";

await install();
const compiled = join(root, ".torture");
rmSync(compiled, { recursive: true, force: true });
for (const project of ["tsconfig.build.json", "tsconfig.torture.json"]) {
  const code = await run(tool("tsc"), ["-p", project, ...(project === "tsconfig.torture.json" ? ["--noCheck"] : [])]);
  if (code !== 0) process.exit(code);
}

const { ownMariadb, ownPostgres } = await import("./servers.mjs");
const { torture } = await import(join(compiled, "test/torture/main.js"));
process.exitCode = await torture(process.argv.slice(2), { postgres: ownPostgres, mysql: ownMariadb });
process.exit();
