import type { AuditedRun, InboxRow, RunRecord, StoredEvent } from "../../store/contract/store.js";
import type { ShapeRegistry } from "./shape-registry.js";

/** All that is stored of a run, read while it did not move. */
export interface StoredRun {
  readonly row: AuditedRun;
  readonly run: RunRecord;
  /** With its end, if it has one. */
  readonly log: readonly StoredEvent[];
  readonly inbox: readonly InboxRow[];
  /** Of the workers that are marked as live, by id. */
  readonly liveEpochs: ReadonlyMap<string, number>;
  /** What the steps of workflows come after, or came after once. */
  readonly shapes: ShapeRegistry;
}
