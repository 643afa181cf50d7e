/**
 * The outside ledger: what really happened, as noted by the processes of a campaign, whatever became of them.
 *
 * Each process appends to a file of its own, one line of JSON per entry and one write per line. Only processes are
 * killed, never the machine, so a finished write survives its process and needs no fsync.
 */
import { openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

/** A body started. `step` is the name of its node in the log of `run`; `key` is its idempotency key. */
export interface Begin {
  readonly kind: "begin";
  readonly run: string;
  readonly step: string;
  readonly key: string;
  readonly token: string;
  readonly pid: number;
  readonly at: number;
}

/** The body with this token ended; the token is what it returned. */
export interface End {
  readonly kind: "end";
  readonly token: string;
  readonly at: number;
}

/** A resumable step has done one of its items. */
export interface ItemDone {
  readonly kind: "item";
  readonly run: string;
  readonly step: string;
  readonly item: number;
  readonly pid: number;
  readonly at: number;
}

export type CommandName = "start" | "signal" | "pause" | "resume" | "skip" | "cancel";

/** A client is about to send a command. `key` is the start key, the key of the signal, or the reason of a pause. */
export interface Intent {
  readonly kind: "intent";
  readonly id: string;
  readonly command: CommandName;
  readonly workflow: string | null;
  readonly run: string | null;
  readonly signal: string | null;
  readonly key: string | null;
  readonly at: number;
}

/**
 * The answer that the client received. "unknown": the command may or may not have been carried out. A missing answer
 * means the same.
 */
export interface Answer {
  readonly kind: "answer";
  readonly id: string;
  readonly answer: "acknowledged" | "refused" | "unknown";
  readonly run: string | null;
  readonly error: string | null;
  readonly at: number;
}

/** A fault started. `pid` is the process that it hit, null when it hit all of them (a crash of the server). */
export interface Fault {
  readonly kind: "fault";
  readonly fault: string;
  readonly pid: number | null;
  readonly at: number;
  readonly until: number;
}

export type Entry = Begin | End | ItemDone | Intent | Answer | Fault;

export class LedgerWriter {
  readonly #file: number;
  readonly #prefix = `tok:${process.pid}-${Date.now().toString(36)}-`;
  #count = 0;

  constructor(folder: string, name: string) {
    this.#file = openSync(join(folder, `${name}-${process.pid}-${Date.now()}.jsonl`), "a");
  }

  write(entry: Entry): void {
    writeSync(this.#file, `${JSON.stringify(entry)}\n`);
  }

  /** Unique among all processes of a campaign. */
  newToken(): string {
    this.#count += 1;
    return this.#prefix + this.#count;
  }

  /** Runs a body between two entries and returns its token. */
  async effect(place: { run: string; step: string; key: string }, body: () => Promise<void> | void): Promise<string> {
    const token = this.newToken();
    this.write({ kind: "begin", ...place, token, pid: process.pid, at: Date.now() });
    await body();
    this.write({ kind: "end", token, at: Date.now() });
    return token;
  }
}

/** All entries of all processes. The last line of a killed process may be torn; only that line is left out. */
export function readLedger(folder: string): Entry[] {
  const files = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
  return files.flatMap((name) => {
    const lines = readFileSync(join(folder, name), "utf8").split("\n");
    return lines.slice(0, -1).map((line) => JSON.parse(line) as Entry);
  });
}
