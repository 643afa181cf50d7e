/** What the keys of limits are computed from, and the class of a run that waits for nothing but its first slots. */
import { decode } from "../core/encoding/decode.js";
import { type RunGathering, readGathering } from "../core/gathering/run-gathering.js";
import { laneIdOf, type RunClass, runClassOf } from "../core/limits/lane.js";
import type { NewRun } from "../core/run/transition.js";
import type { WorkflowDefinition } from "./definition.js";
import { keyOfRun, type LimitedRun, type LimitKey } from "./limit.js";

/** What the row of a run has, from its creation to its end. */
type RunFacts = Pick<NewRun, "input" | "heroType" | "heroId" | "tags" | "schedule">;

/** The input is decoded once, and only if a key needs it. */
export function limitedRunOf({ input, heroType, heroId, tags, schedule }: RunFacts): () => LimitedRun {
  let facts: LimitedRun | null = null;
  const hero = heroId === null ? null : { type: heroType, id: heroId };
  return () => (facts ??= { input: inputOf(input, readGathering(schedule)), hero, tags });
}

/**
 * The keys of a batch are those of its first start. A debounced run that gets a list has a list before it begins, too, although
 * its row has only the first input until then.
 */
function inputOf(text: string, gathering: RunGathering | null): unknown {
  const input = decode(text);
  if (gathering?.list === undefined) return input;
  if (gathering.gathering === "batch") return gathering.begun ? (input as readonly unknown[])[0] : input;
  return gathering.begun ? input : [input];
}

const maxKnownClasses = 10_000;
/** No id of a lane contains it, and the share, which may, comes last. */
const separator = "\n";

type Limited = Pick<WorkflowDefinition, "limits" | "fairBy">;

/**
 * Whether the class of a new run says all that there is to know: a limit with a policy for full lanes judges runs when they come
 * into the line, and a limit that is held until the end is held by runs that this process knows nothing of.
 */
const hasPlainLimits = ({ limits, fairBy }: Limited): boolean =>
  (limits.length > 0 || fairBy !== null) &&
  limits.every((limit) => limit.onFull === "wait" && limit.while === "executing");

/**
 * Returns a function that computes the class in which a new run waits, so that no worker has to sort it; null if the workflow has
 * no limits, or limits of which a worker has to know more. The function returns null for a run whose keys cannot be
 * computed: the worker tries it again, and warns.
 */
export function newRunClassifier(limited: Limited): ((run: NewRun) => RunClass | null) | null {
  if (!hasPlainLimits(limited)) return null;
  const { limits, fairBy } = limited;
  // Runs of a call often share their keys, and the id of a class is a hash.
  const known = new Map<string, RunClass>();
  return (run) => {
    const facts = limitedRunOf(run);
    const textOf = (key: LimitKey | null) => (key === null ? "" : keyOfRun(key, facts()));
    try {
      const lanes = limits.map(({ name, key }) => laneIdOf(name, textOf(key)));
      const share = textOf(fairBy);
      const text = [...lanes, share].join(separator);
      let runClass = known.get(text);
      if (runClass === undefined) {
        if (known.size >= maxKnownClasses) known.clear();
        runClass = runClassOf(run.workflow, run.version, lanes, share);
        known.set(text, runClass);
      }
      return runClass;
    } catch {
      return null;
    }
  };
}
