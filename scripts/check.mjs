// `npm run check`: everything but the tests. Every check runs, so that one run shows all there is to mend.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { checkClocks } from "./check-clocks.mjs";
import { install } from "./install.mjs";
import { root, run, tool } from "./run.mjs";

const checks = {
  "format and lint": () => run(tool("biome"), ["check", "--error-on-warnings", "."]),
  types: () => run(tool("tsc"), ["-p", "tsconfig.json"]),
  "import direction": checkImports,
  "clocks and chance": () => checkClocks(),
  "dead exports": () => run(tool("knip"), []),
};

await install();
const failed = [];
for (const [name, check] of Object.entries(checks)) {
  console.log(`— ${name}`);
  if ((await check()) !== 0) failed.push(name);
}
console.log(failed.length === 0 ? "All checks passed." : `Failed: ${failed.join(", ")}.`);
process.exit(failed.length === 0 ? 0 : 1);

/** The rules look at the sources, and for cycles at the compiled files (.dependency-cruiser.cjs says why). */
async function checkImports() {
  const compiled = join(root, ".check");
  rmSync(compiled, { recursive: true, force: true });
  // Type errors are reported by the check before; here only the emitted imports matter.
  await run(tool("tsc"), [
    "-p",
    "tsconfig.build.json",
    "--outDir",
    ".check",
    "--declaration",
    "false",
    "--declarationMap",
    "false",
    "--sourceMap",
    "false",
    "--noCheck",
  ]);
  const code = await run(tool("depcruise"), ["--config", ".dependency-cruiser.cjs", "src", ".check"]);
  rmSync(compiled, { recursive: true, force: true });
  return code;
}
