/** Undoes what a run has done, in reverse order of completion. Each undoing is a step: recorded, retried, resumed. */

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

/** False when it could not be done yet: the run is held, or not ours any more. `cause` is why there is something to undo. */
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
    `Step "${step}" has to be undone (${cause.replace(/[.]$/, "")}), but the code does not say how any more. Nothing that is new was run. What you can do: ` +
    "deploy code that has the step with its compensate again, and resume(); " +
    `if the step has another name now, define the workflow with aliases: { newName: [${name}] } and resume(), or resume({ renamed: { ${name}: "newName" } }); ` +
    "if nothing is to be undone, end the run with cancel(reason, { force: true }).";
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
    // Half undone is for a person to look at: the run waits, and goes on undoing when it is resumed.
    return reaction.kind === "fail" ? { kind: "pause" } : reaction;
  };
  const explain = (error: unknown) =>
    `Step "${step}" could not be undone: ${toFailure(error).message} It has to be, because ${cause}`;
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

/** No code can read what an undoing returned. To record it would stop the undoing of `() => pool.query(…)` after its effect. */
function withoutOutput(body: Body): Body {
  return async (...args) => {
    await body(...args);
  };
}
