/** What a run waits for and where it stands, in words. */
import type { Run } from "../../../actions/run-actions.js";

export type Waiting = Run["waitingFor"][number];

export const hasEnded = ({ status }: Pick<Run, "status">): boolean =>
  status === "completed" || status === "failed" || status === "canceled";

const quote = (text: string | undefined): string => `“${text ?? ""}”`;

/** The object of "It waits for …". */
export function describeWaiting(waiting: Waiting): string {
  const { name, names, step, attempt, workflow, settled, count, open } = waiting;
  switch (waiting.kind) {
    case "sleep":
      return `the end of its sleep ${quote(name)}`;
    case "signal":
      return `the signal ${(names ?? [name ?? ""]).map(quote).join(", ")}`;
    case "step":
      return `the time of step ${quote(step)}`;
    case "retry":
      return `attempt ${attempt} at step ${quote(step)}`;
    case "child":
      return `its child of workflow ${quote(workflow)}`;
    case "map":
      return `the children of ${quote(name)}: ${settled} of ${count} have ended`;
    case "jobs":
      return `${open} of its nodes, whose jobs run on other workers`;
    default:
      return "its next attempt";
  }
}

/** The names of the signals that a run waits for. */
export const awaitedSignals = ({ waitingFor }: Pick<Run, "waitingFor">): readonly string[] => [
  ...new Set(waitingFor.flatMap(({ kind, names, name }) => (kind === "signal" ? (names ?? (name ? [name] : [])) : []))),
];
