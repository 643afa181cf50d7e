/** Cancels runs that have not begun by their start deadlines. Workers call it when the earliest deadline has come. */
import { InvalidStateError, RunNotFoundError } from "../../core/errors/errors.js";
import type { StartDeadline, Store } from "../../store/contract/store.js";
import type { RunCommands } from "../command/run-commands.js";

/** How many runs are canceled at the same time. */
const runsPerPage = 50;

export class OverdueStarts {
  readonly #store: Store;
  readonly #commands: Pick<RunCommands, "send">;

  constructor(store: Store, commands: Pick<RunCommands, "send">) {
    this.#store = store;
    this.#commands = commands;
  }

  /**
   * Cancels the runs whose deadline has come and whose code was never executed, and removes the deadlines that have come.
   * Returns how long until the next deadline; null if there is none.
   */
  async cancelDue(): Promise<number | null> {
    const { startDeadlines } = this.#store.maintenance;
    for (;;) {
      const earliest = await startDeadlines.earliest(runsPerPage);
      if (earliest === null) return null;
      const { now, deadlines } = earliest;
      const due = deadlines.filter(({ at }) => at <= now);
      // The row is removed last, so that a worker that dies before that leaves it to another worker.
      const outcomes = await Promise.allSettled(due.map((deadline) => this.#cancel(deadline)));
      const done = due.filter((_, index) => outcomes[index]?.status === "fulfilled");
      if (done.length > 0) await startDeadlines.remove(done);
      // A run that cannot be canceled must not keep the others in the table, or the next look would find the same page again.
      const failure = outcomes.find((outcome) => outcome.status === "rejected");
      if (failure !== undefined) throw failure.reason;
      const next = deadlines[due.length];
      if (next !== undefined) return next.at - now;
      if (deadlines.length < runsPerPage) return null;
    }
  }

  /** When the earliest deadline comes, by the clock of the store; null: there is none. */
  async nextAt(): Promise<number | null> {
    return (await this.#store.maintenance.startDeadlines.earliest(1))?.deadlines[0]?.at ?? null;
  }

  /** A run that has begun, has ended or was pruned is left alone. */
  async #cancel({ runId, at }: StartDeadline): Promise<void> {
    try {
      await this.#commands.send(runId, { type: "startOverdue", startBy: at });
    } catch (error) {
      if (!(error instanceof InvalidStateError || error instanceof RunNotFoundError)) throw error;
    }
  }
}
