/** Runs the steps of a chain, from the step at which the log says the run continues, to the last step. */
import { StepNotDefinedError } from "../../core/errors/errors.js";
import { suggestNames } from "../name-suggestions.js";
import type { DeclaredStep, StepEngine } from "../step-engine.js";

export interface Chain {
  readonly workflow: string;
  readonly steps: readonly DeclaredStep[];
  /** The names of steps that the class lists in `removedSteps`. */
  readonly removedSteps: ReadonlySet<string>;
}

export async function runChain(chain: Chain, engine: StepEngine): Promise<void> {
  const first = await findStartIndex(chain, engine);
  for (const step of chain.steps.slice(first)) await engine.execute(step);
}

/**
 * Finds the step at which the run continues: its open step, or the step after the last step that it finished. It compares
 * names, not indexes, because a release may have added and moved steps. Steps inserted before that position do not run.
 */
async function findStartIndex(chain: Chain, engine: StepEngine): Promise<number> {
  const { recordedSteps, resumeAtStep } = engine;
  const indexOf = (name: string) => chain.steps.findIndex((step) => step.name === name);
  const isRemoved = (name: string) => chain.removedSteps.has(name) || engine.isAccepted(name);
  const openStep = recordedSteps.findLast((step) => step.phase === "open");
  if (openStep !== undefined) {
    const place = indexOf(openStep.name);
    if (place >= 0) return place;
    if (!isRemoved(openStep.name)) return pauseForMissingStep(chain, engine, openStep.name);
    await engine.skipRemovedStep(openStep.name);
  }
  for (const { name, phase } of recordedSteps.filter((step) => step.phase !== "open").reverse()) {
    const place = indexOf(name);
    if (place >= 0) return place + 1;
    // The step may have been renamed, and continuing with an earlier step would then repeat its work under the new name.
    if (phase === "completed" && !isRemoved(name)) return pauseForMissingStep(chain, engine, name);
  }
  if (resumeAtStep === null) return 0;
  const place = indexOf(resumeAtStep);
  return place >= 0 ? place : engine.pauseWithError(unknownPositionError(chain, resumeAtStep));
}

function pauseForMissingStep(chain: Chain, engine: StepEngine, step: string): Promise<never> {
  return engine.pauseWithError(new StepNotDefinedError({ workflow: chain.workflow, step }));
}

/** Makes the error for `resumeAt(step)` with a step that the class does not have. */
function unknownPositionError({ workflow, steps }: Chain, step: string): StepNotDefinedError {
  const names = steps.map(({ name }) => name);
  const suggestion = suggestNames(step, "steps", names);
  const problem = `Workflow "${workflow}" has no step ${JSON.stringify(step)} for resumeAt(step)${suggestion}`;
  return new StepNotDefinedError({ workflow, step, problem });
}
