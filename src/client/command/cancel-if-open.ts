/** Cancels a run that may have ended meanwhile. */
import { InvalidStateError, RunNotFoundError } from "../../core/errors/errors.js";
import type { RunCommands } from "./run-commands.js";

export async function cancelIfOpen(commands: RunCommands, runId: string, reason: string): Promise<void> {
  try {
    await commands.send(runId, { type: "cancel", reason });
  } catch (error) {
    if (!(error instanceof InvalidStateError || error instanceof RunNotFoundError)) throw error;
  }
}
