/**
 * Transactional steps: the user's own writes and the step's record commit together, or neither does.
 *
 * The one exception to "no transaction is open while user code runs". It has a connection of its own, and this run's log
 * to itself for as long as it takes: on SQLite, where only one can write, a commit of the same run that had to come first
 * could not. Other runs go on (on SQLite, once it is over).
 */

import { isTransient, retryUntilReachable } from "../../concurrency/retry-until-reachable.js";
import { FencedError, StoreError } from "../../core/errors/errors.js";
import type { NewEvent } from "../../core/run/event.js";
import { createTransition } from "../../core/run/transition.js";
import type { StepTools } from "../../define/context.js";
import type { CommitResult, StoreTransaction } from "../../store/contract/store.js";
import type { StepTurn } from "../turn/ports.js";
import type { TurnAttempt } from "./turn-attempt.js";

/** True when the step is recorded; false when the turn is over. Throws what the body threw, after a rollback. */
export async function inTransaction(
  turn: StepTurn,
  attempt: TurnAttempt,
  body: (tx: unknown, step: StepTools) => unknown,
  timeoutMs: number | null,
  createEvent: (output: unknown) => NewEvent,
): Promise<boolean> {
  let failure: { readonly error: unknown } | null = null;
  const recorded = await turn.writer.withExclusiveLog(async (after) => {
    const transaction = await turn.host.store.beginTransaction();
    let isRunning = true;
    const trackedBody = async (step: StepTools) => {
      try {
        return await body(transaction.handle, step);
      } finally {
        isRunning = false;
      }
    };
    try {
      const output = await new Promise((resolve, reject) => {
        attempt.run(trackedBody, timeoutMs, resolve, reject);
      });
      const swallowed = turn.flowControl.take(attempt);
      if (swallowed !== null) throw swallowed;
      const event = createEvent(output);
      if (turn.isOver) throw new FencedError(turn.host.committer.fence.workerId, turn.host.committer.fence.epoch);
      const result = await commit(turn, transaction, after, event);
      if (result.kind === "committed")
        return { events: [event], at: result.at, hasMessages: result.ownedWithMessages.length > 0 };
      throw new StoreError(`The transaction of step "${attempt.key}" was refused (${result.kind}).`, {
        transient: true,
      });
    } catch (error) {
      // A body that was given up on still has the handle.
      await rollBack(transaction, isRunning);
      failure = { error };
      return null;
    }
  });
  if (failure !== null && !turn.isOver) throw (failure as { readonly error: unknown }).error;
  return recorded;
}

/** A commit whose answer was lost is looked for in the log: it is there with everything, or not at all. */
async function commit(
  turn: StepTurn,
  transaction: StoreTransaction,
  after: number,
  event: NewEvent,
): Promise<CommitResult> {
  const { committer, store, runtime } = turn.host;
  const transition = createTransition(turn.runId, after, { events: [event] });
  try {
    return await transaction.commit({ fence: committer.fence, transitions: [transition], starts: [] });
  } catch (error) {
    if (!isTransient(error)) throw error;
    const { isAlive } = await retryUntilReachable(runtime, () => store.heartbeat(committer.fence), neverGiveUp);
    const [written] = await retryUntilReachable(runtime, () => store.log(turn.runId, { after, limit: 1 }), neverGiveUp);
    if (!isAlive || written === undefined) throw error;
    return { kind: "committed", at: written.at, notParked: [], ownedWithMessages: [], refused: [] };
  }
}

async function rollBack(transaction: StoreTransaction, discard: boolean): Promise<void> {
  try {
    await transaction.rollback({ discard });
  } catch {
    // The connection is gone, and the transaction with it.
  }
}

/** Whether it was written must be known, however long that takes. */
const neverGiveUp = () => false;
