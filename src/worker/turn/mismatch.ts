/** Creates the error for code that does not match the log of its run. It names the differences and the ways to resume. */

import { toFailure } from "../../core/encoding/error-record.js";
import { NonDeterminismError } from "../../core/errors/errors.js";
import type { RunState } from "../../core/run/state.js";
import { withoutCallNumber } from "../../core/run/step-name.js";

export interface Mismatch {
  readonly runId: string;
  /** Calls of the code that the log does not have, in the order in which they were made. */
  readonly gatedKeys: readonly string[];
  /** Calls in the log that the code has not made. */
  readonly leftOver: readonly string[];
  readonly state: RunState;
  /** Whether the left-over keys are declared steps of a class or graph, not calls of a step body or a function. */
  readonly areNodes: boolean;
  /** The error with which the code ended; undefined if it did not throw. */
  readonly thrown?: unknown;
}

const maxListedKeys = 5;

export function createMismatchError({
  runId,
  gatedKeys,
  leftOver,
  state,
  areNodes,
  thrown,
}: Mismatch): NonDeterminismError {
  // Code that waits at a new call has not reached the calls after it, so those may still be in the code.
  const mayReachLater = gatedKeys.length > 0 && !areNodes;
  const notRequestedText = mayReachLater ? "which the code has not asked for yet" : "which the code does not ask for";
  const recordedText = `its log has ${listKeys(leftOver, (key) => describeKind(state, key))}, ${notRequestedText}`;
  const endText = thrown === undefined ? "the code ended" : `the code threw "${toFailure(thrown).message}"`;
  const requestedText =
    gatedKeys.length === 0 ? endText : `the code asks for ${listKeys(gatedKeys)}, which the log does not have`;
  return new NonDeterminismError({
    runId,
    steps: [...leftOver, ...gatedKeys],
    problem: `${recordedText}, and ${requestedText}${mayReachLater && leftOver.length > 1 ? describeUnreached(gatedKeys) : ""}`,
    remedy: describeRemedies(gatedKeys, leftOver, areNodes),
  });
}

function describeUnreached([first]: readonly string[]): string {
  return `; some of the recorded calls may come after ${JSON.stringify(first)} and not have been reached yet`;
}

function describeRemedies(gatedKeys: readonly string[], leftOver: readonly string[], areNodes: boolean): string {
  const [first = "old"] = leftOver;
  const oldName = JSON.stringify(first);
  const remedies = ["deploy code that makes these calls again, and resume()"];
  if (gatedKeys.length > 0) {
    const [newKey] = gatedKeys as [string];
    const newName = JSON.stringify(newKey);
    remedies.push(
      `if ${newName} is ${oldName} under another name, define the workflow with aliases: { ${toPropertyName(newKey)}: [${oldName}] } and resume(), or resume({ renamed: { ${toPropertyName(first)}: ${newName} } })`,
    );
    if (!areNodes)
      remedies.push(
        `if ${newName} was added before steps that the run has recorded, call it with { added: true } and resume(), or resume({ accept: [${newName}] }): then ${newName} is run`,
        "if its name differs on every replay (it is made of a date or a random number), give it a fixed name first: then only renamed helps",
      );
  }
  const names = leftOver.slice(0, maxListedKeys).map((key) => JSON.stringify(withoutCallNumber(key)));
  const removedStepsText = areNodes ? `list it in removedSteps: [${names.join(", ")}] and resume(), or ` : "";
  const willRunText =
    gatedKeys.length === 0 ? "" : `: then ${listKeys(gatedKeys)} ${gatedKeys.length === 1 ? "is" : "are"} run`;
  remedies.push(
    `if ${oldName} was removed on purpose, ${removedStepsText}resume({ accept: [${names.join(", ")}] })${willRunText}`,
  );
  return `Nothing that is new was run. What you can do: ${remedies.join("; ")}.`;
}

function listKeys(keys: readonly string[], describe: (key: string) => string = () => ""): string {
  const listedKeys = keys.slice(0, maxListedKeys).map((key) => `${describe(key)}${JSON.stringify(key)}`);
  const omittedCount = keys.length - listedKeys.length;
  return listedKeys.join(", ") + (omittedCount > 0 ? ` and ${omittedCount} more` : "");
}

const kinds = { step: "step", timer: "sleep", wait: "wait", child: "child", map: "map", branch: "branch" } as const;

function describeKind(state: RunState, key: string): string {
  const kind = state.ops.get(key)?.kind;
  return kind === undefined || kind === "pause" || kind === "patch" ? "" : `the ${kinds[kind]} `;
}

const toPropertyName = (key: string) =>
  /^[A-Za-z_]\w*$/.test(withoutCallNumber(key)) ? withoutCallNumber(key) : JSON.stringify(withoutCallNumber(key));
