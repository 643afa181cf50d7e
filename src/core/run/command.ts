/** What a run can be asked, or told: by an operator, another run, a worker. */
import type { Failure } from "../encoding/error-record.js";
import type { FrozenDag } from "../graph/frozen-dag.js";
import type { Range } from "./ranges.js";

export type Command =
  | { readonly type: "signal"; readonly name: string; readonly payload: string; readonly key: string | null }
  | { readonly type: "pause"; readonly reason: string | null }
  /** `output` (encoded) stands in for the result of the step that the run is stuck at. */
  | {
      readonly type: "resume";
      readonly output: string | null;
      /** See `run.resumed`. */
      readonly accept?: readonly string[];
      readonly renamed?: Readonly<Record<string, string>>;
    }
  /** Goes on from this step of the chain. */
  | { readonly type: "resumeAt"; readonly step: string }
  /** Passes over the step that the run is stuck at. */
  | { readonly type: "skip" }
  /** `force`: ends it at once, whatever its code says and without compensation. */
  | { readonly type: "cancel"; readonly reason: string | null; readonly force?: true }
  /** A run that was stored to be started later. */
  | { readonly type: "start" }
  /** Tries a node again that has not completed. `descendants` come after it, however far. */
  | { readonly type: "reattempt"; readonly node: string; readonly descendants: readonly string[] }
  /** From now on the run goes by this graph. */
  | { readonly type: "import"; readonly dag: FrozenDag }
  | {
      readonly type: "child";
      readonly node: string;
      readonly status: "completed" | "failed" | "canceled";
      readonly output: string | null;
      readonly error: Failure | null;
      readonly reason: string | null;
    }
  /** Children of a map have ended: ranges [first, last] of their places in it. */
  | {
      readonly type: "children";
      readonly node: string;
      readonly completed: readonly Range[];
      readonly failed: readonly Range[];
    }
  /** No live worker has this job any more. Whether that holds the run up is for its owner to find out. */
  | { readonly type: "jobGone"; readonly job: string }
  /**
   * The event loop of its worker stood still. `step`: in whose code, "" outside of steps. `by`: the other run whose code it
   * was. Neither: it is not known whose.
   */
  | {
      readonly type: "blocked";
      readonly worker: string;
      readonly session: string;
      readonly step: string | null;
      readonly by: string | null;
    }
  /** Attempts at nodes have ended. */
  | { readonly type: "nodes"; readonly results: readonly NodeResult[] };

export interface NodeResult {
  readonly node: string;
  readonly attempt: number;
  /** Encoded; null when it failed. */
  readonly output: string | null;
  readonly error: Failure | null;
  /** When to try again; null: it has failed for good. */
  readonly retryMs: number | null;
  readonly ms: number;
}

export interface Received {
  readonly command: Command;
  /** When it came: a signal that came before a deadline beats the timeout, one that came later does not. */
  readonly at: number;
  /** Refuse what makes no sense with an InvalidStateError (a client is told), or pass over it (nobody is there to tell). */
  readonly strict: boolean;
  /** Nobody executes the run: a step that has begun is one that rests in the middle. */
  readonly idle?: boolean;
}
