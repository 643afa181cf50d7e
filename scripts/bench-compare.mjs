// `npm run bench:compare -- --with REVISION [--store postgres,sqlite,mysql] [--only W1,W2] [--rounds 6]`
//
// The same workloads on this code and on an earlier revision, in alternating rounds: a machine that is busy with other
// things slows both down. Prints the ratio of each figure, this code to the other, as the median of the rounds.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { exitWith, runBenchmark } from "./benchmark.mjs";
import { install } from "./install.mjs";
import { root, run, tool } from "./run.mjs";

await install();
const { values } = parseArgs({
  options: {
    with: { type: "string" },
    store: { type: "string", default: "postgres,sqlite" },
    only: { type: "string", default: "W1,W2" },
    rounds: { type: "string", default: "6" },
  },
});

await exitWith(async () => {
  if (values.with === undefined) throw new Error("Compare with what? npm run bench:compare -- --with HEAD~1");
  const folder = mkdtempSync(join(tmpdir(), "pawl-compare-"));
  const other = join(folder, "other");
  try {
    execFileSync("git", ["worktree", "add", "--detach", "--quiet", other, values.with], { cwd: root });
    symlinkSync(join(root, "node_modules"), join(other, "node_modules"));
    if ((await run(tool("tsc"), ["-p", join(other, "tsconfig.build.json")])) !== 0)
      throw new Error(`Revision ${values.with} does not compile.`);
    process.env.PAWL_COMPARE = JSON.stringify({ ...values, folder, here: root, other });
    return await runBenchmark({ stores: values.store.split(","), program: "bench/compare.mjs", args: [] });
  } finally {
    execFileSync("git", ["worktree", "remove", "--force", other], { cwd: root });
    rmSync(folder, { recursive: true, force: true });
  }
});
