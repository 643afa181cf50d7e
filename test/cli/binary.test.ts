/** Every command once as a real process, in the short form every third: arguments, streams and exit codes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { finished } from "node:stream/promises";
import { expect, onTestFinished, test } from "vitest";
import { groups } from "../../src/cli/commands.js";
import { sized } from "../support/effort.js";
import { errorIn, newFolder, program, workflows } from "./command-line.js";
import { folderWithSampleRuns } from "./sample-runs.js";

type Step = readonly [command: string, ...args: string[]];

test("every command exits with 0 and prints something; with a bad argument it exits with 1 and one sentence", async () => {
  const { folder, ids } = await folderWithSampleRuns();
  const done = new Set<string>();
  const inOrder = async (steps: readonly Step[]) => {
    for (const [index, step] of steps.entries()) {
      const args = [...step, "--json"];
      const isReal = index % sized(3, 1) === 0;
      const { code, stdout, stderr } = await (isReal ? folder.begin(args).exited : folder.pawl(...args));
      expect([step, code, stderr.replace(/^warning: .*\n/, "")]).toEqual([step, 0, ""]);
      expect(step[0] === "completion" || step[0] === "help" ? stdout : JSON.parse(stdout)).toBeTruthy();
      done.add(step[0]);
    }
  };
  const untilStopped = async (command: string, text = " serves ") => {
    const process = folder.begin([command, workflows]);
    await process.until(text);
    expect((await process.stop()).code).toBe(0);
    done.add(command);
  };
  try {
    // Commands that do not interfere with each other run concurrently.
    await Promise.all([
      inOrder([
        ["runs"],
        ["errors"],
        ["show", ids.order],
        ["history", ids.order],
        ["explain", ids.order],
        ["signal", ids.order, "approved"],
        ["verify", ids.flaky],
        ["init", "elsewhere"],
        ["dag", "export", ids.onboarding],
      ]),
      inOrder([
        ["workers"],
        ["queues"],
        ["schedules"],
        ["limits"],
        ["metrics"],
        ["migrate"],
        ["doctor"],
        ["graph", workflows],
        ["completion", "bash"],
        ["help"],
      ]),
      inOrder([
        ["pause", ids.onboarding],
        ["resume", ids.onboarding],
        ["skip", ids.held],
        ["cancel", ids.onboarding],
        ["retry", ids.declined],
        ["prune", "--older-than", "30d"],
        ["start", "echo", "1"],
      ]),
    ]);
    await Promise.all([untilStopped("worker"), untilStopped("dev"), untilStopped("dashboard", "Dashboard: ")]);
    expect(errorIn(await folder.begin(["reattempt", ids.flaky, "call"]).exited)).toContain(ids.flaky);
    done.add("reattempt");
  } finally {
    await folder.remove();
  }
  expect([...done].sort()).toEqual(groups.flatMap(({ commands }) => commands.map(({ name }) => name)).sort());
});

test("the worker command in docs/deploying.md stops on SIGTERM", async () => {
  const page = readFileSync(new URL("../../docs/deploying.md", import.meta.url), "utf8");
  const [, list] = /^ +command: (\[.*\])$/m.exec(page) ?? [];
  const [command, ...args] = JSON.parse(list as string) as [string, ...string[]];
  const folder = newFolder();
  folder.write("package.json", '{ "type": "module" }');
  folder.write(
    "dist/workflows.js",
    'import { workflow } from "pawl";\nexport const hi = workflow("hi", async () => "hi");',
  );
  // The link is the one that npm installs.
  mkdirSync(join(folder.path, "node_modules/.bin"), { recursive: true });
  symlinkSync(dirname(dirname(dirname(program))), join(folder.path, "node_modules/pawl"));
  symlinkSync("../pawl/dist/cli/main.js", join(folder.path, "node_modules/.bin/pawl"));

  const child = spawn(command, args, {
    cwd: folder.path,
    env: { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, PAWL_URL: folder.url },
    stdio: ["ignore", "pipe", "inherit"],
    // The command gets a process group of its own, so that anything that outlives it ends with the test.
    detached: true,
  });
  onTestFinished(() => endGroup(child.pid as number));
  let said = "";
  const served = new Promise<void>((resolve) => {
    child.stdout.on("data", (text) => {
      said += text;
      if (said.includes(" serves hi ")) resolve();
    });
  });
  const exited = once(child, "exit");
  await Promise.race([served, exited]);
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
  await finished(child.stdout);
  expect(said).toContain("has stopped.");
});

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // No process of the group is left.
  }
}
