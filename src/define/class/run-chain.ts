/** Takes a run along its chain: from where the log says it is, to the end. */
import { StepNotDefinedError } from "../../core/errors/errors.js";
import { knownNames } from "../known-names.js";
import type { DeclaredStep, Stepping } from "../step-engine.js";

export interface Chain {
  readonly workflow: string;
  readonly steps: readonly DeclaredStep[];
  /** Steps that are gone and may be passed over. */
  readonly removed: ReadonlySet<string>;
}

export async function walk(chain: Chain, engine: Stepping): Promise<void> {
  const first = await whereToGoOn(chain, engine);
  for (const step of chain.steps.slice(first)) await engine.execute(step);
}

/**
 * By name, not by number: steps may have been added and moved since. A run goes on at the step it is at, or behind the
 * last one that it finished; what was put in before that lies behind it.
 */
async function whereToGoOn(chain: Chain, engine: Stepping): Promise<number> {
  const { known, position } = engine;
  const placeOf = (name: string) => chain.steps.findIndex((step) => step.name === name);
  const isRemoved = (name: string) => chain.removed.has(name) || engine.isAccepted(name);
  const current = known.findLast((step) => step.phase === "open");
  if (current !== undefined) {
    const place = placeOf(current.name);
    if (place >= 0) return place;
    if (!isRemoved(current.name)) return lost(chain, engine, current.name);
    await engine.passOver(current.name);
  }
  for (const { name, phase } of known.filter((step) => step.phase !== "open").reverse()) {
    const place = placeOf(name);
    if (place >= 0) return place + 1;
    // Perhaps it only has another name now: going on before it would do its work twice.
    if (phase === "completed" && !isRemoved(name)) return lost(chain, engine, name);
  }
  if (position === null) return 0;
  const place = placeOf(position);
  return place >= 0 ? place : engine.pauseWithError(sentAstray(chain, position));
}

function lost(chain: Chain, engine: Stepping, step: string): Promise<never> {
  return engine.pauseWithError(new StepNotDefinedError({ workflow: chain.workflow, step }));
}

/** An operator has sent the run to a step that there is not. */
function sentAstray({ workflow, steps }: Chain, step: string): StepNotDefinedError {
  const names = steps.map(({ name }) => name);
  const known = knownNames(step, "steps", names);
  const problem = `Workflow "${workflow}" has no step ${JSON.stringify(step)} for resumeAt(step)${known}`;
  return new StepNotDefinedError({ workflow, step, problem });
}
