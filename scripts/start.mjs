// `npm start`: the demo, on the library as it is published. `npm start -- --stay` keeps its dashboard until Ctrl-C.

import { buildDashboard } from "./dashboard.mjs";
import { install } from "./install.mjs";
import { root, run, tool } from "./run.mjs";

await install();
await compile("tsconfig.build.json");
const built = await buildDashboard();
if (built !== 0) process.exit(built);
// Compiled into the repository's own folder so that `from "pawl"` finds this package through its exports map.
await compile("tsconfig.examples.json");
process.exit(
  await run(process.execPath, ["--enable-source-maps", `${root}.demo/examples/demo/main.js`, ...process.argv.slice(2)]),
);

async function compile(project) {
  const code = await run(tool("tsc"), ["-p", project]);
  if (code !== 0) process.exit(code);
}
