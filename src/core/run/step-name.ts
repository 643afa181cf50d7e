/** Relates the names of calls in the code to their names in the log. */
import type { RunState } from "./state.js";
import type { Aliases } from "./stored-schema.js";

/** The name of the step under which a workflow's `onFailure` is recorded. */
export const onFailureStep = "on_failure";

/**
 * Whether an operator has accepted that the call was added or removed. The operator may have given its key or only its
 * name.
 */
export function isAccepted({ acceptedNames }: RunState, key: string): boolean {
  if (acceptedNames === null) return false;
  const name = withoutCallNumber(key);
  return acceptedNames.has(name) || acceptedNames.has(name.slice(name.lastIndexOf("/") + 1));
}

/** The name of a call without the number that Pawl appends when a name is used again: "send" for "send#2". */
export const withoutCallNumber = (key: string): string => key.replace(/#\d+$/, "");

/**
 * The name in the log of a step that the code calls `name`. The log has an older name if the step was renamed while the run
 * was open. The run uses the older name until it ends, so that idempotency keys, cursors, children and call numbers stay
 * the same. A retry also uses the older name for the steps that the failed run had not completed.
 */
export function recordedName(state: RunState, aliases: Aliases | null, prefix: string, name: string): string {
  const { ops, callsToRedo } = state;
  const isInLog = (key: string) => ops.has(key) || callsToRedo?.has(key) === true;
  const logName = state.logNameByCodeName?.get(name);
  if (logName !== undefined && isInLog(prefix + logName)) return logName;
  return aliases?.[name]?.find((alias) => isInLog(prefix + alias)) ?? name;
}
