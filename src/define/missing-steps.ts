/** Finds recorded steps that the code no longer has, and decides which of them stop a run. */
import type { StepEngine } from "./step-engine.js";

export interface MissingSteps {
  /** A step that started and did not end. Only its code could finish it, so the run has to be paused. */
  readonly openStep: string | null;
  /** Missing steps that could be among `unrecorded` under another name. */
  readonly vanished: readonly string[];
  /** Steps of the code that the log does not have. */
  readonly unrecorded: readonly string[];
  /** Steps that started and were then removed from the code on purpose. */
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

/** Steps outside of an imported graph are skipped, because the operator who imported it left them out. */
export function skipStepsOutsideDag(engine: StepEngine, names: ReadonlySet<string>): MissingSteps {
  const open = engine.recordedSteps.filter(({ name, phase }) => phase === "open" && !names.has(name));
  return { openStep: null, vanished: [], unrecorded: [], skippable: open.map(({ name }) => name) };
}

const isUnrecorded = (engine: StepEngine, name: string) => engine.recordOf(name) === null && !engine.isAccepted(name);
