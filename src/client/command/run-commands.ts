/**
 * Commands for runs: signals, pause, resume, cancel and so on. If a run is parked, the client applies the command itself,
 * with the same pure `decide` that a worker uses (`unowned-run-commands.ts`). If a worker owns the run, the client puts the
 * command into the run's inbox, which the worker reads.
 *
 * A process sends its commands for one run one after another, and signals that wait for their turn are sent together: a
 * burst of a thousand signals takes a few commits instead of a thousand commits that compete for the same row.
 */

import { InvalidStateError, RunChangedError, RunNotFoundError, StoreError } from "../../core/errors/errors.js";
import type { ReceivedCommand } from "../../core/run/command.js";
import { decide } from "../../core/run/decide.js";
import { fold } from "../../core/run/fold.js";
import { decodeMessage, encodeMessage } from "../../core/run/message.js";
import type { Command } from "../../core/run/stored-schema.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import type { SeenRun, Store, TaskRecord } from "../../store/contract/store.js";
import { checkTransaction } from "../start/callers-transaction.js";
import { isBusy } from "./queue-handover.js";
import { applyCommands, type CommandServices } from "./unowned-run-commands.js";

/** How often a client tries to send a command. A try fails if the run changes between the client's reads and its commit. */
const maxTries = 50;
/** After this many failed tries, the client puts the command into the inbox of the run, which needs no unchanged run. */
const lostRacesBeforeInbox = 3;
const maxSignalsPerBatch = 500;
/**
 * In so many tries a command is delivered only if the log has not grown since it was checked, and in so many only if no
 * other message has arrived. Then it is delivered in any case: a run may write events, and signals may arrive, at any rate,
 * and must not keep an operator from pausing it.
 */
const triesWithSameLog = 5;
const triesWithSameInbox = 20;

interface PendingCommand {
  readonly command: Command;
  /** The command is refused unless this is the number of the run's last event; null: it has no such condition. */
  readonly expectedLastEvent: number | null;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class RunCommands {
  readonly #services: CommandServices;
  /** By run: the commands that wait for their turn. A run has an entry exactly while `#sendAll` sends its commands. */
  readonly #pendingByRun = new Map<string, PendingCommand[]>();

  constructor(services: CommandServices) {
    this.#services = services;
  }

  /**
   * Resolves when the command is durable: applied, or in the inbox of the run for its owner.
   *
   * @param expectedLastEvent the number of the event that the caller saw last; null if the command is right in any case
   * @throws RunChangedError if the log of the run ends with another event
   */
  send(runId: string, command: Command, expectedLastEvent: number | null = null): Promise<void> {
    return new Promise((resolve, reject) => {
      const pending = { command, expectedLastEvent, resolve, reject };
      const pendingCommands = this.#pendingByRun.get(runId);
      if (pendingCommands !== undefined) return void pendingCommands.push(pending);
      this.#pendingByRun.set(runId, [pending]);
      void this.#sendAll(runId);
    });
  }

  async #sendAll(runId: string): Promise<void> {
    const pendingCommands = this.#pendingByRun.get(runId) as PendingCommand[];
    while (pendingCommands.length > 0) {
      const batch = pendingCommands.splice(0, batchLength(pendingCommands));
      try {
        const commands = batch.map(({ command }) => command);
        await this.#sendExpecting(runId, commands, (batch[0] as PendingCommand).expectedLastEvent);
        for (const { resolve } of batch) resolve();
      } catch (error) {
        // The run has ended. Repeating a signal that the run received before succeeds and a new signal fails, so each signal
        // is sent alone to get its own result.
        if (batch.length > 1 && error instanceof InvalidStateError)
          for (const pending of batch) await this.#sendAlone(runId, pending);
        else for (const { reject } of batch) reject(error);
      }
    }
    this.#pendingByRun.delete(runId);
  }

