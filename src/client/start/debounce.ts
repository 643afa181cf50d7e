/** The option `debounce` of a start. */
import { InvalidInputError } from "../../core/errors/errors.js";
import type { DebounceKeep, GatherRule } from "../../core/gathering/run-gathering.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { type Duration, formatDuration, parseDuration } from "../../core/naming/duration.js";
import type { LimitedRun } from "../../define/limit.js";

/** The option `debounce` of `pawl.start`. */
export interface DebounceOptions<Input = any, Keep extends DebounceKeep = "last" | "first"> {
  /**
   * Starts of the workflow with the same key are merged while their run has not begun. The text itself, such as the id of a
   * document, not a path; or a function, with which `startMany` computes the key of each run.
   */
  readonly key: string | number | ((run: LimitedRun<Input>) => string | number);
  /** The run is due when there was no further start for so long. */
  readonly quiet: Duration;
  /** The run is due at the latest so long after its first start, although there are further starts. Default: ten times `quiet`. */
  readonly max?: Duration;
  /**
   * Which input the run gets: that of the last start (`"last"`, the default) or of the first (`"first"`), or a list of the
   * inputs of all (`"all"`), if the workflow takes a list: each start then has one element.
   */
  readonly keep?: Keep;
}

export type AnyDebounce = DebounceOptions<any, DebounceKeep>;

const debounceOptions = new Set(["key", "quiet", "max", "keep"] satisfies (keyof DebounceOptions)[]);
const keeps: readonly unknown[] = ["last", "first", "all"] satisfies DebounceKeep[];
/** A stream of starts without a pause must not keep a run from ever beginning. */
const defaultMaxFactor = 10;

export function checkDebounce(workflow: string, options: AnyDebounce): GatherRule {
  const what = `debounce of start("${workflow}")`;
  if (typeof options !== "object" || options === null)
    throw new InvalidInputError(`The ${what} must be { key, quiet, max, keep }, not ${String(options)}.`);
  checkOptions(`The ${what}`, options, debounceOptions);
  const { quiet, max, keep = "last" } = options;
  const quietMs = parseDuration(quiet, `quiet of the ${what}`);
  const maxMs = max === undefined ? quietMs * defaultMaxFactor : parseDuration(max, `max of the ${what}`);
  if (maxMs < quietMs) {
    throw new InvalidInputError(
      `The max of the ${what} is ${formatDuration(maxMs)}, less than its quiet, ${formatDuration(quietMs)}.`,
    );
  }
  if (!keeps.includes(keep))
    throw new InvalidInputError(`The keep of the ${what} must be "last", "first" or "all", not ${String(keep)}.`);
  return { kind: "debounce", quietMs, maxMs, keep };
}

/**
 * A missing key is refused, because starts that have nothing in common would be merged.
 *
 * @throws what a function throws
 */
export function debounceKeyOf(workflow: string, { key }: AnyDebounce, run: () => LimitedRun): string {
  const value: unknown = typeof key === "function" ? key(run()) : key;
  if ((typeof value === "string" && value !== "") || Number.isFinite(value)) return String(value);
  throw new InvalidInputError(
    `The key of the debounce of start("${workflow}") must be a text that is not empty, or a number, not ${JSON.stringify(value) ?? String(value)}: starts with the same key are merged.`,
  );
}
