/**
 * Transactional steps: the user's writes and the event of the step commit together, or neither does.
 *
 * This is the only case in which a transaction is open while user code runs. The transaction has its own connection, and the
 * step has exclusive use of the run's log until it ends: on SQLite, which allows one writer, another commit of the same run
 * would wait for the transaction, which in turn would wait for that commit. Other runs continue (on SQLite, afterwards).
 */

import { isTransient, retryUntilReachable } from "../../concurrency/retry-until-reachable.js";
import { FencedError, StoreError } from "../../core/errors/errors.js";
import type { NewEvent } from "../../core/run/event.js";
import { createTransition } from "../../core/run/transition.js";
import type { StepTools } from "../../define/context.js";
import type { CommitResult, StoreTransaction } from "../../store/contract/store.js";
import type { StepTurn } from "../turn/ports.js";
import type { TurnAttempt } from "./turn-attempt.js";

/** Returns true if the step is recorded and false if the turn is over. Throws what the body threw, after a rollback. */
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
      // A body that exceeded its time limit may still use the handle, so its connection must be discarded.
      await rollBack(transaction, isRunning);
      failure = { error };
      return null;
    }
  });
  if (failure !== null && !turn.isOver) throw (failure as { readonly error: unknown }).error;
  return recorded;
}

/** If the answer to the commit is lost, the log tells whether it succeeded: the event is there with all writes, or not at all. */
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
    // The connection is lost, and the database rolls the transaction back.
  }
}

/** The step cannot proceed until it is known whether the commit succeeded, however long that takes. */
const neverGiveUp = () => false;
