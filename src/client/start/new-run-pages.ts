/** Many starts at once: what is encoded and not yet written is bounded, however many there are. */

import type { Runtime } from "../../runtime/runtime.js";
import { yieldToEventLoop } from "../../runtime/wait.js";
import type { NewRun } from "../../store/contract/store.js";

export const runsPerPage = 1_000;
const bytesPerPage = 8 * 1024 * 1024;
/** As many as these are kept while the others are tried: a start of thousands is made once, and goes out as a whole. */
const maxKeptRuns = 20_000;
const maxKeptBytes = 32 * 1024 * 1024;

type CreateRun<Input> = (input: Input) => NewRun | Promise<NewRun>;

/**
 * One input that cannot be stored must not leave half of them started, so all are tried before the first page is given
 * out. If they are too many to be kept meanwhile, they are made again, page by page.
 */
export async function* newRunsInPages<Input>(
  inputs: readonly Input[],
  createRun: CreateRun<Input>,
  runtime: Runtime,
): AsyncGenerator<readonly NewRun[]> {
  const kept = await createAll(inputs, createRun, runtime);
  if (kept !== null) return yield kept;
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

/** null: they are too many to be kept. After each page other things of this process get their turn. */
async function createAll<Input>(
  inputs: readonly Input[],
  createRun: CreateRun<Input>,
  runtime: Runtime,
): Promise<readonly NewRun[] | null> {
  let kept: NewRun[] | null = [];
  let bytes = 0;
  for (let index = 0; index < inputs.length; index += 1) {
    const created = createRun(inputs[index] as Input);
    // Without a schema nothing has to be waited for, and a promise for each would cost more than the rest.
    const run = created instanceof Promise ? await created : created;
    bytes += run.input.length;
    if (kept !== null && kept.length < maxKeptRuns && bytes < maxKeptBytes) kept.push(run);
    else kept = null;
    if (index % runsPerPage === runsPerPage - 1) await yieldToEventLoop(runtime);
  }
  return kept;
}
