/** What the tests of the workflow classes share. */
import type { AnyWorkflow, Logger, RunHandle, Workflow, WorkflowClass } from "pawl";
import { type CrashTestOptions, type TestPawl, testPawl } from "pawl/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";

/** Every test starts on this day. */
export const firstDay = new Date("2030-01-01T00:00:00Z");

interface Database {
  readonly url: string;
  drop(): Promise<void>;
}

export interface Stage {
  /** Pawl with a virtual clock, created for each test. */
  readonly t: TestPawl;
}

const silent: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/**
 * Sets up the surrounding tests: one database, and for each test a new Pawl on it. Before each test, `reset` restores
 * the outside world; after each test, all the logs in the database must agree with the tables.
 */
export function stageOn(
  makeDatabase: () => Promise<Database>,
  workflows: readonly AnyWorkflow[],
  reset: () => void,
): Stage {
  let database: Database;
  let t: TestPawl;

  beforeAll(async () => {
    database = await makeDatabase();
  });
  afterAll(() => database.drop());

  beforeEach(async () => {
    reset();
    t = await testPawl({ workflows, store: database.url, startAt: firstDay, logger: silent });
  });
  afterEach(async () => {
    expect((await t.pawl.verify()).differences).toEqual([]);
    await t.close();
  });

  return {
    get t() {
      return t;
    },
  };
}

/** Each execution as a line: "send_reminder 2: completed (success)". */
export async function executionsOf(run: RunHandle<any, any>): Promise<string[]> {
  const executions = await run.executions();
  return executions.map(({ step, attempt, state, outcome }) => `${step} ${attempt}: ${state} (${outcome})`);
}

interface CrashOptions<Input, Output> extends Omit<CrashTestOptions<Input, Output>, "compare" | "store"> {
  /** What must hold in the outside world after each run, wherever its worker died. */
  check(): void;
}

/** A crash test of a workflow whose result is its effects outside. */
export async function crashEverywhere<Input, Output>(
  { t }: Stage,
  workflow: WorkflowClass<Workflow<any, Input, Output>>,
  input: Input,
  { check, ...options }: CrashOptions<Input, Output>,
): Promise<void> {
  const { points } = await t.crashTest(workflow, input, {
    ...options,
    compare: () => {
      check();
      return true;
    },
  });
  expect(points).toBeGreaterThan(0);
}
