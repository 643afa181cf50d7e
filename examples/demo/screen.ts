/** The terminal: a block of lines that is redrawn in place, or, where the output is a file or a pipe, a line now and then. */

import { stepNames } from "./order.js";
import { activityOf, type RunProgress } from "./progress.js";

const isTerminal = process.stdout.isTTY === true;
const hasColours = isTerminal && process.env.NO_COLOR === undefined;
const paint = (code: number) => (text: string) => (hasColours ? `\u001b[${code}m${text}\u001b[0m` : text);

export const bold = paint(1);
export const dim = paint(2);
export const red = paint(31);
export const green = paint(32);
/** Underlined, so that it is seen among other lines. */
export const link = paint(4);

const linesEverySeconds = 3;

export class Screen {
  readonly #begunAt = performance.now();
  /** How many steps of each run the first worker had completed. */
  readonly #byFirst = new Map<string, number>();
  #drawn = 0;
  #lineAt = 0;

  /** Prints a line that stays, and redraws the block below it. */
  say(text = ""): void {
    this.#drawn = 0;
    console.log(text);
  }

  /** From here on, completed steps belong to the second worker. */
  mark(runs: readonly RunProgress[]): void {
    for (const { id, done } of runs) this.#byFirst.set(id, done);
  }

  /** Shows the progress of the runs. */
  show(runs: readonly RunProgress[], { keep = false } = {}): void {
    if (isTerminal || keep) this.#draw(runs);
    else this.#line(runs);
    if (keep) this.#drawn = 0;
  }

  #draw(runs: readonly RunProgress[]): void {
    const up = this.#drawn > 0 ? `\u001b[${this.#drawn}A` : "";
    const clear = isTerminal ? "\u001b[K" : "";
    process.stdout.write(up + runs.map((run, index) => `${clear}${this.#lineOf(run, index + 1)}\n`).join(""));
    this.#drawn = runs.length;
  }

  #line(runs: readonly RunProgress[]): void {
    const seconds = (performance.now() - this.#begunAt) / 1_000;
    if (seconds < this.#lineAt) return;
    this.#lineAt = seconds + linesEverySeconds;
    const steps = runs.reduce((sum, { done }) => sum + done, 0);
    const finished = runs.filter(({ status }) => status === "completed").length;
    const total = runs.length * stepNames.length;
    console.log(
      `  ${seconds.toFixed(0).padStart(2)} s: ${steps} of ${total} steps, ${finished} of ${runs.length} orders`,
    );
  }

  #lineOf(run: RunProgress, number: number): string {
    const byFirst = this.#byFirst.get(run.id) ?? run.done;
    const bar =
      "■".repeat(byFirst) + green("◆".repeat(run.done - byFirst)) + dim("·".repeat(stepNames.length - run.done));
    const note = run.recovered ? dim(", taken over in the middle of a step") : "";
    return `  order ${String(number).padStart(2)}  ${bar}  ${activityOf(run)}${note}`;
  }
}
