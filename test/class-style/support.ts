/** What the tests of workflow classes share: small classes, attempts as text, and commands that must change nothing. */
import { type ClassOptions, type RunHandle, type StepDeclarationOptions, Workflow } from "pawl";
import type { TestPawl } from "pawl/testing";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import { errorOf, logOf, type MortalWorker, until, type World, world } from "../function-style/support.js";
import { type AnyStoreKind, type TestDatabase, testDatabase } from "../stores/harness.js";

export type AnyRun = RunHandle<any, any>;

/** A class with a step "work" that is the test's business, and a step "after" that shows whether the run went on. */
export function working(
  work: (w: Workflow) => unknown,
  stepOptions: StepDeclarationOptions<Workflow> = {},
  classOptions: ClassOptions<Workflow> = {},
) {
  return class Working extends Workflow {
    static {
      this.options({ name: "Working", ...classOptions });
      this.step("work", stepOptions, work);
      this.step("after", () => {});
    }
  };
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

/**
 * One database for all tests of the current `describe`: to make one takes longer than most of these tests. They keep out
 * of each other's way by the names of their classes and heroes. (In memory each world is a store of its own.)
 */
export function databaseFor(kind: AnyStoreKind): { url(): string; world(): Promise<World> } {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database.drop());
  return { url: () => database.url, world: () => world(kind, database.url) };
}

/** Resolves when the owner of the run has put this into its log. */
export function recorded(run: AnyRun, line: string): Promise<void> {
  return until(async () => (await logOf(run)).includes(line));
}

/** From now on these workers run whatever becomes due, each beside the others, until the test ends. */
export function keepWorking(...workers: readonly MortalWorker[]): void {
  let over = false;
  onTestFinished(() => {
    over = true;
  });
  for (const worker of workers) {
    void (async () => {
      while (!over) {
        await worker.settle();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })().catch(() => {});
  }
}
