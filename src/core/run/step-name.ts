/** The names that code gives to its calls, as the log and people see them. */
import type { RunState } from "./state.js";
import type { Aliases } from "./stored-schema.js";

/** Under which name a workflow's `onFailure` is recorded. */
export const onFailureStep = "on_failure";

/** Whether an operator has accepted the change of code that this call is about, by its key or by its name in the code. */
export function isAccepted({ accepted }: RunState, key: string): boolean {
  if (accepted === null) return false;
  const name = unnumbered(key);
  return accepted.has(name) || accepted.has(name.slice(name.lastIndexOf("/") + 1));
}

/** The name of a call without the number that it got because the name was used before. */
export const unnumbered = (key: string): string => key.replace(/#\d+$/, "");

/**
 * The name under which the log knows what the code calls `name`: an older one if the step was renamed while the run was
 * open. The older name stays for the whole run, so that its idempotency keys, its cursor, its children and its numbers stay
 * the same. That holds for a retry, too, which does again under the older name what the failed run had not completed.
 */
export function recordedName(state: RunState, aliases: Aliases | null, prefix: string, name: string): string {
  const { ops, redo } = state;
  const isKnown = (key: string) => ops.has(key) || redo?.has(key) === true;
  const older = state.renamed?.get(name);
  if (older !== undefined && isKnown(prefix + older)) return older;
  return aliases?.[name]?.find((alias) => isKnown(prefix + alias)) ?? name;
}
