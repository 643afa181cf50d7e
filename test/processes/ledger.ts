/** What really happened: every execution of a step, as its body noted it in a file, whatever became of its process. */
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeFileSync } from "node:fs";
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

  /** Whole lines that were read so far, how many of them are ends, and where in the file the next one begins. */
  readonly #lines: string[] = [];
  #endedCount = 0;
  #readUpTo = 0;

  constructor() {
    writeFileSync(this.file, "");
  }

  /** In the order in which they started. */
  executions(): Execution[] {
    const byToken = new Map<string, Execution>();
    this.#read();
    this.#lines.forEach((line, position) => {
      const [runId = "", step = "", what, pid, token = ""] = line.split(" ");
      if (what === "begin") byToken.set(token, { runId, step, pid: Number(pid), token, begun: position, ended: null });
      const execution = byToken.get(token);
      if (what === "end" && execution !== undefined) execution.ended = position;
    });
    return [...byToken.values()];
  }

  /** How many bodies have ended. */
  ended(): number {
    this.#read();
    return this.#endedCount;
  }

  async until(condition: (ledger: Ledger) => boolean): Promise<void> {
    while (!condition(this)) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Only what is new: tests look a hundred times a second, and the file grows to a megabyte. */
  #read(): void {
    const chunk = Buffer.alloc(65_536);
    const file = openSync(this.file, "r");
    try {
      for (;;) {
        const length = readSync(file, chunk, 0, chunk.length, this.#readUpTo);
        const whole = chunk.subarray(0, chunk.subarray(0, length).lastIndexOf("\n") + 1);
        if (whole.length === 0) return;
        this.#readUpTo += whole.length;
        const lines = whole.toString().split("\n").slice(0, -1);
        this.#lines.push(...lines);
        this.#endedCount += lines.filter((line) => line.includes(" end ")).length;
      }
    } finally {
      closeSync(file);
    }
  }
}
