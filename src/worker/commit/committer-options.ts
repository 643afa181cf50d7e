/** What a group committer gets from its session. */
import type { Runtime } from "../../runtime/runtime.js";
import type { Fence, Store } from "../../store/contract/store.js";
import type { SlotKeeper } from "../limits/slot-keeper.js";

export interface GroupCommitterOptions {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly fence: Fence;
  /** Called once, when the store reports that the fence is no longer valid. */
  readonly onFenced: () => void;
  /** Called before an operation that failed with a transient error is retried. */
  readonly onTransientError: (operation: string, error: unknown) => void;
  /** Called after the receipts of a commit that has failed and is in the log: which runs the worker still owns is unknown. */
  readonly onUncertain: () => void;
  /** Called when the connection failed during the park of a run without events, which the server may still execute. */
  readonly onUncertainPark: (runId: string) => void;
  /** After this time a server has executed or dropped the commits of a lost connection. */
  readonly lateCallMs: number;
  /** The slots of limits that runs of this worker hold; null if no workflow of the worker has limits. */
  readonly slots: SlotKeeper | null;
}
