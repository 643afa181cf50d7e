import type { AuditedRun, InboxRow, RunRecord, StoredEvent } from "../../store/contract/store.js";
import type { ShapeRegistry } from "./shape-registry.js";

/** What `verify` compares for one run: its stored data, the live workers and the shapes of workflows. */
export interface StoredRun {
  readonly row: AuditedRun;
  readonly run: RunRecord;
  /** The stored events and, if the run has ended, the terminal event. */
  readonly log: readonly StoredEvent[];
  readonly inbox: readonly InboxRow[];
  /** The epochs of the workers that are marked as live, by id. */
  readonly liveEpochs: ReadonlyMap<string, number>;
  /** Whether a step of the run waits for a slot of a limit or has an offer of one, while no worker executes the run. */
  readonly hasParkedStep: boolean;
  /** The current and former shapes of workflows. */
  readonly shapes: ShapeRegistry;
}
