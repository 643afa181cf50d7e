// `npm run check`: everything but the tests. Every check runs, so that one run shows everything that must be fixed.

import { checkClocks } from "./check-clocks.mjs";
import { checkPackage } from "./check-package.mjs";
import { checkDashboardTypes } from "./dashboard.mjs";
import { checkDashboardImports } from "./dashboard-imports.mjs";
import { checkFileLengths } from "./file-lengths.mjs";
import { install } from "./install.mjs";
import { run, tool } from "./run.mjs";

const checks = {
  "format and lint": () => run(tool("biome"), ["check", "--error-on-warnings", "."]),
  types: () => run(tool("tsc"), ["-p", "tsconfig.json"]),
  "types of the dashboard": checkDashboardTypes,
  "import direction": () => run(tool("depcruise"), ["--config", ".dependency-cruiser.cjs", "src"]),
  "import direction in the dashboard": checkDashboardImports,
  "clocks and chance": checkClocks,
  "file lengths": checkFileLengths,
  "dead exports": () => run(tool("knip"), []),
  package: checkPackage,
};

await install();
const failed = [];
for (const [name, check] of Object.entries(checks)) {
  console.log(`— ${name}`);
  if ((await check()) !== 0) failed.push(name);
}
console.log(failed.length === 0 ? "All checks passed." : `Failed: ${failed.join(", ")}.`);
process.exit(failed.length === 0 ? 0 : 1);
