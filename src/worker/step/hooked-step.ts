/** Calls the hooks of a function-style workflow around the bodies of its steps. */

import { bindHooks, type HookContext, runWithHooks, type StepHooks } from "../../define/step-hooks.js";
import { CallScope } from "../replay/call-scope.js";
import type { StepTurn } from "../turn/ports.js";
import type { Body } from "./attempt.js";
import type { TurnAttempt } from "./turn-attempt.js";

/** Wraps the body in the workflow's hooks. For a transactional step, the hooks run while its transaction is open. */
export function withHooks(
  hooks: StepHooks,
  turn: StepTurn,
  body: Body,
  createContext: (scope: CallScope) => HookContext,
): Body {
  return (...args: unknown[]) => {
    // The attempt is the last argument, because the body of a transactional step receives its transaction first.
    const turnAttempt = args.at(-1) as TurnAttempt;
    const { id, key: step, attempt } = turnAttempt;
    const scope = new CallScope(turn, turnAttempt);
    const boundHooks = bindHooks(hooks, createContext(scope));
    const execution = { id, step, attempt };
    const host = { runId: turn.runId, log: turn.log, inFrame: <T>(call: () => T) => turn.callInFrame(step, call) };
    const callBody = () =>
      turn.flowControl.callBody(turnAttempt, () => (body as (...args: unknown[]) => unknown)(...args));
    // Hooks must not make durable calls: a replay does not call hooks again, so it would report those calls as missing.
    return scope.withoutRecords("A hook", async () => {
      await boundHooks.before(execution);
      return runWithHooks(boundHooks, execution, host, callBody);
    });
  };
}
