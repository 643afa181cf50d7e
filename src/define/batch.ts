/** The option `batch` of a workflow: its runs get several starts at once. */

import { InvalidInputError } from "../core/errors/errors.js";
import type { GatherRule } from "../core/gathering/run-gathering.js";
import { checkOptions } from "../core/naming/check-options.js";
import { type Duration, parseDuration } from "../core/naming/duration.js";
import { checkKey, type LimitKey } from "./limit.js";

/** The option `batch` of a workflow. */
export interface BatchOptions<Input = any> {
  /**
   * Starts with the same key share a batch: a path such as `"input.user"`, or a function, which only processes with the code
   * can compute. Default: all starts share batches.
   */
  readonly key?: LimitKey<Input>;
  /** How many starts a batch has at most, 1 to 10,000. A full batch is due at once. */
  readonly size: number;
  /** How long after its first start a batch begins at the latest, if a worker is free. */
  readonly within: Duration;
}

/** What one start gives or gets, of the list that the code of the workflow has. */
export type ElementOf<List> = [List] extends [readonly (infer Element)[]] ? Element : List;

/** How the starts of a workflow are gathered. */
export interface BatchSettings {
  /** The key; null: all starts share batches. */
  readonly key: LimitKey | null;
  /** How many starts a batch has at most. */
  readonly size: number;
  /** How long after its first start a batch begins, in milliseconds. */
  readonly withinMs: number;
}

const maxBatchSize = 10_000;
const batchOptions = new Set(["key", "size", "within"] satisfies (keyof BatchOptions)[]);

/** @param owner the workflow, for messages: `workflow "mail"` */
export function checkBatch(owner: string, options: BatchOptions | undefined): BatchSettings | null {
  if (options === undefined) return null;
  if (typeof options !== "object" || options === null)
    throw new InvalidInputError(`The batch of ${owner} must be { key, size, within }, not ${String(options)}.`);
  checkOptions(`The batch of ${owner}`, options, batchOptions);
  const { key, size, within } = options;
  if (!Number.isSafeInteger(size) || size < 1 || size > maxBatchSize) {
    throw new InvalidInputError(
      `The size of the batch of ${owner} must be a whole number from 1 to 10,000, not ${String(size)}.`,
    );
  }
  return Object.freeze({
    key: key === undefined ? null : checkKey(`The key of the batch of ${owner}`, key),
    size,
    withinMs: parseDuration(within, `within of the batch of ${owner}`),
  });
}

export const batchRuleOf = ({ size, withinMs }: BatchSettings): GatherRule => ({ kind: "batch", size, withinMs });
