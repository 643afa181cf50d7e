/** Finds recorded steps that the code no longer has, and decides which of them stop a run. */
import type { StepEngine } from "./step-engine.js";

export interface MissingSteps {
  /** A missing step that started and did not end; null if none did. Only its code could finish it, so the run is paused. */
  readonly openStep: string | null;
  /** Missing steps that may have been renamed: each could be one of the steps in `unrecorded`. */
  readonly vanished: readonly string[];
  /** Steps of the code of which the log has no event. */
  readonly unrecorded: readonly string[];
  /** Missing steps that started, did not end and were removed from the code on purpose. The run skips them. */
  readonly skippable: readonly string[];
}

/**
 * @param names the steps in the code
 * @param removed the steps that the definition lists as removed on purpose
 */
export function findMissingSteps(
  engine: StepEngine,
  names: ReadonlySet<string>,
  removed: ReadonlySet<string>,
): MissingSteps {
  const missingSteps = engine.recordedSteps.filter(({ name, phase }) => phase !== "skipped" && !names.has(name));
  const isExpected = (name: string) => removed.has(name) || engine.isAccepted(name);
  const unexpectedSteps = missingSteps.filter(({ name }) => !isExpected(name));
  const unrecorded = unexpectedSteps.length === 0 ? [] : [...names].filter((name) => isUnrecorded(engine, name));
  return {
    openStep: unexpectedSteps.find(({ phase }) => phase === "open")?.name ?? null,
    vanished: unrecorded.length === 0 ? [] : unexpectedSteps.map(({ name }) => name),
    unrecorded,
    skippable: missingSteps.filter(({ name, phase }) => phase === "open" && isExpected(name)).map(({ name }) => name),
  };
}

/** Returns the open steps that an imported graph lacks as skippable, because the operator left them out of the graph. */
export function skipStepsOutsideDag(engine: StepEngine, names: ReadonlySet<string>): MissingSteps {
  const openSteps = engine.recordedSteps.filter(({ name, phase }) => phase === "open" && !names.has(name));
  return { openStep: null, vanished: [], unrecorded: [], skippable: openSteps.map(({ name }) => name) };
}

const isUnrecorded = (engine: StepEngine, name: string) => engine.recordOf(name) === null && !engine.isAccepted(name);
