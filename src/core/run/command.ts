/** A command as `decide` receives it, together with the time and the circumstances of its arrival. */
import type { Command } from "./stored-schema.js";

export interface ReceivedCommand {
  readonly command: Command;
  /**
   * When the command arrived. A signal that arrived before a wait's deadline completes the wait; a later signal does not.
   */
  readonly at: number;
  /**
   * True if a caller waits for the result: an impossible command then throws an InvalidStateError. Otherwise it is ignored.
   */
  readonly strict: boolean;
  /**
   * True if no worker owns the run. A started step is then not being executed: its body waits for a timer, signal or child.
   */
  readonly isUnowned?: boolean;
}
