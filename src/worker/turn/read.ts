/** Repeats a read until the database is reachable or the turn is over. */
import { retryUntilReachable } from "../../concurrency/retry-until-reachable.js";
import type { RunPort, WritePort } from "./ports.js";

export function readForTurn<T>(turn: RunPort & WritePort, read: () => Promise<T>): Promise<T> {
  return retryUntilReachable(turn.host.runtime, read, () => turn.isOver);
}
