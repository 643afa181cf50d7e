/** What a run can be asked, or told: by an operator, another run, a worker. */
import type { Command } from "./stored-schema.js";

export interface ReceivedCommand {
  readonly command: Command;
  /** When it came: a signal that came before a deadline beats the timeout, one that came later does not. */
  readonly at: number;
  /** Refuse what makes no sense with an InvalidStateError (a client is told), or pass over it (there is no caller to tell). */
  readonly strict: boolean;
  /** No worker executes the run: a step that has begun is one that rests in the middle. */
  readonly isUnowned?: boolean;
}
