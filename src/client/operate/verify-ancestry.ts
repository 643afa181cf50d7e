/** Computes the ancestry hashes of a run again, from its log: an output, an attempt or a link that was changed shows. */
import { ancestryHash } from "../../core/graph/ancestry-hash.js";
import { dagOf, predecessorsInDag } from "../../core/graph/frozen-dag.js";
import type { PredecessorsOf } from "../../core/graph/predecessors.js";
import { undeclaredSignature } from "../../core/graph/signature.js";
import { isCompensation } from "../../core/run/compensation.js";
import type { StoredEvent } from "../../core/run/event.js";
import { evolve } from "../../core/run/fold.js";
import { hasEnded, initialState, type RunState } from "../../core/run/state.js";
import { hasStepOutput, readStepFacts, stepOutputText } from "../../core/run/step-completed.js";
import { scopeSeparator } from "../../core/run/step-key.js";
import type { RunRecord } from "../../store/contract/store.js";
import type { ShapeRegistry } from "./shape-registry.js";

export interface WrongHash {
  readonly node: string;
  /** null: it should have none. */
  readonly expected: string | null;
  readonly actual: string | null;
}

export interface AncestryCheck {
  readonly wrongHashes: readonly WrongHash[];
  /** Hashes that cannot be computed again, because no worker has registered the shape that they were made with. */
  readonly uncheckedHashes: number;
}

const noHashes: AncestryCheck = { wrongHashes: [], uncheckedHashes: 0 };

/** Follows the log as a worker did: what a step came after is known from the graph and from what the run had done by then. */
export function checkAncestry(run: RunRecord, log: readonly StoredEvent[], shapes: ShapeRegistry): AncestryCheck {
  if (!log.some(isHashed)) return noHashes;
  const wrongHashes: WrongHash[] = [];
  let uncheckedHashes = 0;
  const state = initialState();
  const checker = new AncestryChecker(run, state, shapes);
  for (const event of log) {
    const result = isHashed(event) && isFirstEnd(state, event) ? checker.check(event) : null;
    if (result === "unknown") uncheckedHashes += 1;
    else if (result !== null) wrongHashes.push(result);
    evolve(state, event);
  }
  return { wrongHashes, uncheckedHashes };
}

type CompletedStepEvent = StoredEvent & { readonly node: string; readonly data: string };

/** A step that ended its run with `finish()` has no output, and no hash. */
const isHashed = (one: StoredEvent): one is CompletedStepEvent =>
  one.type === "step.completed" &&
  one.node !== null &&
  !one.node.includes(scopeSeparator) &&
  one.data !== null &&
  (hasStepOutput(one.data) || hashOf(one) !== null);

const isFirstEnd = ({ ops, stepStructure }: RunState, { node }: CompletedStepEvent): boolean => {
  const op = ops.get(node);
  return stepStructure !== null && !(op?.kind === "step" && hasEnded(op));
};

class AncestryChecker {
  readonly #run: RunRecord;
  readonly #state: RunState;
  readonly #shapes: ShapeRegistry;
  #dagParents: { readonly imported: RunState["importedDag"]; readonly parentsOf: PredecessorsOf | null } | null = null;

  constructor(run: RunRecord, state: RunState, shapes: ShapeRegistry) {
    this.#run = run;
    this.#state = state;
    this.#shapes = shapes;
  }

  check(one: CompletedStepEvent): WrongHash | "unknown" | null {
    const { byRecordedShape, byOtherShapes } = this.#possibleParents();
    const actual = hashOf(one);
    const expected = byRecordedShape.flatMap((parentsOf) => this.#possibleHashes(parentsOf, one));
    // A hash that is missing is not excused by other code, or by other names, that do not have the step. What a retry has taken
    // over may have been done by any code that the workflow ever had.
    const isRetry = this.#state.callsToRedo !== null && this.#state.stepSignature !== undeclaredSignature;
    const hashesThatMayBeMissing = isRetry
      ? [...byRecordedShape, ...byOtherShapes].flatMap((parentsOf) => this.#possibleHashes(parentsOf, one))
      : expected;
    const isExpected =
      actual === null ? hashesThatMayBeMissing.every((hash) => hash === null) : expected.includes(actual);
    if (isExpected && expected.length > 0) return null;
    if (actual !== null && byOtherShapes.some((parentsOf) => this.#possibleHashes(parentsOf, one).includes(actual)))
      return null;
    if (byRecordedShape.length === 0) return "unknown";
    return { node: one.node, expected: expected[0] ?? null, actual };
  }

  #possibleParents(): {
    readonly byRecordedShape: readonly PredecessorsOf[];
    readonly byOtherShapes: readonly PredecessorsOf[];
  } {
    const { byRecordedShape, byOtherShapes } = this.#shapes.possibleParents(this.#run.workflow, this.#state);
    const dagParents = this.#readDagParents();
    if (dagParents === null && this.#state.stepSignature === undeclaredSignature)
      return { byRecordedShape: [() => null], byOtherShapes: byRecordedShape };
    return dagParents === null
      ? { byRecordedShape, byOtherShapes }
      : { byRecordedShape: [dagParents], byOtherShapes: [...byRecordedShape, ...byOtherShapes] };
  }

  /** Once for each graph that the run had: to read one of 10,000 nodes again for each of them took a minute and a half. */
  #readDagParents(): PredecessorsOf | null {
    const imported = this.#state.importedDag;
    if (this.#dagParents === null || this.#dagParents.imported !== imported) {
      const dag = dagOf(this.#run, this.#state);
      this.#dagParents = { imported, parentsOf: dag === null ? null : predecessorsInDag(dag) };
    }
    return this.#dagParents.parentsOf;
  }

  /** One, unless it was taken over from another run together with what the step had been built upon. */
  #possibleHashes(parentsOf: PredecessorsOf, one: CompletedStepEvent): (string | null)[] {
    const { node, attempt, data } = one;
    // An operator may answer for a step that the code does not have.
    const parents = parentsOf(node) ?? (isByOperator(one) && !isCompensation(node) ? [] : null);
    if (parents === null) return [null];
    const output = stepOutputText(data) ?? "";
    return combinations(parents.map((parent) => this.#possibleParentHashes(parent, isByOperator(one)))).map((hashes) =>
      ancestryHash(node, attempt ?? 1, output, hashes),
    );
  }

  /**
   * @param isOperatorOutput by an operator. The step had begun before the code was changed, and what it comes after by now may have
   *   been completed while the answer was on its way.
   */
  #possibleParentHashes(parent: string, isOperatorOutput: boolean): readonly (string | null)[] {
    const { ops, lineage } = this.#state;
    const op = ops.get(parent);
    const ownHash = op?.kind === "step" ? op.ancestryHash : null;
    if (ownHash !== null) return isOperatorOutput ? [ownHash, null] : [ownHash];
    return [null, ...(lineage?.undoneHashes.get(parent) ?? [])];
  }
}

const hashOf = ({ data }: StoredEvent) => readStepFacts(data).hash ?? null;

const isByOperator = ({ data }: CompletedStepEvent) => readStepFacts(data).by === "operator";

const maxCombinations = 1_000;

/** All ways to take one of each. */
function combinations(lists: readonly (readonly (string | null)[])[]): string[][] {
  let result: string[][] = [[]];
  for (const list of lists) {
    if (result.length * list.length > maxCombinations) return result;
    result = list.flatMap((one) => result.map((before) => (one === null ? before : [...before, one])));
  }
  return result;
}
