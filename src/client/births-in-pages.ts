/** Many starts at once, a page at a time: what is encoded and not yet written is bounded, however many there are. */
import type { NewRun } from "../store/store.js";

export const runsPerPage = 1_000;
const bytesPerPage = 8 * 1024 * 1024;

/**
 * One input that cannot be stored must not leave half of them started, so all are tried before the first page is given
 * out, and made again then: keeping them would take as much memory as all of them together.
 */
export async function* birthsInPages<Input>(
  inputs: readonly Input[],
  make: (input: Input) => Promise<NewRun>,
): AsyncGenerator<readonly NewRun[]> {
  await tryAll(inputs, make);
  let page: NewRun[] = [];
  let bytes = 0;
  for (const input of inputs) {
    const run = await make(input);
    page.push(run);
    bytes += run.input.length;
    if (page.length < runsPerPage && bytes < bytesPerPage) continue;
    yield page;
    page = [];
    bytes = 0;
  }
  if (page.length > 0) yield page;
}

/** After each page other things of this process get their turn. */
async function tryAll<Input>(inputs: readonly Input[], make: (input: Input) => Promise<NewRun>): Promise<void> {
  for (const [index, input] of inputs.entries()) {
    await make(input);
    if (index % runsPerPage === runsPerPage - 1) await new Promise((resolve) => setImmediate(resolve));
  }
}
