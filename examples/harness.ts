/** What the tests of the examples share. */
import {
  connect,
  type HistoryEvent,
  type Pawl,
  type RunHandle,
  type Verification,
  type WorkflowDefinition,
} from "pawl";
import { type CrashTestOptions, type CrashTestReport, crashTest } from "pawl/testing";

/** All of it, page by page. */
export async function historyOf(run: RunHandle<any, any>): Promise<HistoryEvent[]> {
  const history: HistoryEvent[] = [];
  for (;;) {
    const page = await run.history({ after: history.length });
    if (page.length === 0) return history;
    history.push(...page);
  }
}

/**
 * The run's history in short, for reading and comparing. Without the starts of steps: they are recorded only for those
 * that take longer than a moment, which depends on the machine.
 */
export async function storyOf(run: RunHandle<any, any>): Promise<string[]> {
  const history = await historyOf(run);
  return history
    .filter(({ type }) => type !== "step.started")
    .map(({ type, node }) => (node === null ? type : `${type} ${node}`));
}

/** Lets the workflow's worker die at many points, then compares all the logs that this left with the tables. */
export async function crashAndVerify<Input, Output>(
  definition: WorkflowDefinition<Input, Output>,
  input: Input,
  { store, drive, ...options }: CrashTestOptions<Input, Output> & { readonly store: string },
): Promise<CrashTestReport<Output> & { readonly verification: Verification }> {
  let insider: Pawl | undefined;
  const report = await crashTest(definition, input, {
    ...options,
    store,
    drive: (run, pawl) => {
      insider = pawl;
      return drive?.(run, pawl);
    },
  });
  // What is in memory can only be seen by somebody who was there; a database is looked at afresh.
  if (store === "memory:" && insider !== undefined) return { ...report, verification: await insider.verify() };
  const pawl = await connect(store);
  try {
    return { ...report, verification: await pawl.verify() };
  } finally {
    await pawl.close();
  }
}
