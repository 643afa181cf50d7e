// `npm run test:unit [-- vitest arguments]` and `npm run test:watch`: see vitest.unit.config.ts.

import { install } from "./install.mjs";
import { run, tool } from "./run.mjs";

await install();
const [mode, ...rest] = process.argv.slice(2);
process.exitCode = await run(tool("vitest"), [mode, "--config", "vitest.unit.config.ts", ...rest]);
