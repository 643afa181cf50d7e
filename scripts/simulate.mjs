// `npm run simulate -- [--seeds 10000] [--from N] [--jobs 2] [--seed N --trace] [--mutants]`
//
// Simulated worlds: workers, clients and the memory store in one process, on simulated time, with faults between all of
// them. A seed determines everything that happens in its world.

import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { install } from "./install.mjs";
import { root, run, tool } from "./run.mjs";

await install();
const compiled = join(root, ".simulation");
rmSync(join(compiled, "src"), { recursive: true, force: true });
rmSync(join(compiled, "test"), { recursive: true, force: true });
const compiledCode = await run(tool("tsc"), ["-p", "tsconfig.simulation.json", "--noCheck"]);
if (compiledCode !== 0) process.exit(compiledCode);
const isAboutMutants = process.argv.includes("--mutants");
const main = join(compiled, "test/simulation", isAboutMutants ? "mutants/main.js" : "main.js");
const child = spawn(process.execPath, ["--enable-source-maps", main, ...process.argv.slice(2)], {
  cwd: root,
  stdio: "inherit",
});
child.once("exit", (code) => process.exit(code ?? 1));
