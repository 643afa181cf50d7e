/**
 * Validates the input of a run. The schema is applied once, before any code runs, and the log records the result if the
 * schema transformed the input. So a default made from the clock or a random number is the same on every replay, and a
 * deployed schema change does not affect runs whose input was already validated.
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

/** Calls the code with its input. If the input cannot be read or the schema rejects it, the code is not called. */
export function callWithInput(turn: WholeTurn, callCode: (input: unknown) => void): void {
  let inputOfStart: unknown;
  try {
    inputOfStart = readInputOfStart(turn);
  } catch (error) {
    return turn.pauseWithError("The input of the run cannot be read.", toFailure(error));
  }
  const { inputSchema } = turn.definition;
  if (inputSchema === null || turn.state.checkedInput !== null) return callCode(inputOfStart);
  turn.attempts
    .preventParkingDuring(() => validateInput(turn, inputSchema, inputOfStart))
    .then(
      (input) => pauseRunOnError(turn, () => (turn.isOver ? undefined : callCode(input))),
      (error) => pauseRunOnError(turn, () => onInputRefused(turn, inputOfStart, error)),
    );
}

/** Returns the input as the schema transformed it, or else as it was passed to `start`. */
export function readInputOfStart({ state, storedInput }: WholeTurn): unknown {
  return state.checkedInput?.isTransformed === true ? state.checkedInput.value : storedInput.value;
}

async function validateInput(turn: WholeTurn, schema: StandardSchemaV1, inputOfStart: unknown): Promise<unknown> {
  const label = `input of workflow "${turn.definition.name}"`;
  const isBatch = turn.definition.batch !== null;
  const validated = isBatch
    ? await Promise.all((inputOfStart as readonly unknown[]).map((input) => validate(schema, input, label)))
    : await validate(schema, inputOfStart, label);
  const text = encodeInput(validated, label, isBatch);
  if (text === turn.run.input) {
    recordValidation(turn, {});
    return inputOfStart;
  }
  recordValidation(turn, { input: text });
  // The transformed input is committed before code sees it. Otherwise a step could be repeated with another input after a
  // crash.
  await turn.submit([]);
  return decode(text);
}

function encodeInput(value: unknown, label: string, isBatch: boolean): string {
  try {
    const limit = isBatch ? { limitBytes: Number.POSITIVE_INFINITY } : {};
    return encode(value, { label: `the validated ${label}`, ...limit });
  } catch (error) {
    throw new InvalidInputError(`The ${label} cannot be recorded: ${toFailure(error).message}`, { cause: error });
  }
}

/** The validation is added to the pending start event, or recorded by itself if the start is already in the log. */
function recordValidation(turn: WholeTurn, transformed: { readonly input?: string }): void {
  const { events } = turn.pendingWrites;
  const index = events.findIndex(({ type }) => type === "run.started");
  const startedEvent = events[index];
  if (startedEvent === undefined) events.push(newEvent("input.checked", {}, {}, transformed));
  else
    events[index] = newEvent("run.started", {}, { ...dataOf(startedEvent, "run.started"), checked: true }, transformed);
}

/**
 * A run without recorded steps fails. Other runs are paused, because a deployed schema must not make them fail and
 * compensate.
 */
function onInputRefused(turn: WholeTurn, inputOfStart: unknown, error: unknown): Promise<void> | void {
  turn.handler.input = inputOfStart;
  turn.results.startDelivery();
  if (!hasRecordedSteps(turn.state) || error instanceof TransientError || error instanceof PauseError)
    return handlerThrew(turn, error);
  const failure = toFailure(error);
  const { name } = turn.definition;
  const reason = `The run has recorded steps, but the current schema of workflow "${name}" rejects its input: ${failure.message} Deploy a schema that accepts it and resume(), or cancel().`;
  turn.pauseWithError(reason, failure);
}

function hasRecordedSteps({ ops }: RunState): boolean {
  for (const key of ops.keys()) if (key !== onFailureStep) return true;
  return false;
}
