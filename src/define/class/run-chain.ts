/** Takes a run along its chain: from where the log says it is, to the end. */
import { StepNotDefinedError } from "../../core/errors/errors.js";
import { suggestNames } from "../name-suggestions.js";
import type { DeclaredStep, StepEngine } from "../step-engine.js";

export interface Chain {
  readonly workflow: string;
  readonly steps: readonly DeclaredStep[];
  /** Steps that are gone and may be passed over. */
  readonly removedSteps: ReadonlySet<string>;
}

export async function runChain(chain: Chain, engine: StepEngine): Promise<void> {
  const first = await findStartIndex(chain, engine);
  for (const step of chain.steps.slice(first)) await engine.execute(step);
}

/**
 * By name, not by number: steps may have been added and moved since. A run goes on at the step it is at, or behind the
 * last one that it finished; what was put in before that lies behind it.
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
    // Perhaps it only has another name now: going on before it would do its work twice.
    if (phase === "completed" && !isRemoved(name)) return pauseForMissingStep(chain, engine, name);
  }
  if (resumeAtStep === null) return 0;
  const place = indexOf(resumeAtStep);
  return place >= 0 ? place : engine.pauseWithError(unknownPositionError(chain, resumeAtStep));
}

function pauseForMissingStep(chain: Chain, engine: StepEngine, step: string): Promise<never> {
  return engine.pauseWithError(new StepNotDefinedError({ workflow: chain.workflow, step }));
}

/** An operator has sent the run to a step that there is not. */
function unknownPositionError({ workflow, steps }: Chain, step: string): StepNotDefinedError {
  const names = steps.map(({ name }) => name);
  const suggestion = suggestNames(step, "steps", names);
  const problem = `Workflow "${workflow}" has no step ${JSON.stringify(step)} for resumeAt(step)${suggestion}`;
  return new StepNotDefinedError({ workflow, step, problem });
}
