/**
 * What the code of a run gets as its input. The schema is asked once, before any code runs, and what it made of the input
 * is in the log unless it is what was given: a default that is made of the clock or of randomness is the same on every
 * replay, and a release with another schema changes nothing under open runs.
 */
import { decode } from "../../core/encoding/decode.js";
import { encode } from "../../core/encoding/encode.js";
import { toFailure } from "../../core/encoding/error-record.js";
import { InvalidInputError, PauseError, TransientError } from "../../core/errors/errors.js";
import { dataOf, newEvent } from "../../core/run/event.js";
import type { RunState } from "../../core/run/state.js";
import { onFailureStep } from "../../core/run/step-name.js";
import { type StandardSchemaV1, validate } from "../../define/standard-schema.js";
import { handlerThrew } from "./handler-end.js";
import type { WholeTurn } from "./ports.js";
import { pauseRunOnError } from "./user-code.js";

/** Calls the code with its input; not at all when there is none that it could be called with. */
export function callWithInput(turn: WholeTurn, callCode: (input: unknown) => void): void {
  let recordedInput: unknown;
  try {
    recordedInput = readRecordedInput(turn);
  } catch (error) {
    return turn.pauseWithError("The input of the run cannot be read.", toFailure(error));
  }
  const { inputSchema } = turn.definition;
  if (inputSchema === null || turn.state.checkedInput !== null) return callCode(recordedInput);
  turn.attempts
    .preventParkingDuring(() => validateInput(turn, inputSchema, recordedInput))
    .then(
      (input) => pauseRunOnError(turn, () => (turn.isOver ? undefined : callCode(input))),
      (error) => pauseRunOnError(turn, () => onInputRefused(turn, recordedInput, error)),
    );
}

/** What the schema once made of it, or what was given. */
export function readRecordedInput({ state, storedInput }: WholeTurn): unknown {
  return state.checkedInput?.isTransformed === true ? state.checkedInput.value : storedInput.value;
}

async function validateInput(turn: WholeTurn, schema: StandardSchemaV1, recordedInput: unknown): Promise<unknown> {
  const label = `input of workflow "${turn.definition.name}"`;
  const text = encodeInput(await validate(schema, recordedInput, label), label);
  if (text === turn.run.input) {
    recordValidation(turn, {});
    return recordedInput;
  }
  recordValidation(turn, { input: text });
  // Before code sees it: what a step did with a value that was lost, its next attempt would do with another.
  await turn.submit([]);
  return decode(text);
}

function encodeInput(value: unknown, label: string): string {
  try {
    return encode(value, { label: `what the schema made of the ${label}` });
  } catch (error) {
    throw new InvalidInputError(`The ${label} cannot be recorded: ${toFailure(error).message}`, { cause: error });
  }
}

/** As a part of the start, unless that is in the log already. */
function recordValidation(turn: WholeTurn, transformed: { readonly input?: string }): void {
  const { events } = turn.pendingWrites;
  const index = events.findIndex(({ type }) => type === "run.started");
  const startedEvent = events[index];
  if (startedEvent === undefined) events.push(newEvent("input.checked", {}, {}, transformed));
  else events[index] = newEvent("run.started", {}, { ...dataOf(startedEvent, "run.started"), checked: true }, transformed);
}

/** A run that has done nothing fails. One that has done something must not be failed, and undone, by a release. */
function onInputRefused(turn: WholeTurn, recordedInput: unknown, error: unknown): Promise<void> | void {
  turn.handler.input = recordedInput;
  turn.results.startDelivery();
  if (!hasRecordedSteps(turn.state) || error instanceof TransientError || error instanceof PauseError)
    return handlerThrew(turn, error);
  const failure = toFailure(error);
  const { name } = turn.definition;
  const reason = `The run has recorded steps, and the schema that workflow "${name}" has now refuses its input: ${failure.message} Deploy a schema that accepts it and resume(), or cancel().`;
  turn.pauseWithError(reason, failure);
}

function hasRecordedSteps({ ops }: RunState): boolean {
  for (const key of ops.keys()) if (key !== onFailureStep) return true;
  return false;
}
