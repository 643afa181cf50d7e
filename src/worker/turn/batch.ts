/** Runs of workflows with `batch`: their code gets a list of inputs and returns a list of outputs. */

import { PermanentError } from "../../core/errors/errors.js";
import { encodeList } from "../../core/gathering/list-input.js";
import { readGathering } from "../../core/gathering/run-gathering.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { RunRecord } from "../../store/contract/store.js";

/**
 * A run that was not gathered, such as that of a schedule or of a parent, is a batch of one: its code gets a list, and its
 * output is the only element of the list that the code returns.
 */
const isBatchOfOne = ({ batch }: WorkflowDefinition, { schedule }: RunRecord) =>
  batch !== null && readGathering(schedule)?.list === undefined;

/** Returns the run with the input that its code gets. */
export const withBatchInput = (definition: WorkflowDefinition, run: RunRecord): RunRecord =>
  isBatchOfOne(definition, run) ? { ...run, input: encodeList([run]) } : run;

/**
 * Checks what the code has returned. Code that returns nothing has nothing to say to any of the starts.
 *
 * @returns the outputs of the starts, in order
 * @throws PermanentError if it is no list of as many outputs as there are inputs
 */
export function checkOutputs({ name }: WorkflowDefinition, output: unknown, inputs: unknown): readonly unknown[] {
  const count = (inputs as readonly unknown[]).length;
  if (output === undefined) return new Array(count).fill(undefined);
  if (Array.isArray(output) && output.length === count) return output;
  const returned = Array.isArray(output) ? `a list of ${output.length}` : `no list`;
  throw new PermanentError(
    `Workflow "${name}" gathers its starts in batches, so it must return a list with one output for each of its ${count} inputs, in their order; it returned ${returned}.`,
  );
}

/** The output of the run, given those of its starts. */
export const outputOfBatch = (definition: WorkflowDefinition, run: RunRecord, outputs: readonly unknown[]): unknown =>
  isBatchOfOne(definition, run) ? outputs[0] : outputs;
