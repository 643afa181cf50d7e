/**
 * Compensates the completed steps of a run, the last completed step first. Each compensation is executed as a step of its
 * own: it is recorded in the log, retried after errors, and resumed after a crash.
 */

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
 * Runs all compensations that have not completed yet. Returns false if the run was paused or the worker lost the run
 * before the last of them completed.
 *
 * @param cause why the run is compensated, for error messages and pause reasons
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
    // A half-compensated run must not fail: it is paused for an operator, and continues compensating when resumed.
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
    limit: null,
  } as const;
  const bodyWithoutOutput = withoutOutput(body);
  return new Step(turn, compensationKeyOf(step), bodyWithoutOutput, { ...settings, declared, react, explain }).call(
    new CallScope(turn),
  );
}

/**
 * Drops the return value of a compensation, which no code can read. If the value were recorded, a compensation such as
 * `() => pool.query(…)`, whose result cannot be serialized, would fail after it took effect.
 */
function withoutOutput(body: Body): Body {
  return async (...args) => {
    await body(...args);
  };
}
