/** The one line beside the status of a run: why it is not moving, or why it ended as it did. */
import type { ListedRun } from "./run-list.js";

/** How the server marks a text that the access does not allow to see. */
const hidden = "[hidden]";
/** The length at which the server cuts the messages of errors in lists. */
const cutLength = 200;

export interface RunError {
  readonly name: string;
  readonly message: string;
}

export function errorOf({ error }: Pick<ListedRun, "error">): RunError | null {
  if (error === null || error === undefined) return null;
  const { name = "Error", message = "" } = error as Partial<RunError>;
  // The server ends the message of every large error with an ellipsis, also if nothing of it was cut.
  const isWhole = message.endsWith("…") && message.length <= cutLength;
  return { name, message: isWhole ? message.slice(0, -1) : message };
}

/**
 * @param writeTime writes an instant that the explanation names, such as "in 5 m"
 * @returns null if there is nothing to explain
 */
export function explanationOf(run: ListedRun, writeTime: (at: number) => string): string | null {
  if (run.damaged.length > 0) return `Cannot be read: ${run.damaged.join(", ")}. “pawl verify” tells more.`;
  const error = errorOf(run);
  if (run.status === "failed" && error !== null)
    return error.message === hidden ? `${error.name}; its message is hidden` : `${error.name}: ${error.message}`;
  if (run.explanation === null) return null;
  if (run.explanation === hidden) return "hidden";
  return shorten(run.explanation).replace(/\bat (\d{4}-\d\d-\d\dT[\d:.]+Z)/g, (_, iso: string) =>
    writeTime(Date.parse(iso)),
  );
}

/** The status stands before the line, so the line continues it: "waiting for the signal …". */
const shorten = (text: string): string =>
  text
    .replace(/^Paused: /, "")
    .replace(/^It waits for /, "for ")
    .replace(/^It (is due|starts|has not been released)/, "$1")
    .replace(/^Worker "(.*)" executes it\.$/, "on $1")
    .replace(/^is due/, "due");

/** The step that a run failed at, is paused at, waits for or is at. */
export function stepOf({ failedStep, currentStep, waitingFor }: ListedRun): string | null {
  const waiting = waitingFor.find(({ step }) => step !== undefined);
  return failedStep ?? currentStep ?? waiting?.step ?? null;
}
