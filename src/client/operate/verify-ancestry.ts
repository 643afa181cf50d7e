/** Recomputes the ancestry hashes of a run from its log, which reveals a changed output, attempt or predecessor. */
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
  /** The hash that was recomputed; null if the step should have no hash. */
  readonly expected: string | null;
  readonly actual: string | null;
}

export interface AncestryCheck {
  readonly wrongHashes: readonly WrongHash[];
  /** The number of hashes that cannot be recomputed, because no worker has registered the shape that they were made with. */
  readonly uncheckedHashes: number;
}

const noHashes: AncestryCheck = { wrongHashes: [], uncheckedHashes: 0 };

/** Replays the log event by event, because the predecessors of a step depend on the graph and the state at that time. */
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

/**
 * Whether the event should have an ancestry hash, or has one. A step that ended its run with `finish()` has no output and
 * no hash, and calls inside a step have no hash either.
 */
const isHashed = (event: StoredEvent): event is CompletedStepEvent =>
  event.type === "step.completed" &&
  event.node !== null &&
  !event.node.includes(scopeSeparator) &&
  event.data !== null &&
  (hasStepOutput(event.data) || hashOf(event) !== null);

const isFirstEnd = ({ ops, stepStructure }: RunState, { node }: CompletedStepEvent): boolean => {
  const op = ops.get(node);
  return stepStructure !== null && !(op?.kind === "step" && hasEnded(op));
};

class AncestryChecker {
  readonly #run: RunRecord;
  readonly #state: RunState;
  readonly #shapes: ShapeRegistry;
  #dagParentsCache: { readonly imported: RunState["importedDag"]; readonly parentsOf: PredecessorsOf | null } | null =
    null;

  constructor(run: RunRecord, state: RunState, shapes: ShapeRegistry) {
    this.#run = run;
    this.#state = state;
    this.#shapes = shapes;
  }

  check(event: CompletedStepEvent): WrongHash | "unknown" | null {
    const { byRecordedShape, byOtherShapes } = this.#possibleParents();
    const actualHash = hashOf(event);
    const expectedHashes = byRecordedShape.flatMap((parentsOf) => this.#possibleHashes(parentsOf, event));
    // A missing hash is accepted only if no possible shape has the step. A retry has inherited steps that were executed with
    // any earlier shape of the workflow, so all shapes are possible for a retry.
    const isRetry = this.#state.callsToRedo !== null && this.#state.stepSignature !== undeclaredSignature;
    const hashesThatMayBeMissing = isRetry
      ? [...byRecordedShape, ...byOtherShapes].flatMap((parentsOf) => this.#possibleHashes(parentsOf, event))
      : expectedHashes;
    const isExpected =
      actualHash === null ? hashesThatMayBeMissing.every((hash) => hash === null) : expectedHashes.includes(actualHash);
    if (isExpected && expectedHashes.length > 0) return null;
    if (
      actualHash !== null &&
      byOtherShapes.some((parentsOf) => this.#possibleHashes(parentsOf, event).includes(actualHash))
    )
      return null;
    if (byRecordedShape.length === 0) return "unknown";
    return { node: event.node, expected: expectedHashes[0] ?? null, actual: actualHash };
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

  /** Caches the result until another graph is imported: parsing a graph of 10,000 nodes for each of them took 90 seconds. */
  #readDagParents(): PredecessorsOf | null {
    const imported = this.#state.importedDag;
    if (this.#dagParentsCache === null || this.#dagParentsCache.imported !== imported) {
      const dag = dagOf(this.#run, this.#state);
      this.#dagParentsCache = { imported, parentsOf: dag === null ? null : predecessorsInDag(dag) };
    }
    return this.#dagParentsCache.parentsOf;
  }

  /**
   * Returns the hashes that the step may have: several if an operator gave its output or if it was inherited from another
   * run, otherwise one. A null in the list means that the step should have no hash.
   */
  #possibleHashes(parentsOf: PredecessorsOf, event: CompletedStepEvent): (string | null)[] {
    const { node, attempt, data } = event;
    // An operator may give the output of a step that the code does not have. Such a step has a hash without predecessors.
    const parents = parentsOf(node) ?? (isByOperator(event) && !isCompensation(node) ? [] : null);
    if (parents === null) return [null];
    const output = stepOutputText(data) ?? "";
    const parentHashes = parents.map((parent) => this.#possibleParentHashes(parent, isByOperator(event)));
    return combinations(parentHashes).map((hashes) => ancestryHash(node, attempt ?? 1, output, hashes));
  }

  /**
   * @param isOperatorOutput whether an operator gave the output of the step. If so, the step may have started before the
   *   code changed, and a predecessor may have completed while the command was being sent; the hash then lacks it.
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

/** Beyond this number of combinations, `combinations` ignores the remaining lists, to bound time and memory. */
const maxCombinations = 1_000;

/** Returns all ways to choose one entry of each list. A null stands for "no hash" and is left out of the result. */
function combinations(lists: readonly (readonly (string | null)[])[]): string[][] {
  let result: string[][] = [[]];
  for (const list of lists) {
    if (result.length * list.length > maxCombinations) return result;
    result = list.flatMap((hash) => result.map((before) => (hash === null ? before : [...before, hash])));
  }
  return result;
}
