/** Recorded steps that the code of a graph does not have any more: which of them keep a run from going on. */
import type { StepEngine } from "./step-engine.js";

export interface MissingSteps {
  /** One that had begun: only its code could bring it to its end. */
  readonly openStep: string | null;
  /** Those that have completed. If the code has steps that are not recorded, one of them could be the same step, renamed. */
  readonly vanished: readonly string[];
  readonly unrecorded: readonly string[];
  /** Those that had begun, and that are gone on purpose. */
  readonly skippable: readonly string[];
}

/**
 * @param names the steps that the code has
 * @param removed those that the code says it does not have any more
 */
export function findMissingSteps(
  engine: StepEngine,
  names: ReadonlySet<string>,
  removed: ReadonlySet<string>,
): MissingSteps {
  const missing = engine.recordedSteps.filter(({ name, phase }) => phase !== "skipped" && !names.has(name));
  const isExpected = (name: string) => removed.has(name) || engine.isAccepted(name);
  const unexpected = missing.filter(({ name }) => !isExpected(name));
  const unrecorded = unexpected.length === 0 ? [] : [...names].filter((name) => isUnrecorded(engine, name));
  return {
    openStep: unexpected.find(({ phase }) => phase === "open")?.name ?? null,
    vanished: unrecorded.length === 0 ? [] : unexpected.map(({ name }) => name),
    unrecorded,
    skippable: missing.filter(({ name, phase }) => phase === "open" && isExpected(name)).map(({ name }) => name),
  };
}

/** What is not in a graph that was imported is passed over. */
export function skipStepsOutsideDag(engine: StepEngine, names: ReadonlySet<string>): MissingSteps {
  const open = engine.recordedSteps.filter(({ name, phase }) => phase === "open" && !names.has(name));
  return { openStep: null, vanished: [], unrecorded: [], skippable: open.map(({ name }) => name) };
}

const isUnrecorded = (engine: StepEngine, name: string) => engine.recordOf(name) === null && !engine.isAccepted(name);
