/** The inputs and outputs of runs that have gathered a list, and of the elements of batches. */
import { decode } from "../../core/encoding/decode.js";
import { DamagedDataError, InvalidStateError } from "../../core/errors/errors.js";
import { readGathering } from "../../core/gathering/run-gathering.js";
import { elementIdOf, parseRunId } from "../../core/naming/element-id.js";
import type { RunRecord, Store } from "../../store/contract/store.js";
import { decodeColumn } from "./damaged-data.js";
import type { RunInfo } from "./run-info.js";

/** Adds the inputs of a list that the row of the run does not have yet, and reduces them to those of one element. */
export async function withGatheredInput(
  store: Store,
  run: RunRecord,
  info: RunInfo<any, any>,
  position: number | null,
): Promise<RunInfo<any, any>> {
  const gathering = readGathering(run.schedule);
  const gathered = info.gathered === null ? null : { ...info.gathered, position };
  if (gathering?.list === undefined) return { ...info, gathered };
  const items = gathering.begun ? null : await store.gatherings.items(run.id);
  const inputs =
    items === null || items.some((item) => item.input === null)
      ? (info.input as unknown[])
      : items.map((item) => decode(item.input as string));
  if (position === null) return { ...info, input: inputs, gathered };
  const output = run.status === "completed" ? outputOfPosition(run, position) : null;
  return { ...info, id: elementIdOf(run.id, position), input: inputs[position], output, gathered };
}

/** @param position the position of an element; null: the whole output */
export function outputOfPosition(run: RunRecord, position: number | null): unknown {
  const output = decodeColumn(run, "output");
  if (position === null) return output;
  if (Array.isArray(output) && position < output.length) return output[position];
  const problem = `it has no element ${position}`;
  throw new DamagedDataError({ runId: run.id, column: "output", problem });
}

/** @throws InvalidStateError if the handle is that of one element: a command would meet all elements of the batch */
export function checkIsWhole({ id }: { readonly id: string }): void {
  const { runId, position } = parseRunId(id) as { runId: string; position: number | null };
  if (position === null) return;
  throw new InvalidStateError(
    `${id} is one start of the batch ${runId}, which has one run for all of its starts; send commands to pawl.run("${runId}").`,
    { runId },
  );
}
