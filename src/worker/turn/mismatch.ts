/** What is said about code that does not fit the log of a run: what differs, and every way to go on. */

import { toFailure } from "../../core/encoding/error-record.js";
import { NonDeterminismError } from "../../core/errors/errors.js";
import type { RunState } from "../../core/run/state.js";
import { withoutCallNumber } from "../../core/run/step-name.js";

export interface Mismatch {
  readonly runId: string;
  /** Calls of the code that the log lacks, in the order in which they were made. */
  readonly gatedKeys: readonly string[];
  /** Calls in the log that the code has not made. */
  readonly leftOver: readonly string[];
  readonly state: RunState;
  /** These are steps of a class or graph, and not calls of their bodies or of a function. */
  readonly areNodes: boolean;
  /** What the code threw, if that is how it ended. */
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
  // Code that stands at a new call has not come to what lies behind it: that is no sign that it is gone.
  const isOnTheWay = gatedKeys.length > 0 && !areNodes;
  const missed = isOnTheWay ? "which the code has not asked for so far" : "which the code does not ask for";
  const recorded = `its log has ${list(leftOver, (key) => kindOf(state, key))}, ${missed}`;
  const ended = thrown === undefined ? "the code ended" : `the code threw "${toFailure(thrown).message}"`;
  const askedText = gatedKeys.length === 0 ? ended : `the code asks for ${list(gatedKeys)}, which the log lacks`;
  return new NonDeterminismError({
    runId,
    steps: [...leftOver, ...gatedKeys],
    problem: `${recorded}, and ${askedText}${isOnTheWay && leftOver.length > 1 ? notReached(gatedKeys) : ""}`,
    remedy: remedyOf(gatedKeys, leftOver, areNodes),
  });
}

function notReached([first]: readonly string[]): string {
  return `; some of what is on record may simply come behind ${JSON.stringify(first)}, and not have been reached yet`;
}

function remedyOf(gatedKeys: readonly string[], leftOver: readonly string[], areNodes: boolean): string {
  const [first = "old"] = leftOver;
  const older = JSON.stringify(first);
  const ways = ["deploy code that makes these calls again, and resume()"];
  if (gatedKeys.length > 0) {
    const [newer] = gatedKeys as [string];
    const name = JSON.stringify(newer);
    ways.push(
      `if ${name} is ${older} under another name, define the workflow with aliases: { ${property(newer)}: [${older}] } and resume(), or resume({ renamed: { ${property(first)}: ${name} } })`,
    );
    if (!areNodes)
      ways.push(
        `if ${name} was put in before steps that the run has done, call it with { added: true } and resume(), or resume({ accept: [${name}] }): then ${name} is run`,
        "if its name differs on every replay (it is made of a date or a random number), give it a fixed name first: then only renamed helps",
      );
  }
  const names = leftOver.slice(0, maxListedKeys).map((key) => JSON.stringify(withoutCallNumber(key)));
  const listed = areNodes ? `list it in removedSteps: [${names.join(", ")}] and resume(), or ` : "";
  const isRun = gatedKeys.length === 0 ? "" : `: then ${list(gatedKeys)} ${gatedKeys.length === 1 ? "is" : "are"} run`;
  ways.push(`if ${older} was taken out on purpose, ${listed}resume({ accept: [${names.join(", ")}] })${isRun}`);
  return `Nothing that is new was run. What you can do: ${ways.join("; ")}.`;
}

function list(keys: readonly string[], describe: (key: string) => string = () => ""): string {
  const shown = keys.slice(0, maxListedKeys).map((key) => `${describe(key)}${JSON.stringify(key)}`);
  const more = keys.length - shown.length;
  return shown.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

const kinds = { step: "step", timer: "sleep", wait: "wait", child: "child", map: "map", branch: "branch" } as const;

function kindOf(state: RunState, key: string): string {
  const kind = state.ops.get(key)?.kind;
  return kind === undefined || kind === "pause" || kind === "patch" ? "" : `the ${kinds[kind]} `;
}

const property = (key: string) =>
  /^[A-Za-z_]\w*$/.test(withoutCallNumber(key)) ? withoutCallNumber(key) : JSON.stringify(withoutCallNumber(key));
