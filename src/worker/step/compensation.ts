/** Compensates the completed steps of a run, the last one first. Each compensation is a step: recorded, retried, resumed. */

import { toFailure } from "../../core/encoding/error-record.js";
import { StepNotDefinedError } from "../../core/errors/errors.js";
import { compensationKeyOf, openCompensations } from "../../core/run/compensation.js";
import type { StepOp } from "../../core/run/state.js";
import { withoutCallNumber } from "../../core/run/step-name.js";
import { reactByRetryPolicy } from "../../define/retry-reaction.js";
import type { Reaction } from "../../define/step-engine.js";
import { CallScope } from "../replay/call-scope.js";
import type { StepTurn } from "../turn/ports.js";
import type { Body, Compensator } from "./attempt.js";
import { historyOf, Step } from "./step.js";

/**
 * Runs all open compensations. Returns false if some are left, because the run was paused or this worker no longer owns it.
 *
 * @param cause why the run is compensated, for the messages
 */
export async function compensate(turn: StepTurn, cause: string): Promise<boolean> {
  for (const step of openCompensations(turn.state)) {
    const compensator = turn.compensators?.get(step);
    if (compensator === undefined) {
      const error = createMissingCompensationError(turn.definition.name, step, cause);
      turn.pauseWithError(error.message, toFailure(error));
      return false;
    }
    await runCompensation(turn, step, compensator, cause);
    if (turn.isOver) return false;
  }
  return true;
}

function createMissingCompensationError(workflow: string, step: string, cause: string): StepNotDefinedError {
  const name = JSON.stringify(withoutCallNumber(step));
  const problem =
    `Step "${step}" must be compensated (${cause.replace(/[.]$/, "")}), but the code no longer defines a compensate function for it. Nothing new was run. What you can do: ` +
    "deploy code that has the step with its compensate function, and resume(); " +
    `if the step was renamed, define the workflow with aliases: { newName: [${name}] } and resume(), or resume({ renamed: { ${name}: "newName" } }); ` +
    "to end the run without compensation, call cancel(reason, { force: true }).";
  return new StepNotDefinedError({ workflow, step, problem });
}

function runCompensation(
  turn: StepTurn,
  step: string,
  { body, retry, declared }: Compensator,
  cause: string,
): Promise<unknown> {
  const react = (error: unknown, op: StepOp | undefined): Reaction => {
    const reaction = reactByRetryPolicy(retry, error, historyOf(op), turn.host.runtime.random());
    // An operator has to look at a half-compensated run: it is paused, and continues compensating when it is resumed.
    return reaction.kind === "fail" ? { kind: "pause" } : reaction;
  };
  const explain = (error: unknown) =>
    `Step "${step}" could not be compensated: ${toFailure(error).message} It must be, because ${cause}`;
  const settings = {
    timeoutMs: null,
    onCrash: "rerun",
    input: undefined,
    kind: "plain",
    waitMs: 0,
    job: false,
    undoable: false,
    semaphore: null,
  } as const;
  const bodyWithoutOutput = withoutOutput(body);
  return new Step(turn, compensationKeyOf(step), bodyWithoutOutput, { ...settings, declared, react, explain }).call(
    new CallScope(turn),
  );
}

/**
 * Drops the return value of a compensation, which no code can read. Recording it would fail for `() => pool.query(…)`, whose
 * result cannot be serialized, after the compensation took effect.
 */
function withoutOutput(body: Body): Body {
  return async (...args) => {
    await body(...args);
  };
}
