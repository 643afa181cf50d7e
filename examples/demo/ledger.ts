/**
 * The outside world: a file, apart from the database, to which every effect of a step appends a line. No line is ever
 * removed.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";

export interface Effect {
  readonly run: string;
  readonly step: string;
  /** The same for every attempt at this step of this run: a payment provider would charge once. */
  readonly key: string;
  readonly pid: number;
}

export class Ledger {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  write(effect: Effect): void {
    appendFileSync(this.#file, `${JSON.stringify(effect)}\n`);
  }

  read(): Effect[] {
    if (!existsSync(this.#file)) return [];
    // A process that is killed while it writes leaves half a line.
    const whole = readFileSync(this.#file, "utf8").split("\n").slice(0, -1);
    return whole.map((line) => JSON.parse(line) as Effect);
  }
}
