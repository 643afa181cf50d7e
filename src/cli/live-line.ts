/** A status line at the bottom of a terminal that is redrawn in place; other lines are printed above it. */
import type { TextStream } from "./output.js";
import { truncate } from "./table.js";

export const clearLine = "\r\u001b[K";

export class LiveLine {
  readonly #stream: TextStream;
  #text = "";

  constructor(stream: TextStream) {
    this.#stream = stream;
  }

  set(text: string): void {
    this.#text = text;
    this.#draw();
  }

  /** @param write prints whole lines to this terminal */
  writeAbove(write: () => void): void {
    this.#stream.write(clearLine);
    write();
    this.#draw();
  }

  /** Leaves the last text on the terminal and moves the cursor to the next line. */
  end(): void {
    if (this.#text !== "") this.#stream.write("\n");
    this.#text = "";
  }

  #draw(): void {
    // A line as wide as the terminal would wrap, and `clearLine` erases one row only.
    if (this.#text !== "") this.#stream.write(`${clearLine}${truncate(this.#text, (this.#stream.columns ?? 80) - 1)}`);
  }
}
