/** The names that code gives to its calls, as the log and people see them. */
import type { RunState } from "./state.js";
import type { Aliases } from "./stored-schema.js";

/** Under which name a workflow's `onFailure` is recorded. */
export const onFailureStep = "on_failure";

/** Whether an operator has accepted the change of code that this call is about, by its key or by its name in the code. */
export function isAccepted({ acceptedNames }: RunState, key: string): boolean {
  if (acceptedNames === null) return false;
  const name = withoutCallNumber(key);
  return acceptedNames.has(name) || acceptedNames.has(name.slice(name.lastIndexOf("/") + 1));
}

/** The name of a call without the number that it got because the name was used before. */
export const withoutCallNumber = (key: string): string => key.replace(/#\d+$/, "");

/**
 * The name under which the log knows what the code calls `name`: an older one if the step was renamed while the run was
 * open. The older name stays for the whole run, so that its idempotency keys, its cursor, its children and its numbers stay
 * the same. That holds for a retry, too, which does again under the older name what the failed run had not completed.
 */
export function recordedName(state: RunState, aliases: Aliases | null, prefix: string, name: string): string {
  const { ops, callsToRedo } = state;
  const isInLog = (key: string) => ops.has(key) || callsToRedo?.has(key) === true;
  const logName = state.logNameByCodeName?.get(name);
  if (logName !== undefined && isInLog(prefix + logName)) return logName;
  return aliases?.[name]?.find((alias) => isInLog(prefix + alias)) ?? name;
}
