/**
 * Transactional steps: the user's writes and the event of the step are committed together or not at all.
 *
 * This is the only case in which a transaction is open while user code runs. The transaction has its own connection, and
 * no other event of the run is committed until the step ends: on SQLite, which allows one writer, another commit of the
 * same run would wait for the transaction, which in turn would wait for that commit. Other runs are not affected, except
 * that on SQLite their commits wait for the end of the transaction.
 */

import { isTransient, retryUntilReachable } from "../../concurrency/retry-until-reachable.js";
import { StoreError } from "../../core/errors/errors.js";
import type { NewEvent } from "../../core/run/event.js";
import { createTransition } from "../../core/run/transition.js";
import type { StepTools } from "../../define/context.js";
import type { CommitResult, StoreTransaction } from "../../store/contract/store.js";
import type { StepTurn } from "../turn/ports.js";
import { assertTurnGoesOn } from "./call-body.js";
import type { TurnAttempt } from "./turn-attempt.js";

/** Returns true if the step is recorded and false if the turn is over. If the body throws, rolls back and rethrows. */
export async function inTransaction(
  turn: StepTurn,
  attempt: TurnAttempt,
  body: (tx: unknown, step: StepTools) => unknown,
  timeoutMs: number | null,
  createEvent: (output: unknown) => NewEvent,
): Promise<boolean> {
  let failure: { readonly error: unknown } | null = null;
  const isRecorded = await turn.writer.withExclusiveLog(async (after) => {
    const transaction = await turn.host.store.beginTransaction();
    let isRunning = false;
    const trackedBody = async (step: StepTools) => {
      isRunning = true;
      try {
        return await body(transaction.handle, step);
      } finally {
        isRunning = false;
      }
    };
    try {
      assertTurnGoesOn(turn);
      const output = await new Promise((resolve, reject) => {
        attempt.run(trackedBody, timeoutMs, resolve, reject);
      });
      const swallowedInterrupt = turn.flowControl.take(attempt);
      if (swallowedInterrupt !== null) throw swallowedInterrupt;
      const event = createEvent(output);
      assertTurnGoesOn(turn);
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
  return isRecorded;
}

/**
 * If the connection fails during the commit, the log shows whether the commit succeeded: it contains the event of the
 * step if and only if the user's writes were committed. An earlier commit of this worker that was executed late may have
 * written another event there.
 */
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
    const [writtenEvent] = await retryUntilReachable(
      runtime,
      () => store.log(turn.runId, { after, limit: 1 }),
      neverGiveUp,
    );
    if (!isAlive || writtenEvent === undefined || !isSameEvent(writtenEvent, event)) throw error;
    return { kind: "committed", at: writtenEvent.at, notParked: [], ownedWithMessages: [], refused: [] };
  }
}

const isSameEvent = (written: NewEvent, event: NewEvent): boolean =>
  written.type === event.type && written.node === event.node && written.data === event.data;

async function rollBack(transaction: StoreTransaction, discard: boolean): Promise<void> {
  try {
    await transaction.rollback({ discard });
  } catch {
    // The connection is lost, and the database rolls the transaction back.
  }
}

/** The read is repeated without limit, because the step cannot end until it is known whether the commit succeeded. */
const neverGiveUp = () => false;
