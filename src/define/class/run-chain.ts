/** Runs the steps of a chain, from the position in the log to the end. */
import { StepNotDefinedError } from "../../core/errors/errors.js";
import { suggestNames } from "../name-suggestions.js";
import type { DeclaredStep, StepEngine } from "../step-engine.js";

export interface Chain {
  readonly workflow: string;
  readonly steps: readonly DeclaredStep[];
  /** Steps that the class lists as removed. */
  readonly removedSteps: ReadonlySet<string>;
}

export async function runChain(chain: Chain, engine: StepEngine): Promise<void> {
  const first = await findStartIndex(chain, engine);
  for (const step of chain.steps.slice(first)) await engine.execute(step);
}

/**
 * Finds the position by name, not by number, because steps may have been added and moved by a release. The run continues
 * at its open step, or behind the last step that it finished; steps inserted before that position do not run.
 */
async function findStartIndex(chain: Chain, engine: StepEngine): Promise<number> {
  const { recordedSteps, resumeAtStep } = engine;
  const indexOf = (name: string) => chain.steps.findIndex((step) => step.name === name);
  const isRemoved = (name: string) => chain.removedSteps.has(name) || engine.isAccepted(name);
  const current = recordedSteps.findLast((step) => step.phase === "open");
  if (current !== undefined) {
    const place = indexOf(current.name);
    if (place >= 0) return place;
    if (!isRemoved(current.name)) return pauseForMissingStep(chain, engine, current.name);
    await engine.skipRemovedStep(current.name);
  }
  for (const { name, phase } of recordedSteps.filter((step) => step.phase !== "open").reverse()) {
    const place = indexOf(name);
    if (place >= 0) return place + 1;
    // The step may only have been renamed, and then continuing before it would repeat its work.
    if (phase === "completed" && !isRemoved(name)) return pauseForMissingStep(chain, engine, name);
  }
  if (resumeAtStep === null) return 0;
  const place = indexOf(resumeAtStep);
  return place >= 0 ? place : engine.pauseWithError(unknownPositionError(chain, resumeAtStep));
}

function pauseForMissingStep(chain: Chain, engine: StepEngine, step: string): Promise<never> {
  return engine.pauseWithError(new StepNotDefinedError({ workflow: chain.workflow, step }));
}

/** The error for `resumeAt` with a step that does not exist. */
function unknownPositionError({ workflow, steps }: Chain, step: string): StepNotDefinedError {
  const names = steps.map(({ name }) => name);
  const suggestion = suggestNames(step, "steps", names);
  const problem = `Workflow "${workflow}" has no step ${JSON.stringify(step)} for resumeAt(step)${suggestion}`;
  return new StepNotDefinedError({ workflow, step, problem });
}
