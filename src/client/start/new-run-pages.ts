/** Splits many new runs into pages, so that the memory for encoded runs that are not written yet is bounded. */

import type { Runtime } from "../../runtime/runtime.js";
import { yieldToEventLoop } from "../../runtime/wait.js";
import type { NewRun } from "../../store/contract/store.js";

export const runsPerPage = 1_000;
const bytesPerPage = 8 * 1024 * 1024;
/** Up to these limits, all new runs of a call stay in memory and are one page. Beyond them, each run is made twice. */
const maxKeptRuns = 20_000;
const maxKeptBytes = 32 * 1024 * 1024;

type CreateRun<Input> = (input: Input) => NewRun | Promise<NewRun>;

/**
 * Makes all runs before it yields the first page, so that an input that cannot be stored throws before any run is started.
 * If the runs are too many to keep in memory, it makes them a second time, page by page.
 */
export async function* newRunsInPages<Input>(
  inputs: readonly Input[],
  createRun: CreateRun<Input>,
  runtime: Runtime,
): AsyncGenerator<readonly NewRun[]> {
  const keptRuns = await createAll(inputs, createRun, runtime);
  if (keptRuns !== null) return yield keptRuns;
  let page: NewRun[] = [];
  let bytes = 0;
  for (const input of inputs) {
    const run = await createRun(input);
    page.push(run);
    bytes += run.input.length;
    if (page.length < runsPerPage && bytes < bytesPerPage) continue;
    yield page;
    page = [];
    bytes = 0;
  }
  if (page.length > 0) yield page;
}

/** Makes all runs; returns null if they are too many to keep in memory. Yields to the event loop after every 1,000 runs. */
async function createAll<Input>(
  inputs: readonly Input[],
  createRun: CreateRun<Input>,
  runtime: Runtime,
): Promise<readonly NewRun[] | null> {
  let keptRuns: NewRun[] | null = [];
  let bytes = 0;
  for (let index = 0; index < inputs.length; index += 1) {
    const runOrPromise = createRun(inputs[index] as Input);
    // Without a schema, `createRun` is synchronous, and awaiting each run would cost more than making it.
    const run = runOrPromise instanceof Promise ? await runOrPromise : runOrPromise;
    bytes += run.input.length;
    if (keptRuns !== null && keptRuns.length < maxKeptRuns && bytes < maxKeptBytes) keptRuns.push(run);
    else keptRuns = null;
    if (index % runsPerPage === runsPerPage - 1) await yieldToEventLoop(runtime);
  }
  return keptRuns;
}
