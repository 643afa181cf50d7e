/** What a test can know of a run from outside: its log and attempts as text, and commands that must change nothing. */
import type { RunHandle } from "pawl";
import type { TestPawl } from "pawl/testing";
import { expect } from "vitest";
import type { World } from "./virtual-worlds.js";
import { errorOf, until } from "./waiting.js";

export type AnyRun = RunHandle<any, any>;

/** The log as lines such as "step.completed charge". */
export async function logOf(run: AnyRun): Promise<string[]> {
  return (await run.history()).map(({ type, node }) => (node === null ? type : `${type} ${node}`));
}

/** Each attempt at each declared step, such as "work 1 failed reattempted_by_exception". */
export async function attemptsOf(run: AnyRun): Promise<string[]> {
  const declared = (await run.executions()).filter(({ step }) => !step.includes("/"));
  return declared.map(({ step, attempt, state, outcome }) => `${step} ${attempt} ${state} ${outcome ?? "–"}`);
}

/** Everything that can be known of a run from outside. */
async function lookAt(run: AnyRun) {
  return { info: await run.get(), history: await run.history(), executions: await run.executions() };
}

/** The command is refused with an InvalidStateError, and nothing that can be seen of the run has changed. */
export async function refused(run: AnyRun, command: () => Promise<void>): Promise<void> {
  const before = await lookAt(run);
  expect(await errorOf(command())).toMatchObject({ name: "InvalidStateError", code: "INVALID_STATE" });
  expect(await lookAt(run)).toEqual(before);
}

/** The command is accepted, and nothing that can be seen of the run has changed. */
export async function passedOver(run: AnyRun, command: () => Promise<void>): Promise<void> {
  const before = await lookAt(run);
  await command();
  expect(await lookAt(run)).toEqual(before);
}

/** The tables say what the logs say. */
export async function expectSound({ pawl }: Pick<TestPawl | World, "pawl">): Promise<void> {
  expect((await pawl.verify()).differences).toEqual([]);
}

/** Resolves when the owner of the run has put this into its log. */
export function recorded(run: AnyRun, line: string): Promise<void> {
  return until(async () => (await logOf(run)).includes(line));
}
