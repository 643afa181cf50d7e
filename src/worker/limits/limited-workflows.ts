/** The workflows of a worker that have limits, and the classes of their runs. */
import { InvalidInputError } from "../../core/errors/errors.js";
import { laneIdOf, runClassOf } from "../../core/limits/lane.js";
import type { Logger } from "../../define/context.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import { keyOfRun, type LimitDefinition, type LimitedRun, type LimitKey } from "../../define/limit.js";
import { limitedRunOf } from "../../define/limited-run.js";
import type { LimitSettings, SortedTask } from "../../store/contract/limits.js";
import type { RunRecord } from "../../store/contract/store.js";

export const hasLimits = ({ limits, fairBy }: WorkflowDefinition): boolean => limits.length > 0 || fairBy !== null;

/** What the store has to know of the limits. Throws if two different limits have the same name. */
export function limitSettingsOf(definitions: readonly WorkflowDefinition[]): readonly LimitSettings[] {
  const byName = new Map<string, LimitDefinition>();
  for (const limit of definitions.flatMap(({ limits }) => limits)) {
    const other = byName.get(limit.name);
    if (other !== undefined && other !== limit)
      throw new InvalidInputError(`Two different limits are called "${limit.name}"; give one of them another name.`);
    byName.set(limit.name, limit);
  }
  return [...byName.values()].map(settingsOf);
}

export const settingsOf = (limit: LimitDefinition): LimitSettings => ({
  name: limit.name,
  concurrency: limit.concurrency,
  rate: limit.rate,
  isHeldOpen: limit.while === "open",
  ...(limit.onFull === "wait" ? {} : { whenFull: { onFull: limit.onFull, backlog: limit.backlog ?? 0 } }),
});

/** Whether runs of the workflow hold a slot until they end. */
export const hasOpenLimits = ({ limits }: WorkflowDefinition): boolean =>
  limits.some((limit) => limit.while === "open");

interface DueRun {
  /** The route of its task. */
  readonly route: string;
  readonly run: RunRecord;
  /** The lanes in which it holds a slot already. */
  readonly held: readonly string[];
}

/**
 * Computes the class of a run, and in which lanes it is judged whether there is room. A key that cannot be computed is the empty key: the run then shares its slots with other such
 * runs, and the limit holds.
 */
export function classOfRun(
  definition: WorkflowDefinition,
  { route, run, held }: DueRun,
  log: Logger,
): Pick<SortedTask, "runClass" | "guardedLanes"> {
  const facts = limitedRunOf(run);
  const textOf = (key: LimitKey | null, what: string) => keyOf(key, what, run, log, facts);
  const guarded: string[] = [];
  const lanes = definition.limits.map(({ name, key, onFull }) => {
    const lane = laneIdOf(name, textOf(key, `The key of limit "${name}"`));
    if (onFull !== "wait" && !held.includes(lane)) guarded.push(lane);
    return lane;
  });
  const needed = lanes.filter((lane) => !held.includes(lane));
  const runClass = runClassOf(route, run.version, needed, textOf(definition.fairBy, "fairBy"));
  return guarded.length === 0 ? { runClass } : { runClass, guardedLanes: guarded };
}

/**
 * A key that cannot be computed is the empty key.
 *
 * @param what for the message: `The key of limit "per_tenant"`
 */
export function keyOf(
  key: LimitKey | null,
  what: string,
  run: RunRecord,
  log: Logger,
  facts: () => LimitedRun = limitedRunOf(run),
): string {
  try {
    return key === null ? "" : keyOfRun(key, facts());
  } catch (error) {
    log.warn(
      `${what} cannot be computed for run ${run.id} of workflow "${run.workflow}"; it gets the empty key.`,
      error,
    );
    return "";
  }
}
