/** A command as `decide` gets it, together with how and when it was received. */
import type { Command } from "./stored-schema.js";

export interface ReceivedCommand {
  readonly command: Command;
  /** When the command was received. A signal that arrived before a deadline is delivered; a later one is too late. */
  readonly at: number;
  /** Whether an impossible command throws an InvalidStateError, for a caller, or is ignored because there is no caller. */
  readonly strict: boolean;
  /** No worker owns the run, so a step that has started is not running: its body waits for something durable. */
  readonly isUnowned?: boolean;
}
