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
  /** The position of its lines in the ledger; `ended` is null when the body never ended. */
  readonly begun: number;
  ended: number | null;
}

export class Ledger {
  readonly folder = mkdtempSync(join(tmpdir(), "pawl-ledger-"));
  readonly file = join(this.folder, "ledger");

  constructor() {
    writeFileSync(this.file, "");
  }

  /** In the order in which they started. */
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
