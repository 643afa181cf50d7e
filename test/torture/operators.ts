/** Two concurrent operators: each of the two clients gets a command for the same run at the same instant. */
import type { Member } from "./fleet.js";
import type { OperatorCommand, Word } from "./messages.js";

const pairs: readonly (readonly [OperatorCommand, OperatorCommand])[] = [
  ["pause", "signal"],
  ["pause", "signal"],
  ["pause", "resume"],
  ["pause", "pause"],
  ["pause", "skip"],
  ["resume", "signal"],
  ["resume", "resume"],
  ["resume", "skip"],
  ["skip", "signal"],
  ["cancel", "signal"],
  ["cancel", "pause"],
  ["cancel", "resume"],
];
/** Commands are for runs that are recent enough to be open. */
const remembered = 60;

export class Operators {
  readonly #clients: readonly Member[];
  readonly #random: () => number;
  readonly #runs: string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isOn = false;

  constructor(clients: readonly Member[], random: () => number) {
    this.#clients = clients;
    this.#random = random;
  }

  start(): void {
    this.#isOn = true;
    const next = () => {
      const run = this.#runs[Math.floor(this.#random() * this.#runs.length)];
      if (run !== undefined) this.#command(run, this.#pair());
      this.#timer = setTimeout(next, 100 + this.#random() * 300);
    };
    next();
  }

  stop(): void {
    this.#isOn = false;
    clearTimeout(this.#timer);
  }

  /** A run was started. Some runs get a command immediately, before they have started executing. */
  hear(word: Word): void {
    if (word.kind !== "started") return;
    this.#runs.push(word.run);
    if (this.#runs.length > remembered) this.#runs.shift();
    if (!this.#isOn || this.#random() > 0.5) return;
    this.#command(word.run, ["pause", "signal"]);
    setTimeout(() => this.#isOn && this.#command(word.run, ["resume", "signal"]), 300 + this.#random() * 1_500).unref();
  }

  #pair(): readonly [OperatorCommand, OperatorCommand] {
    const pair = pairs[Math.floor(this.#random() * pairs.length)] as readonly [OperatorCommand, OperatorCommand];
    return this.#random() < 0.5 ? pair : [pair[1], pair[0]];
  }

  #command(run: string, commands: readonly OperatorCommand[]): void {
    for (const [index, command] of commands.entries()) this.#clients[index]?.send({ kind: "command", command, run });
  }
}
