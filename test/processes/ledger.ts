/** What really happened: every execution of a step, as its body noted it in a file, whatever became of its process. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** One execution of one step's body. */
export interface Execution {
  readonly runId: string;
  readonly step: string;
  readonly pid: number;
  readonly token: string;
  /** The position of its lines in the ledger; `ended` is null when the body never came to its end. */
  readonly begun: number;
  ended: number | null;
}

export class Ledger {
  readonly folder = mkdtempSync(join(tmpdir(), "pawl-ledger-"));
  readonly file = join(this.folder, "ledger");

  constructor() {
    writeFileSync(this.file, "");
  }

  /** In the order in which they began. */
  executions(): Execution[] {
    const byToken = new Map<string, Execution>();
    this.#lines().forEach((line, position) => {
      const [runId = "", step = "", what, pid, token = ""] = line.split(" ");
      if (what === "begin") byToken.set(token, { runId, step, pid: Number(pid), token, begun: position, ended: null });
      const execution = byToken.get(token);
      if (what === "end" && execution !== undefined) execution.ended = position;
    });
    return [...byToken.values()];
  }

  /** How many bodies have ended. */
  ended(): number {
    return this.#lines().filter((line) => line.includes(" end ")).length;
  }

  async until(condition: (ledger: Ledger) => boolean): Promise<void> {
    while (!condition(this)) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #lines(): string[] {
    return readFileSync(this.file, "utf8").split("\n").slice(0, -1);
  }
}

/** All executions of each step of each run, in order. */
export function byStep(executions: readonly Execution[]): Map<string, Execution[]> {
  const groups = new Map<string, Execution[]>();
  for (const execution of executions) {
    const key = `${execution.runId} ${execution.step}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [execution]);
    else group.push(execution);
  }
  return groups;
}

/**
 * Whether a killed process had this execution in flight when it died: it was the last thing it did for that run. (Its
 * body may have ended, but its record was on its way.) Everything that it did before must have been recorded.
 */
export function wasInFlight(execution: Execution, all: readonly Execution[], killed: ReadonlySet<number>): boolean {
  if (!killed.has(execution.pid)) return false;
  return !all.some(
    ({ runId, pid, begun }) => runId === execution.runId && pid === execution.pid && begun > execution.begun,
  );
}
