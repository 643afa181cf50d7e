/** Every command as the program that people run, once: arguments, streams and exit codes of a real process. */
import { expect, test } from "vitest";
import { groups } from "../../src/cli/commands.js";
import { stockedFolder } from "./stocked.js";
import { complaintIn, workflows } from "./support.js";

type Step = readonly [command: string, ...args: string[]];

test("every command ends with exit code 0 and says something; with a bad argument with 1 and one sentence", async () => {
  const { folder, ids } = await stockedFolder();
  const done = new Set<string>();
  const inOrder = async (steps: readonly Step[]) => {
    for (const step of steps) {
      const { code, stdout, stderr } = await folder.begin([...step, "--json"]).exited;
      expect([step, code, stderr.replace(/^warning: .*\n/, "")]).toEqual([step, 0, ""]);
      expect(step[0] === "completion" || step[0] === "help" ? stdout : JSON.parse(stdout)).toBeTruthy();
      done.add(step[0]);
    }
  };
  const untilStopped = async (command: string) => {
    const process = folder.begin([command, workflows]);
    await process.until(" serves ");
    expect((await process.stop()).code).toBe(0);
    done.add(command);
  };
  try {
    // Side by side what does not get in each other's way.
    await Promise.all([
      inOrder([
        ["runs"],
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
    await Promise.all([untilStopped("worker"), untilStopped("dev")]);
    expect(complaintIn(await folder.begin(["reattempt", ids.flaky, "call"]).exited)).toContain(ids.flaky);
    done.add("reattempt");
  } finally {
    await folder.remove();
  }
  expect([...done].sort()).toEqual(groups.flatMap(({ commands }) => commands.map(({ name }) => name)).sort());
});
