/**
 * Commands for runs: signals, pause, resume, cancel and the like. A parked run takes a command at once, decided by the
 * same pure `decide` that a worker would use (`amend.ts`); a run that a worker owns gets it through its inbox.
 *
 * Commands of this process for the same run go one after another, and signals that wait meanwhile go together: a burst
 * of a thousand signals is a few commits, and not a thousand clients that race each other for the same row.
 */

import { InvalidStateError, RunNotFoundError, StoreError } from "../../core/errors/errors.js";
import type { ReceivedCommand } from "../../core/run/command.js";
import { decide } from "../../core/run/decide.js";
import { fold } from "../../core/run/fold.js";
import { decodeMessage, encodeMessage } from "../../core/run/message.js";
import type { Command } from "../../core/run/stored-schema.js";
import type { Runtime } from "../../runtime/runtime.js";
import { sleep } from "../../runtime/wait.js";
import type { Store, TaskRecord } from "../../store/contract/store.js";
import { checkTransaction } from "../start/callers-transaction.js";
import { applyCommands, type CommandServices, isBusy } from "./unowned-run-commands.js";

/** How often a run may change while a client tries to write to it before the client gives up. */
const maxTries = 50;
/** After so many lost races a command goes to the inbox of the run, where it cannot lose any more. */
const lostRacesBeforeInbox = 3;
/** Of signals that go together. */
const maxSignalsPerBatch = 500;

interface PendingCommand {
  readonly command: Command;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class RunCommands {
  readonly #services: CommandServices;
  /** The commands that wait, by run. A run is in here exactly while one of its commands is under way. */
  readonly #pendingByRun = new Map<string, PendingCommand[]>();

  constructor(services: CommandServices) {
    this.#services = services;
  }

  /** Resolves when the command is durable: it has been taken, or the owner of the run will take it. */
  send(runId: string, command: Command): Promise<void> {
    return new Promise((resolve, reject) => {
      const pending = { command, resolve, reject };
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
        await this.#sendBatch(
          runId,
          batch.map(({ command }) => command),
        );
        for (const { resolve } of batch) resolve();
      } catch (error) {
        // Each has an answer of its own: after the end of a run, a signal that was delivered before is no mistake.
        if (batch.length > 1 && error instanceof InvalidStateError)
          for (const one of batch) await this.#sendAlone(runId, one);
        else for (const { reject } of batch) reject(error);
      }
    }
    this.#pendingByRun.delete(runId);
  }

  async #sendAlone(runId: string, { command, resolve, reject }: PendingCommand): Promise<void> {
    await this.#sendBatch(runId, [command]).then(resolve, reject);
  }

  /**
   * Sends a signal on the caller's own transaction, into the inbox: what the run is waiting for cannot be decided there, as
   * nothing is known of it before the caller commits.
   */
  async sendInTransaction(tx: unknown, runId: string, command: Command): Promise<void> {
    checkTransaction(tx, "the signal would be sent");
    const { undeliverable, notStarted } = await this.#services.store.sendInTransaction(tx, [
      encodeMessage(runId, command),
    ]);
    if (notStarted.length > 0)
      throw new InvalidStateError(
        `Run ${runId} has not begun and is not due yet, so it takes no signal on a transaction; send it without \`tx\`.`,
        { runId, status: "pending" },
      );
    if (undeliverable.length > 0 && !(await this.#isAlreadyApplied(runId, [command])))
      throw new StoreError(`Run ${runId} changed while a signal was sent on a transaction; try again.`, {
        transient: true,
      });
  }

  async #sendBatch(runId: string, commands: readonly Command[]): Promise<void> {
    const { store } = this.#services;
    const [{ type }] = commands as [Command];
    let shouldUseInbox = false;
    for (let tries = 1; tries <= maxTries; tries += 1) {
      const [task] = await store.tasks([runId]);
      if (task === undefined) {
        if (await this.#isAlreadyApplied(runId, commands)) return;
        continue;
      }
      if (shouldUseInbox || isBusy(task)) {
        if (await this.#sendToInbox(runId, task, commands)) return;
        continue;
      }
      const outcome = await applyCommands(this.#services, runId, commands);
      if (outcome === "done") return;
      // A message would let a run that is held back, or planned for later, begin before its time.
      shouldUseInbox = outcome === "lost race" && (type === "signal" || tries >= lostRacesBeforeInbox);
      if (outcome === "lost race before it began") await randomBackoff(tries, this.#services.runtime);
    }
    throw new StoreError(`Run ${runId} was changed ${maxTries} times while a "${type}" was tried; try again.`, {
      transient: true,
    });
  }

  /** The run has ended. True: the commands change nothing. False: the run was between two reads; look again. */
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

  /** Whether all of them are signals whose keys the log has: the sender was not told of the first delivery, and repeats it. */
  async #wasDelivered(runId: string, commands: readonly Command[]): Promise<boolean> {
    const isKeyed = (one: Command) => one.type === "signal" && one.key !== null;
    if (!commands.every(isKeyed)) return false;
    const { signalKeys } = fold((await this.#services.store.logs([runId])).get(runId) ?? []);
    return commands.every((one) => one.type === "signal" && one.key !== null && signalKeys?.has(one.key) === true);
  }

  async #sendToInbox(runId: string, task: TaskRecord, commands: readonly Command[]): Promise<boolean> {
    const { store } = this.#services;
    for (const command of commands) {
      if (command.type === "resumeAt" && task.state === "owned") {
        // The result of a step that is still running would be recorded as if it came after the move.
        throw new InvalidStateError(`Run ${runId} is still being executed; wait until it is paused.`, {
          runId,
          status: "running",
        });
      }
      if (command.type === "start" && task.state === "owned")
        throw new InvalidStateError(`Run ${runId} has been started already.`, { runId, status: "running" });
      if (checkedCommands.has(command.type)) await checkApplicable(store, runId, command);
    }
    const { undeliverable } = await store.send(commands.map((command) => encodeMessage(runId, command)));
    return undeliverable.length === 0;
  }
}

/** Signals change nothing but the buffer of signals, so they need no decision in between. */
function batchLength(pendingCommands: readonly PendingCommand[]): number {
  const isSignal = ({ command }: PendingCommand) => command.type === "signal";
  if (!isSignal(pendingCommands[0] as PendingCommand)) return 1;
  const end = pendingCommands.findIndex((one) => !isSignal(one));
  return Math.min(end < 0 ? pendingCommands.length : end, maxSignalsPerBatch);
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

/** The sender of a command that makes no sense is told at once, instead of the owner passing over it in silence. */
async function checkApplicable(store: Store, runId: string, command: Command): Promise<void> {
  // The inbox first: a message that the owner drains in between is seen twice then, which does no harm, instead of never.
  const inbox = (await store.inbox([runId])).get(runId) ?? [];
  const log = (await store.logs([runId])).get(runId) ?? [];
  const now = await store.now();
  // What was acknowledged before counts, although the owner has not come to it yet.
  const unreadCommands = inbox.flatMap((row): ReceivedCommand[] => {
    const unreadCommand = decodeMessage(row);
    return unreadCommand === null ? [] : [{ command: unreadCommand, at: row.at, strict: false }];
  });
  decide(fold(log), [...unreadCommands, { command, at: now, strict: true }], now);
}

/** Clients of several processes that lost the same race do not meet again at once. */
const randomBackoff = (tries: number, runtime: Runtime) => sleep(runtime, runtime.random() * Math.min(50, 2 ** tries));
