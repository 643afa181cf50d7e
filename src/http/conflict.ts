/** What a client is told when its command was refused because of the state of the run: what has happened to the run. */
import { InvalidStateError, RunChangedError } from "../core/errors/errors.js";
import { decodeMessage } from "../core/run/message.js";
import type { Command } from "../core/run/stored-schema.js";
import { isTerminalEvent } from "../core/run/terminal-event.js";
import type { Pawl } from "../index.js";
import type { Problem } from "./problem.js";

/** How many of a run's last events a refusal shows: those after the event that the caller knew, or the last few. */
const maxChanges = 20;
const eventsAboutChange = 5;

/** @param runId the run that the path of the request names, because not every error says which run it is about */
export async function withChanges(
  error: unknown,
  problem: Problem,
  pawl: Pawl,
  runId: string | undefined,
): Promise<Problem> {
  if (!(error instanceof InvalidStateError || error instanceof RunChangedError)) return problem;
  const id = error.runId ?? runId;
  if (id === undefined) return problem;
  try {
    const run = pawl.run(id);
    // Read before the log: a command that the worker applies between the reads is then shown twice instead of not at all.
    const pending = await pendingCommands(pawl, id);
    const storedEvent = await pawl.internals.store.maintenance.questions.lastEventSeq(id);
    const seen = error instanceof RunChangedError ? error.expectedLastEvent : storedEvent - eventsAboutChange;
    const events = await run.history({ after: Math.max(0, seen, storedEvent - maxChanges), limit: maxChanges });
    // The log may have grown between the two reads. The caller may base its next command on what it is shown.
    const shownEvents = events.filter((event) => !isTerminalEvent(event)).map(({ seq }) => seq);
    const lastEvent = Math.max(storedEvent, ...shownEvents);
    const changes = events.map(({ seq, type, at, data }) => ({
      ...{ seq, type, at: at.toISOString() },
      ...(type === "command.accepted" && typeof data.by === "string" ? { by: data.by } : {}),
    }));
    const fields = { runId: id, runStatus: await run.status(), lastEvent, changes, pending };
    return { ...problem, fields: { ...problem.fields, ...fields } };
  } catch {
    return problem;
  }
}

/** While a worker executes a run, commands wait in its inbox. Undefined if there are none. */
async function pendingCommands(pawl: Pawl, runId: string): Promise<readonly object[] | undefined> {
  const rows = (await pawl.internals.store.inbox([runId])).get(runId) ?? [];
  const commands = rows.slice(0, maxChanges).flatMap((row) => {
    const command = decodeMessage(row);
    if (command === null || !operatorCommands.has(command.type)) return [];
    const by = command.audit?.by;
    return [{ command: command.type, at: new Date(row.at).toISOString(), ...(by === undefined ? {} : { by }) }];
  });
  return commands.length === 0 ? undefined : commands;
}

/** Other messages are from other runs and from workers. */
const operatorCommands = new Set<Command["type"]>([
  ...(["signal", "pause", "resume", "resumeAt", "skip", "cancel", "start", "reattempt", "import"] as const),
]);
