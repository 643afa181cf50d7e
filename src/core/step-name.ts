/** The names that code gives to its calls, as the log and people see them. */
import type { RunState } from "./state.js";

/** Under which name a workflow's `onFailure` is recorded. */
export const onFailureStep = "on_failure";

/** Whether an operator has accepted the change of code that this call is about, by its key or by its name in the code. */
export function isAccepted({ accepted }: RunState, key: string): boolean {
  if (accepted === null) return false;
  const unnumbered = key.replace(/#\d+$/, "");
  return accepted.has(unnumbered) || accepted.has(unnumbered.slice(unnumbered.lastIndexOf("/") + 1));
}

/**
 * The name under which the log knows what the code calls `name`: an older one if the step was renamed while the run was
 * open. The older name stays for the whole run, so that its idempotency keys, its children and its numbers stay the same.
 */
export function recordedName(state: RunState, aliases: Aliases | null, prefix: string, name: string): string {
  const older = state.renamed?.get(name);
  if (older !== undefined && state.ops.has(prefix + older)) return older;
  return aliases?.[name]?.find((alias) => state.ops.has(prefix + alias)) ?? name;
}

/** For each name in the code, the names that it had before. */
export type Aliases = Readonly<Record<string, readonly string[]>>;
