/** A step of a function whose workflow has hooks. */

import { bindHooks, type HookContext, runWithHooks, type StepHooks } from "../../define/step-hooks.js";
import { CallScope } from "../replay/call-scope.js";
import type { StepTurn } from "../turn/ports.js";
import type { Body } from "./attempt.js";
import type { TurnAttempt } from "./turn-attempt.js";

/** The body with its hooks around it. Of a transactional step, all of them are called while its transaction is open. */
export function withHooks(
  hooks: StepHooks,
  turn: StepTurn,
  body: Body,
  createContext: (scope: CallScope) => HookContext,
): Body {
  return (...args: unknown[]) => {
    // Behind the transaction of a step that has one.
    const turnAttempt = args.at(-1) as TurnAttempt;
    const { id, key: step, attempt } = turnAttempt;
    const scope = new CallScope(turn, turnAttempt);
    const boundHooks = bindHooks(hooks, createContext(scope));
    const execution = { id, step, attempt };
    const host = { runId: turn.runId, log: turn.log, inFrame: <T>(call: () => T) => turn.callInFrame(step, call) };
    const callBody = () =>
      turn.flowControl.callBody(turnAttempt, () => (body as (...args: unknown[]) => unknown)(...args));
    // They are not called again when the handler is replayed: what they recorded would be missed then.
    return scope.withoutRecords("A hook", async () => {
      await boundHooks.before(execution);
      return runWithHooks(boundHooks, execution, host, callBody);
    });
  };
}
