/** Computes the ancestry hashes of a run again, from its log: an output, an attempt or a link that was changed shows. */
import { ancestryHash } from "../../core/graph/ancestry-hash.js";
import { dagOf, parentsInDag } from "../../core/graph/frozen-dag.js";
import type { ParentsOf } from "../../core/graph/predecessors.js";
import { undeclared } from "../../core/graph/signature.js";
import { isCompensation } from "../../core/run/compensation.js";
import type { StoredEvent } from "../../core/run/event.js";
import { evolve } from "../../core/run/fold.js";
import { hasEnded, initialState, type RunState } from "../../core/run/state.js";
import { hasStepOutput, readStepFacts, stepOutputText } from "../../core/run/step-completed.js";
import { scopeMark } from "../../core/run/step-key.js";
import type { RunRecord } from "../../store/contract/store.js";
import type { Shapes } from "./shapes.js";

export interface WrongHash {
  readonly node: string;
  /** null: it should have none. */
  readonly expected: string | null;
  readonly actual: string | null;
}

export interface Ancestry {
  readonly wrong: readonly WrongHash[];
  /** Hashes that cannot be computed again, because no worker has registered the shape that they were made with. */
  readonly unchecked: number;
}

const nothing: Ancestry = { wrong: [], unchecked: 0 };

/** Follows the log as a worker did: what a step came after is known from the graph and from what the run had done by then. */
export function checkAncestry(run: RunRecord, log: readonly StoredEvent[], shapes: Shapes): Ancestry {
  if (!log.some(isHashed)) return nothing;
  const wrong: WrongHash[] = [];
  let unchecked = 0;
  const state = initialState();
  const graphs = new Graphs(run, state, shapes);
  for (const one of log) {
    const found = isHashed(one) && isFirstEnd(state, one) ? graphs.check(one) : null;
    if (found === "unknown") unchecked += 1;
    else if (found !== null) wrong.push(found);
    evolve(state, one);
  }
  return { wrong, unchecked };
}

type Completed = StoredEvent & { readonly node: string; readonly data: string };

/** A step that ended its run with `finish()` has no output, and no hash. */
const isHashed = (one: StoredEvent): one is Completed =>
  one.type === "step.completed" &&
  one.node !== null &&
  !one.node.includes(scopeMark) &&
  one.data !== null &&
  (hasStepOutput(one.data) || hashOf(one) !== null);

const isFirstEnd = ({ ops, steps }: RunState, { node }: Completed): boolean => {
  const op = ops.get(node);
  return steps !== null && !(op?.kind === "step" && hasEnded(op));
};

class Graphs {
  readonly #run: RunRecord;
  readonly #state: RunState;
  readonly #shapes: Shapes;
  #frozen: { readonly imported: RunState["dag"]; readonly parentsOf: ParentsOf | null } | null = null;

  constructor(run: RunRecord, state: RunState, shapes: Shapes) {
    this.#run = run;
    this.#state = state;
    this.#shapes = shapes;
  }

  check(one: Completed): WrongHash | "unknown" | null {
    const { inForce, others } = this.#possible();
    const actual = hashOf(one);
    const expected = inForce.flatMap((parentsOf) => this.#hashesBy(parentsOf, one));
    // A hash that is missing is not excused by other code, or by other names, that do not have the step. What a retry has taken
    // over may have been done by any code that the workflow ever had.
    const isRetry = this.#state.redo !== null && this.#state.shape !== undeclared;
    const mayLack = isRetry ? [...inForce, ...others].flatMap((parentsOf) => this.#hashesBy(parentsOf, one)) : expected;
    const isExpected = actual === null ? mayLack.every((hash) => hash === null) : expected.includes(actual);
    if (isExpected && expected.length > 0) return null;
    if (actual !== null && others.some((parentsOf) => this.#hashesBy(parentsOf, one).includes(actual))) return null;
    if (inForce.length === 0) return "unknown";
    return { node: one.node, expected: expected[0] ?? null, actual };
  }

  #possible(): { readonly inForce: readonly ParentsOf[]; readonly others: readonly ParentsOf[] } {
    const { inForce, others } = this.#shapes.possibleParents(this.#run.workflow, this.#state);
    const frozen = this.#parentsInFrozen();
    if (frozen === null && this.#state.shape === undeclared) return { inForce: [() => null], others: inForce };
    return frozen === null ? { inForce, others } : { inForce: [frozen], others: [...inForce, ...others] };
  }

  /** Once for each graph that the run had: to read one of 10,000 nodes again for each of them took a minute and a half. */
  #parentsInFrozen(): ParentsOf | null {
    const imported = this.#state.dag;
    if (this.#frozen === null || this.#frozen.imported !== imported) {
      const dag = dagOf(this.#run, this.#state);
      this.#frozen = { imported, parentsOf: dag === null ? null : parentsInDag(dag) };
    }
    return this.#frozen.parentsOf;
  }

  /** One, unless it was taken over from another run together with what the step had been built upon. */
  #hashesBy(parentsOf: ParentsOf, one: Completed): (string | null)[] {
    const { node, attempt, data } = one;
    // An operator may answer for a step that the code does not have.
    const parents = parentsOf(node) ?? (isByOperator(one) && !isCompensation(node) ? [] : null);
    if (parents === null) return [null];
    const output = stepOutputText(data) ?? "";
    return choices(parents.map((parent) => this.#hashesOf(parent, isByOperator(one)))).map((hashes) =>
      ancestryHash(node, attempt ?? 1, output, hashes),
    );
  }

  /**
   * @param isAnswered by an operator. The step had begun before the code was changed, and what it comes after by now may have
   *   been completed while the answer was on its way.
   */
  #hashesOf(parent: string, isAnswered: boolean): readonly (string | null)[] {
    const { ops, lineage } = this.#state;
    const op = ops.get(parent);
    const own = op?.kind === "step" ? op.hash : null;
    if (own !== null) return isAnswered ? [own, null] : [own];
    return [null, ...(lineage?.hashes.get(parent) ?? [])];
  }
}

const hashOf = ({ data }: StoredEvent) => readStepFacts(data).hash ?? null;

const isByOperator = ({ data }: Completed) => readStepFacts(data).by === "operator";

const mostChoices = 1_000;

/** All ways to take one of each. */
function choices(lists: readonly (readonly (string | null)[])[]): string[][] {
  let found: string[][] = [[]];
  for (const list of lists) {
    if (found.length * list.length > mostChoices) return found;
    found = list.flatMap((one) => found.map((before) => (one === null ? before : [...before, one])));
  }
  return found;
}
