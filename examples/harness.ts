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

/** The whole history, page by page. */
export async function historyOf(run: RunHandle<any, any>): Promise<HistoryEvent[]> {
  const history: HistoryEvent[] = [];
  for (;;) {
    const page = await run.history({ after: history.length });
    if (page.length === 0) return history;
    history.push(...page);
  }
}

/**
 * The run's history in short, for reading and comparing. The starts of steps are left out: they are recorded only for
 * steps that take longer than a moment, which depends on the machine.
 */
export async function storyOf(run: RunHandle<any, any>): Promise<string[]> {
  const history = await historyOf(run);
  return history
    .filter(({ type }) => type !== "step.started")
    .map(({ type, node }) => (node === null ? type : `${type} ${node}`));
}

/** Lets the workflow's worker die at many points, then compares all the resulting logs with the tables. */
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
  // A memory store is only visible to the client that used it; a database is opened again.
  if (store === "memory:" && insider !== undefined) return { ...report, verification: await insider.verify() };
  const pawl = await connect(store);
  try {
    return { ...report, verification: await pawl.verify() };
  } finally {
    await pawl.close();
  }
}
