/** Reads for a turn: until the database answers, or the run is not this worker's any more. */
import { retryUntilReachable } from "../../concurrency/retry-until-reachable.js";
import type { RunPort, WritePort } from "./ports.js";

export function readForTurn<T>(turn: RunPort & WritePort, read: () => Promise<T>): Promise<T> {
  return retryUntilReachable(turn.host.runtime, read, () => turn.isOver);
}