  async #sendAlone(runId: string, { command, resolve, reject }: PendingCommand): Promise<void> {
    await this.#sendBatch(runId, [command], null).then(resolve, reject);
  }

  /**
   * Puts a signal into the inbox of the run, in the caller's own transaction. The client cannot apply it there, because the
   * state of the run may change before the caller commits.
   */
  async sendInTransaction(tx: unknown, runId: string, command: Command): Promise<void> {
    checkTransaction(tx, "the signal would be sent");
    const { undeliverable, notStarted } = await this.#services.store.sendInTransaction(tx, [
      encodeMessage(runId, command),
    ]);
    if (notStarted.length > 0)
      throw new InvalidStateError(
        `Run ${runId} has not started and is not due yet, so it takes no signal in a transaction; send it without \`tx\`.`,
        { runId, status: "pending" },
      );
    if (undeliverable.length > 0 && !(await this.#isAlreadyApplied(runId, [command])))
      throw new StoreError(`Run ${runId} changed while a signal was sent in a transaction; try again.`, {
        transient: true,
      });
  }

  /** A command that is impossible because the run has changed is refused for that reason, if the caller asked for it. */
  async #sendExpecting(runId: string, commands: readonly Command[], expectedLastEvent: number | null): Promise<void> {
    try {
      await this.#sendBatch(runId, commands, expectedLastEvent);
    } catch (error) {
      if (expectedLastEvent !== null && error instanceof InvalidStateError)
        await checkLastEvent(this.#services.store, runId, expectedLastEvent);
      throw error;
    }
  }

  async #sendBatch(runId: string, commands: readonly Command[], expectedLastEvent: number | null): Promise<void> {
    const { store } = this.#services;
    const [{ type }] = commands as [Command];
    let shouldUseInbox = false;
    for (let tries = 1; tries <= maxTries; tries += 1) {
      const [task] = await store.tasks([runId]);
      if (task === undefined) {
        if (await this.#isAlreadyApplied(runId, commands)) return;
        continue;
      }
      if (type === "startOverdue" && mayHaveBegun(task)) return;
      if (shouldUseInbox || isBusy(task)) {
        if (expectedLastEvent !== null) await checkLastEvent(store, runId, expectedLastEvent);
        if (await this.#sendToInbox(runId, task, commands, expectedLastEvent, tries)) return;
        continue;
      }
      const outcome = await applyCommands(this.#services, runId, commands, expectedLastEvent);
      if (outcome === "done") return;
      // The inbox is not used for a run that has not started ("lost race before it began"): a message in its inbox would
      // start it before its time.
      shouldUseInbox = outcome === "lost race" && (type === "signal" || tries >= lostRacesBeforeInbox);
      if (outcome === "lost race before it began") await randomBackoff(tries, this.#services.runtime);
    }
    throw new StoreError(`Run ${runId} changed ${maxTries} times while "${type}" was being applied; try again.`, {
      transient: true,
    });
  }

  /**
   * Called when the run has no task. Returns true if the run has ended and the commands were applied before. Returns false if
   * the run has not ended, because it changed between two reads; the caller then tries again. Otherwise throws.
   */
  async #isAlreadyApplied(runId: string, commands: readonly Command[]): Promise<boolean> {
    const run = await this.#services.store.run(runId);
    if (run === null) throw new RunNotFoundError(runId);
    const [command] = commands as [Command];
    if (command.type === "cancel" && run.status === "canceled") return true;
    if (run.finishedAt === null) return false;
    if (await this.#wasDelivered(runId, commands)) return true;
    const commandText = command.type === "signal" ? `the signal "${command.name}"` : `"${command.type}"`;
    throw new InvalidStateError(`Run ${run.id} is ${run.status} and cannot take ${commandText}.`, {
      runId: run.id,
      status: run.status,
    });
  }

  /** Whether all commands are signals whose keys the log contains. A sender that missed the first reply repeats a signal. */
  async #wasDelivered(runId: string, commands: readonly Command[]): Promise<boolean> {
    const isKeyed = (command: Command) => command.type === "signal" && command.key !== null;
    if (!commands.every(isKeyed)) return false;
    const { signalKeys } = fold((await this.#services.store.logs([runId])).get(runId) ?? []);
    const wasReceived = (command: Command) =>
      command.type === "signal" && command.key !== null && signalKeys?.has(command.key) === true;
    return commands.every(wasReceived);
  }

  /**
   * Returns false if the run has ended, or has changed since the command was checked; the caller then tries again. The store
   * compares the run with what was checked, because otherwise, of two clients that pause a run at the same moment, both
   * would be told that they had paused it.
   */
  async #sendToInbox(
    runId: string,
    task: TaskRecord,
    commands: readonly Command[],
    expectedLastEvent: number | null,
    tries: number,
  ): Promise<boolean> {
    const { store } = this.#services;
    let seen: SeenRun | null = expectedLastEvent === null ? null : { pendingMessages: 0, lastEvent: expectedLastEvent };
    for (const command of commands) {
      if (command.type === "resumeAt" && task.state === "owned") {
        // A step that is still running would record its result after the run was moved, as if it had run at the new position.
        throw new InvalidStateError(`Run ${runId} is still being executed; wait until it is paused.`, {
          runId,
          status: "running",
        });
      }
      if (command.type === "start" && task.state === "owned")
        throw new InvalidStateError(`Run ${runId} has been started already.`, { runId, status: "running" });
      if (!checkedCommands.has(command.type)) continue;
      const { pendingMessages, lastEvent } = await checkApplicable(store, runId, command);
      if (tries <= triesWithSameInbox)
        seen ??= { pendingMessages, lastEvent: tries <= triesWithSameLog ? lastEvent : null };
    }
    const messages = commands.map((command) => encodeMessage(runId, command));
    const { undeliverable } = await (seen === null ? store.send(messages) : store.send(messages, seen));
    return undeliverable.length === 0;
  }
}

/** Whether a worker has taken the run. It may have executed code of the run, even if it died before it could write anything. */
const mayHaveBegun = ({ state, deliveries }: TaskRecord): boolean => state === "owned" || deliveries > 0;

/** The number of commands to send next: one, or several signals, which do not affect each other and fit into one commit. */
function batchLength(pendingCommands: readonly PendingCommand[]): number {
  const isSignal = ({ command, expectedLastEvent }: PendingCommand) =>
    command.type === "signal" && expectedLastEvent === null;
  if (!isSignal(pendingCommands[0] as PendingCommand)) return 1;
  const end = pendingCommands.findIndex((pending) => !isSignal(pending));
  return Math.min(end < 0 ? pendingCommands.length : end, maxSignalsPerBatch);
}

/**
 * Throws if the log does not end with this event any more, or if messages wait in the inbox, because the owner writes an
 * event for each of them. The store compares both again when it delivers the command.
 */
async function checkLastEvent(store: Store, runId: string, expectedLastEvent: number): Promise<void> {
  const inbox = (await store.inbox([runId])).get(runId) ?? [];
  const lastEvent = await store.maintenance.questions.lastEventSeq(runId);
  if (lastEvent !== expectedLastEvent || inbox.length > 0)
    throw new RunChangedError({ runId, lastEvent, expectedLastEvent });
}

const checkedCommands = new Set<Command["type"]>([
  "pause",
  "resume",
  "resumeAt",
  "skip",
  "reattempt",
  "start",
  "import",
]);

/**
 * Throws if the command is invalid in the current state of the run, because the owner would ignore the message silently.
 * Returns what it has seen of the run.
 */
async function checkApplicable(
  store: Store,
  runId: string,
  command: Command,
): Promise<{ readonly pendingMessages: number; readonly lastEvent: number }> {
  // The inbox is read before the log: a message that the owner moves to the log between the reads is then seen twice, which
  // does no harm. In the other order it would be missed.
  const inbox = (await store.inbox([runId])).get(runId) ?? [];
  const log = (await store.logs([runId])).get(runId) ?? [];
  const now = await store.now();
  // Commands in the inbox are treated as applied: they were acknowledged to their senders, and the owner will apply them.
  const unreadCommands = inbox.flatMap((row): ReceivedCommand[] => {
    const unreadCommand = decodeMessage(row);
    return unreadCommand === null ? [] : [{ command: unreadCommand, at: row.at, strict: false }];
  });
  const state = fold(log);
  decide(state, [...unreadCommands, { command, at: now, strict: true }], now);
  return { pendingMessages: inbox.length, lastEvent: state.seq };
}

/** A random delay, so that processes that lost the same race do not collide again at once. */
const randomBackoff = (tries: number, runtime: Runtime) => sleep(runtime, runtime.random() * Math.min(50, 2 ** tries));
